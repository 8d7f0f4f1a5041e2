// A write through a view that was made before set_ goes to the memory of before.
// run: functionalize, run
graph(%x: f32[4], %a: f32[2]) {
  %v: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
  %y: f32[2] = aten.neg.default(%a)
  %s: f32[2] = aten.set_.source_Tensor(%x, %y)
  %w: f32[2]+1 = aten.mul_.Tensor(%v, 10)
  %z: f32[2] = aten.add_.Tensor(%x, 1)
  return %v
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[2]+1 of input %x
// output 2: metadata of %x as view f32[2] of base 3
// output 3: base
//
// graph(%x: f32[4], %a: f32[2]) {
//   %y: f32[2] = aten.neg.default(%a)
//   %v: f32[2]+1 = aten.slice.Tensor(%x, 0, 1, 3)
//   %w: f32[2]+1 = aten.mul.Tensor(%v, 10)
//   %w_1: f32[4] = aten.slice_scatter.default(%x, %w, 0, 1, 3)
//   %z: f32[2] = aten.add.Tensor(%y, 1)
//   return %w_1, %w, None, %z
// }

// == run
// input 0: f32[2][1]+0 = [1.0 0.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[2][1]+1 = [10.0 20.0]
