// What gives its argument back is that: dropout in evaluation, in place and not, contiguous of what is contiguous.
// run: functionalize, run
graph(%x: f32[4]) {
  %y: f32[4] = aten.neg.default(%x)
  %d: f32[4] = aten.dropout_.default(%y, 0.5, False)
  %c: f32[4] = aten.contiguous.default(%d)
  %t: f32[4] = aten.dropout.default(%c, 0.1, False)
  %a: f32[4] = aten.add_.Scalar(%t, 1)
  %z: f32[4] = aten.dropout_.default(%x, 0.5, False)
  return %y
}

// == functionalize
// graph(%x: f32[4]) {
//   %y: f32[4] = aten.neg.default(%x)
//   %a: f32[4] = aten.add.Scalar(%y, 1)
//   return %a
// }

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [1.0 0.0 -1.0 -2.0]
