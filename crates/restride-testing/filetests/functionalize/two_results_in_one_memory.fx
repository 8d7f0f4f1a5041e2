// PyTorch writes both results to one memory, unchecked: what is left has no meaning.
// run: functionalize, run
// torch: resizes the one memory under the other result
graph(%x: i64[2, 3], %o: i64[2]) {
  %v: i64[2], %i: i64[2] = aten.min.dim_min(%x, 1, min=%o, min_indices=%o)
  return %v
}

// == functionalize
// error: unsupported: one call writes two results to the same memory. Give each result its own memory. (at %v, %i = aten.min.dim_min)

// == run
// interp refuses: unsupported: one call writes two results to the same memory. Give each result its own memory. (at %v, %i = aten.min.dim_min)
