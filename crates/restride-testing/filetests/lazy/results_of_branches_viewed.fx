// PyTorch refuses `view_as_real` of a conjugate view, which both branches return.
// run: functionalize
graph(%p: bool[], %a: c64[2]) {
  %r: c64[2] = higher_order.cond(%p, @yes, @no, [%a])
  %v: f32[2, 2] = aten.view_as_real.default(%r)
  return %v
}
graph @yes(%x: c64[2]) {
  %c: c64[2] = aten._conj.default(%x)
  return %c
}
graph @no(%x: c64[2]) {
  %m: c64[2] = aten.mul.Tensor(%x, %x)
  %c: c64[2] = aten._conj.default(%m)
  return %c
}

// == functionalize
// error: view_as_real doesn't work on unresolved conjugated tensors. To resolve the conjugate tensor so you can view it as real, use self.resolve_conj() (at %v = aten.view_as_real.default)
