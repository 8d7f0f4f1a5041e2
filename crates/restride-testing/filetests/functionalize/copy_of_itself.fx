// A copy of what is there already is none, even where one would be refused.
// run: functionalize, run
graph(%x: f32[1], %y: f32[3]) {
  %a: f32[3][0] = aten.expand.default(%x, [3])
  %b: f32[3][0] = aten.alias.default(%a)
  %c: f32[3][0] = aten.copy_.default(%a, %b)
  %d: f32[3] = aten.alias.default(%y)
  %e: f32[3] = aten.copy_.default(%y, %d)
  return %c
}

// == functionalize
// stage: functional
// output 0: user as view f32[3][0] of input %x
//
// graph(%x: f32[1], %y: f32[3]) {
//   %a: f32[3][0] = aten.expand.default(%x, [3])
//   return %a
// }

// == run
// input 0: f32[1][1]+0 = [0.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][0]+0 = [0.0 0.0 0.0], on the storage of input 0
