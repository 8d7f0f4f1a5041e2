// The second slice begins within a larger element: PyTorch refuses to view it as such.
// run: functionalize, run
graph(%x: f16[3, 1]) {
  %a: f32[3, 0] = higher_order.map_impl(@each, [%x], [])
  return %a
}

graph @each(%s: f16[1]) {
  %e: f16[0] = aten.slice.Tensor(%s, 0, 0, 0)
  %v: f32[0] = aten.view.dtype(%e, f32)
  %w: f32[0] = aten.add.Scalar(%v, 1)
  return %w
}

// == functionalize
// error: self.storage_offset() must be divisible by 2 to view float16 as float32 (different element sizes), but got 1 (at %v = aten.view.dtype)

// == run
// error: self.storage_offset() must be divisible by 2 to view float16 as float32 (different element sizes), but got 1 (at %v = aten.view.dtype)
