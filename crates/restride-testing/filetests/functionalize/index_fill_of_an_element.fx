// The value of `index_fill_` is an element of the target: PyTorch reads it first. An index in the target's memory is refused.
// run: functionalize, run
graph(%x: f64[2, 3]) {
  %r: f64[3] = aten.select.int(%x, 0, 0)
  %v: f64[]+1 = aten.select.int(%r, 0, 1)
  %i: i64[2] = aten.arange.start_step(0, 3, 2, dtype=i64)
  %w: f64[2, 3] = aten.index_fill_.int_Tensor(%x, 1, %i, %v)
  return %w
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view f64[2, 3] of input %x
//
// graph(%x: f64[2, 3]) {
//   %i: i64[2] = aten.arange.start_step(0, 3, 2, dtype=i64)
//   %r: f64[3] = aten.select.int(%x, 0, 0)
//   %v: f64[]+1 = aten.select.int(%r, 0, 1)
//   %w: f64[2, 3] = aten.index_fill.int_Tensor(%x, 1, %i, %v)
//   return %w, %w
// }

// == run
// input 0: f64[2, 3][3, 1]+0 = [1.0 1.0 1.0 1.0 4.0 1.0]
// output 0: f64[2, 3][3, 1]+0 = [1.0 1.0 1.0 1.0 4.0 1.0], on the storage of input 0
