// `bmm` reads its operands while it writes the out= on their memory, without a check: what is left depends on the order of its loop.
// run: functionalize, run
// torch: the order of a loop
graph(%x: f32[3, 2, 2], %y: f32[3, 2, 2]) {
  %a: f32[3, 2, 2] = aten.alias.default(%x)
  %c: f32[3, 2, 2] = aten.bmm.out(%x, %y, out=%a)
  return %c
}

// == functionalize
// error: unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write. (at %c = aten.bmm.out)

// == run
// interp refuses: unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write. (at %c = aten.bmm.out)
