// `baddbmm_` reads its factors while it writes the target, in an order that depends on the sizes: what is left has no meaning.
// run: functionalize, run
// torch: the order of a loop
graph(%x: f32[3, 2, 2], %y: f32[3, 2, 2]) {
  %a: f32[3, 2, 2] = aten.alias.default(%x)
  %c: f32[3, 2, 2] = aten.baddbmm_.default(%x, %a, %y)
  return %c
}

// == functionalize
// error: unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write. (at %c = aten.baddbmm_.default)

// == run
// interp refuses: unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write. (at %c = aten.baddbmm_.default)
