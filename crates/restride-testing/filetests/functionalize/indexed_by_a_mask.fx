// One number put where a mask is set is read first: it may be one of the elements.
// run: functionalize, run
graph(%x: i64[3], %m: bool[3]) {
  %n: i64[]+1 = aten.select.int(%x, 0, 1)
  %y: i64[3] = aten.index_put_.default(%x, [%m], %n)
  return %y
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 1: user as view i64[3] of input %x
//
// graph(%x: i64[3], %m: bool[3]) {
//   %n: i64[]+1 = aten.select.int(%x, 0, 1)
//   %y: i64[3] = aten.index_put.default(%x, [%m], %n)
//   return %y, %y
// }

// == run
// input 0: i64[3][1]+0 = [0 1 1]
// input 1: bool[3][1]+0 = [false true true]
// output 0: i64[3][1]+0 = [0 1 1], on the storage of input 0
