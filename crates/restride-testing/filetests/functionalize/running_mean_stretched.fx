// An operator that writes several tensors does not write one whose elements share a cell.
// run: functionalize, run
graph(%x: f32[2, 2], %m: f32[1]) {
  %v: f32[2] = aten.new_ones.default(%x, [2])
  %s: f32[2][0] = aten.expand.default(%m, [2])
  %y: f32[2, 2], %a: f32[2], %b: f32[2] = aten._native_batch_norm_legit.default(%x, None, None, %s, %v, True, 0.5, 1.0)
  return %y
}

// == functionalize
// error: aten._native_batch_norm_legit.default into a tensor with several elements in one cell (at %y, %a, %b = aten._native_batch_norm_legit.default); clone the tensor before writing it

// == run
// interp refuses: aten._native_batch_norm_legit.default into a tensor with several elements in one cell (at %y, %a, %b = aten._native_batch_norm_legit.default); clone the tensor before writing it
