// alias is a view, _unsafe_view and unsafe_split too where eager PyTorch makes them so.
// run: functionalize, run
graph(%x: f32[4, 2]) {
  %a: f32[4, 2] = aten.alias.default(%x)
  %u: f32[8] = aten._unsafe_view.default(%a, [8])
  %w: f32[8] = aten.add_.Tensor(%u, 1)
  %p: f32[2, 2], %q: f32[2, 2]+4 = aten.unsafe_split.Tensor(%x, 2)
  %v: f32[2, 2] = aten.mul_.Tensor(%p, 2)
  %c: f32[2, 2], %d: f32[2, 2]+4 = aten.unsafe_chunk.default(%x, 2)
  return %u, %p
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f32[8] of input %x
// output 2: user as view f32[2, 2] of input %x
//
// graph(%x: f32[4, 2]) {
//   %u: f32[8] = aten._unsafe_view.default(%x, [8])
//   %w: f32[8] = aten.add.Tensor(%u, 1)
//   %w_1: f32[4, 2] = aten.reshape.default(%w, [4, 2])
//   %p: f32[2, 2] = aten.slice.Tensor(%w_1, 0, 0, 2)
//   %v: f32[2, 2] = aten.mul.Tensor(%p, 2)
//   %v_1: f32[4, 2] = aten.slice_scatter.default(%w_1, %v, 0, 0, 2)
//   %v_2: f32[8] = aten.reshape.default(%v_1, [8])
//   return %v_1, %v_2, %v
// }

// == run
// input 0: f32[4, 2][2, 1]+0 = [2.0 4.0 6.0 8.0 5.0 6.0 7.0 8.0]
// output 0: f32[8][1]+0 = [2.0 4.0 6.0 8.0 5.0 6.0 7.0 8.0], on the storage of input 0
// output 1: f32[2, 2][2, 1]+0 = [2.0 4.0 6.0 8.0], on the storage of input 0
