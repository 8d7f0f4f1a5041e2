// What grows through a view of smaller cells ends within one of the larger cells: the memory ends there too.
// run: functionalize, run
graph(%index: i64[3]) {
  %v: f16[12] = aten.view.dtype(%index, f16)
  %s: f16[1]+9 = aten.slice.Tensor(%v, 0, 9, 10)
  %r: f16[2, 3]+9 = aten.resize_.default(%s, [2, 3])
  %w: f16[2, 3]+9 = aten.fill_.Scalar(%r, 2)
  return %index
}

// == functionalize
// error: %index is written or read beyond its own elements; give the inputs with --inputs, so that their storage is known

// == run
// input 0: i64[3][1]+0 = [0 1 4611756388245307394]
// output 0: i64[3][1]+0 = [0 1 4611756388245307394], on the storage of input 0
