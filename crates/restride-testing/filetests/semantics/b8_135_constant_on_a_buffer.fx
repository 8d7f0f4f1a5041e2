// A written constant that is a view of a buffer: the buffer is written.
// run: functionalize, run
weight "b": f32[4] storage 0
weight "c": f32[2]+1 storage 0
input %b: buffer "b"
input %c: constant "c"
graph(%b: f32[4], %c: f32[2]+1, %x: f32[2]) {
  %w: f32[2]+1 = aten.add_.Tensor(%c, %x)
  %y: f32[] = aten.sum.default(%b)
  %v: f32[4] = aten.mul_.Tensor(%b, 2)
  return %y
}

// == functionalize
// stage: functional
// weight "b": f32[4] storage 0
// weight "c": f32[2]+1 storage 0
// input %b: buffer "b"
// input %c: constant "c"
// input %storage_b_c: storage of %b, %c
// output 0: mutation of %storage_b_c
//
// graph(%b: f32[4], %c: f32[2]+1, %x: f32[2], %storage_b_c: f32[4]) {
//   %w: f32[2]+1 = aten.slice.Tensor(%storage_b_c, 0, 1, 3)
//   %w_1: f32[2]+1 = aten.add.Tensor(%w, %x)
//   %w_2: f32[4] = aten.slice_scatter.default(%storage_b_c, %w_1, 0, 1, 3)
//   %y: f32[] = aten.sum.default(%w_2)
//   %v: f32[4] = aten.mul.Tensor(%w_2, 2)
//   return %v, %y
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// b: f32[4][1]+0 = [0.0 2.0 6.0 6.0]
// c: f32[2][1]+1 = [2.0 6.0], on the storage of b
// output 0: f32[][]+0 = [7.0]
