// A lazily mapped out= that the call reads is resized: operands and result are copies.
// run: functionalize, run
graph(%x: i64[3]) {
  %c: i64[3] = aten.clone.default(%x)
  %n: i64[3] = aten._neg_view.default(%c)
  %w: i64[2, 1][1, 2]+1 = aten.as_strided.default(%n, [2, 1], [1, 2], 1)
  %r: i64[4, 1]+1 = aten.cat.out([%w, %w], out=%w)
  %q: i64[4, 1] = aten.resolve_neg.default(%w)
  return %q, %c
}

// == functionalize
// stage: functional
// output 1: user as view i64[3] of base 2
// output 2: base
//
// graph(%x: i64[3]) {
//   %c: i64[3] = aten.clone.default(%x)
//   %r: i64[2]+1 = aten.slice.Tensor(%c, 0, 1, 3)
//   %r_1: i64[2, 1]+1 = aten.reshape.default(%r, [2, 1])
//   %r_2: i64[2, 1][1, 2]+1 = aten.neg.default(%r_1)
//   %r_3: i64[4, 1] = aten.cat.default([%r_2, %r_2])
//   %r_4: i64[5] = aten.constant_pad_nd.default(%c, [0, 2])
//   %r_5: i64[4, 1]+1 = aten.neg.default(%r_3)
//   %r_6: i64[4]+1 = aten.reshape.default(%r_5, [4])
//   %r_7: i64[5] = aten.slice_scatter.default(%r_4, %r_6, 0, 1, 5)
//   %v: i64[3] = aten.slice.Tensor(%r_7, 0, 0, 3)
//   return %r_3, %v, %r_7
// }

// == run
// input 0: i64[3][1]+0 = [0 1 2]
// output 0: i64[4, 1][1, 1]+0 = [-1 -2 -1 -2]
// output 1: i64[3][1]+0 = [0 1 2]
