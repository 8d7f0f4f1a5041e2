// `cat` refuses a stretched out= of the result's sizes.
// run: functionalize, run
graph(%x: i64[2], %y: i64[2, 2]) {
  %e: i64[4, 2][0, 1] = aten.expand.default(%x, [4, -1])
  %c: i64[4, 2][0, 1] = aten.cat.out([%y, %y], out=%e)
  return %c
}

// == functionalize
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %c = aten.cat.out)

// == run
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %c = aten.cat.out)
