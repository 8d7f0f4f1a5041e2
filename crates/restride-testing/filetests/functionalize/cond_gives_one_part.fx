// Branches that give the same part of an operand: the result is a view, and sees what is written there later.
// run: functionalize, run
graph(%x: i64[3], %p: bool[]) {
  %y: i64[1]+1 = higher_order.cond(%p, @yes, @no, [%x])
  %w: i64[3] = aten.add_.Scalar(%x, 10)
  return %y
}

graph @yes(%a: i64[3]) {
  %v: i64[1]+1 = aten.slice.Tensor(%a, 0, 1, 2)
  return %v
}

graph @no(%a: i64[3]) {
  %u: i64[1], %v: i64[2]+1 = aten.split_with_sizes.default(%a, [1, 2])
  %s: i64[1]+1 = aten.slice.Tensor(%v, 0, 0, 1)
  return %s
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view i64[1]+1 of input %x
//
// graph(%x: i64[3], %p: bool[]) {
//   %w: i64[3] = aten.add.Scalar(%x, 10)
//   %v: i64[1]+1 = aten.slice.Tensor(%w, 0, 1, 2)
//   return %w, %v
// }

// == run
// input 0: i64[3][1]+0 = [10 11 12]
// input 1: bool[][]+0 = [false]
// output 0: i64[1][1]+1 = [11], on the storage of input 0
