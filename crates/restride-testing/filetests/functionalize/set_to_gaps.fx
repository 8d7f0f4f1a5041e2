// `set_` with an offset takes no source with gaps.
// run: functionalize, run
graph(%x: f32[2], %y: f32[6]) {
  %v: f32[3][2] = aten.slice.Tensor(%y, 0, 0, 6, 2)
  %s: f32[2]+1 = aten.set_.source_Tensor_storage_offset(%x, %v, 1, [2], [1])
  return %s
}

// == functionalize
// error: passed in tensor to be used as storage must be contiguous (at %s = aten.set_.source_Tensor_storage_offset)

// == run
// error: passed in tensor to be used as storage must be contiguous (at %s = aten.set_.source_Tensor_storage_offset)
