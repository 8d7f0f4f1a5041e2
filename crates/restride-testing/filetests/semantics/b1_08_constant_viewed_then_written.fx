// A constant's fresh copy is written through a view: the constant itself stays for the next run.
// run: functionalize, run
weight "c": f32[3] storage 0
input %c: constant "c"
graph(%c: f32[3], %x: f32[3]) {
  %f: f32[3] = aten.lift_fresh_copy.default(%c)
  %v: f32[3] = aten.view.default(%f, [3])
  %w: f32[3] = aten.add_.Tensor(%v, %x)
  return %f
}

// == functionalize
// weight "c": f32[3] storage 0
// input %c: constant "c"
//
// graph(%c: f32[3], %x: f32[3]) {
//   %f: f32[3] = aten.lift_fresh_copy.default(%c)
//   %w: f32[3] = aten.add.Tensor(%f, %x)
//   return %w
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// c: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[3][1]+0 = [0.0 2.0 4.0]
