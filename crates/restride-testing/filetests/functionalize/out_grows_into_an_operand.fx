// Pointwise forms look for shared memory before they resize out=: then it reaches into the operand that they read.
// run: functionalize, run
// torch: the order of a loop
graph(%x: f32[5]) {
  %a: f32[4]+1 = aten.slice.Tensor(%x, 0, 1, 5)
  %o: f32[1] = aten.slice.Tensor(%x, 0, 0, 1)
  %c: f32[4] = aten.neg.out(%a, out=%o)
  return %c
}

// == functionalize
// error: unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write. (at %c = aten.neg.out)

// == run
// interp refuses: unsupported: the write reads cells of its own target, in the order of PyTorch's loop. Clone the operand before the write. (at %c = aten.neg.out)
