// A functional program says itself which outputs share memory: what it returns twice are two tensors, here.
// run: functionalize, place, run
// torch: a functional program's outputs share memory only where it says so
stage: functional
graph(%x: f32[2]) {
  %a: f32[2] = aten.relu.default(%x)
  return %a, %a
}

// == functionalize
// graph(%x: f32[2]) {
//   %a: f32[2] = aten.relu.default(%x)
//   return %a, %a
// }

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %x, 8 bytes
// buffer buf1: output 0, 8 bytes
// buffer buf2: output 1, 8 bytes
//
// graph(%x: f32[2] @ buf0[2]) {
//   %a @ buf1[2] = aten.relu.default(%x @ buf0[2])
//   move %a: buf1[2] -> buf2[2]
//   return %a @ buf1[2], %a @ buf1[2]
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+0 = [0.0 1.0]
// output 1: f32[2][1]+0 = [0.0 1.0]
