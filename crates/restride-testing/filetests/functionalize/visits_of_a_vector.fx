// A row that is longer than a vector reads what it wrote: what comes out depends on the processor, so it is refused.
// run: functionalize, run
// torch: depends on the processor
graph(%x: f32[2, 40]) {
  %a: f32[2, 39][40, 1]+1 = aten.slice.Tensor(%x, 1, 1, 40)
  %b: f32[2, 39][40, 1] = aten.slice.Tensor(%x, 1, 0, 39)
  %w: f32[2, 39][40, 1]+1 = aten.add_.Tensor(%a, %b)
  return %x
}

// == functionalize
// error: unsupported: the write reads cells that it has written, in an order that depends on the processor (at %w = aten.add_.Tensor); clone the operand before the write

// == run
// interp refuses: unsupported: the write reads cells that it has written, in an order that depends on the processor (at %w = aten.add_.Tensor); clone the operand before the write
