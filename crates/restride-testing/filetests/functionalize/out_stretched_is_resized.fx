// `cat` resizes its out= before it checks it: a stretched tensor of other sizes becomes one of its own cells.
// run: functionalize, run
graph(%x: i64[3], %y: i64[2, 2]) {
  %e: i64[2, 3][0, 1] = aten.expand.default(%x, [2, -1])
  %c: i64[4, 2] = aten.cat.out([%y, %y], out=%e)
  %s: i64[4, 2] = aten.add.Tensor(%c, 1)
  return %s, %e
}

// == functionalize
// error: %x is written or read beyond its own elements; give the inputs with --inputs, so that their storage is known

// == run
// input 0: i64[3][1]+0 = [0 1 2]
// input 1: i64[2, 2][2, 1]+0 = [0 1 2 3]
// output 0: i64[4, 2][2, 1]+0 = [1 2 3 4 1 2 3 4]
// output 1: i64[4, 2][2, 1]+0 = [0 1 2 3 0 1 2 3], on the storage of input 0
