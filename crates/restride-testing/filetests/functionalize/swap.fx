// New contents of inputs that are each other's old ones.
// run: functionalize, run, place
graph(%x: f32[2], %y: f32[2]) {
  %t: f32[2] = aten.clone.default(%x)
  %a: f32[2] = aten.copy_.default(%x, %y)
  %b: f32[2] = aten.copy_.default(%y, %t)
  return %t
}

// == functionalize
// output 0: mutation of %x
// output 1: mutation of %y
//
// graph(%x: f32[2], %y: f32[2]) {
//   %t: f32[2] = aten.clone.default(%x)
//   return %y, %t, %t
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [0.0 1.0]

// == place
// stage: placed
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %x, 8 bytes
// buffer buf1: input %y, 8 bytes
// buffer buf2: output 2, 8 bytes
// buffer buf3: arena, 8 bytes at 0
//
// graph(%x: f32[2] @ buf0[2], %y: f32[2] @ buf1[2]) {
//   free %t @ buf0[2] = aten.clone.default(%x @ buf0[2])
//   move %t: buf0[2] -> buf2[2]
//   move %y: buf1[2] -> buf3[2]
//   move %t: buf0[2] -> buf1[2]
//   move %y: buf3[2] -> buf0[2]
//   return %y @ buf1[2], %t @ buf0[2], %t @ buf0[2]
// }
