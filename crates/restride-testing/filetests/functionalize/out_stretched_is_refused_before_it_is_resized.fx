// Pointwise forms refuse a stretched out= of other sizes, too.
// run: functionalize, run
graph(%x: i64[3], %y: i64[2, 2]) {
  %e: i64[2, 3][0, 1] = aten.expand.default(%x, [2, -1])
  %c: i64[2, 2] = aten.add.out(%y, %y, out=%e)
  return %c
}

// == functionalize
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %c = aten.add.out)

// == run
// error: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. (at %c = aten.add.out)
