// `bmm` writes a stretched out= without a check: what is left depends on the order of its loop.
// run: functionalize, run
// torch: the order of a loop
graph(%x: f32[2, 2], %y: f32[3, 2, 2]) {
  %e: f32[3, 2, 2][0, 2, 1] = aten.expand.default(%x, [3, -1, -1])
  %c: f32[3, 2, 2][0, 2, 1] = aten.bmm.out(%y, %y, out=%e)
  return %c
}

// == functionalize
// error: aten.bmm.out into a tensor with several elements in one cell (at %c = aten.bmm.out); clone the tensor before writing it

// == run
// interp refuses: aten.bmm.default into a tensor with several elements in one cell (at %c = aten.bmm.out); clone the tensor before writing it
