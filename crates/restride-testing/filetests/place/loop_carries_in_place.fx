// A loop updates what it carries in the memory of what it is given where that dies: of %x only the row is written.
// What is exchanged takes one copy aside, and what is read later stays.
// run: place, remarks, copies, run
graph(%n: i64[], %x: f32[2, 2]) {
  %a: f32[2, 2] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 2] = aten.neg.default(%a)
  %k: i64[], %y: f32[2, 2] = higher_order.while_loop(@more, @step, [%n, %a], [])
  %p: f32[2, 2], %q: f32[2, 2] = higher_order.while_loop(@both, @exchange, [%y, %b], [])
  %s: f32[2, 2] = aten.add.Tensor(%p, %b)
  return %k, %s, %q
}
graph @more(%i: i64[], %x: f32[2, 2]) {
  %c: bool[] = aten.lt.Scalar(%i, 3)
  return %c
}
graph @step(%i: i64[], %x: f32[2, 2]) {
  %j: i64[] = aten.add.Tensor(%i, 1)
  %r: f32[2] = aten.select.int(%x, 0, 1)
  %t: f32[2] = aten.add.Tensor(%r, 1)
  %z: f32[2, 2] = aten.select_scatter.default(%x, %t, 0, 1)
  return %j, %z
}
graph @both(%u: f32[2, 2], %v: f32[2, 2]) {
  %m: f32[] = aten.max.default(%u)
  %c: bool[] = aten.gt.Scalar(%m, 0)
  return %c
}
graph @exchange(%u: f32[2, 2], %v: f32[2, 2]) {
  return %v, %u
}

// == place
// stage: placed
// arena 192 bytes, at least 192 needed, optimal
// buffer buf0: input %n, 8 bytes
// buffer buf1: input %x, 16 bytes
// buffer buf2: output 1, 16 bytes
// buffer buf3: arena, 16 bytes at 0
// buffer buf4: output 0, 8 bytes
// buffer buf5: arena, 64 bytes at 64
// buffer buf6: output 2, 16 bytes
// buffer buf7: arena, 128 bytes at 64
//
// graph(%n: i64[] @ buf0[], %x: f32[2, 2] @ buf1[2, 2]) {
//   %a @ buf2[2, 2] = aten.mul.Tensor(%x @ buf1[2, 2], 2)
//   %b @ buf3[2, 2] = aten.neg.default(%a @ buf2[2, 2])
//   %k @ buf4[], %y @ buf2[2, 2] = higher_order.while_loop(@graph1, @graph2, [%n @ buf0[], %a @ buf2[2, 2]], []) !scratch buf5
//   %p @ buf2[2, 2], %q @ buf6[2, 2] = higher_order.while_loop(@graph3, @graph4, [%y @ buf2[2, 2], %b @ buf3[2, 2]], []) !scratch buf7
//   %s @ buf2[2, 2] = aten.add.Tensor(%p @ buf2[2, 2], %b @ buf3[2, 2])
//   return %k @ buf4[], %s @ buf2[2, 2], %q @ buf6[2, 2]
// }
//
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %i, 8 bytes
// buffer buf1: input %x, 16 bytes
// buffer buf2: output 0, 1 bytes
//
// graph @graph1(%i: i64[] @ buf0[], %x: f32[2, 2] @ buf1[2, 2]) {
//   %c @ buf2[] = aten.lt.Scalar(%i @ buf0[], 3)
//   return %c @ buf2[]
// }
//
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %i, 8 bytes
// buffer buf1: input %x, 16 bytes
//
// graph @graph2(%i: i64[] @ buf0[], %x: f32[2, 2] @ buf1[2, 2]) {
//   %j @ buf0[] = aten.add.Tensor(%i @ buf0[], 1)
//   free %r @ buf1[2]+2 = aten.select.int(%x @ buf1[2, 2], 0, 1)
//   %t @ buf1[2]+2 = aten.add.Tensor(%r @ buf1[2]+2, 1)
//   free %z @ buf1[2, 2] = aten.select_scatter.default(%x @ buf1[2, 2], %t @ buf1[2]+2, 0, 1)
//   return %j @ buf0[], %z @ buf1[2, 2]
// }
//
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %u, 16 bytes
// buffer buf1: input %v, 16 bytes
// buffer buf2: arena, 4 bytes at 0
// buffer buf3: output 0, 1 bytes
//
// graph @graph3(%u: f32[2, 2] @ buf0[2, 2], %v: f32[2, 2] @ buf1[2, 2]) {
//   %m @ buf2[] = aten.max.default(%u @ buf0[2, 2])
//   %c @ buf3[] = aten.gt.Scalar(%m @ buf2[], 0)
//   return %c @ buf3[]
// }
//
// arena 64 bytes, at least 64 needed, optimal
// buffer buf0: input %u, 16 bytes
// buffer buf1: input %v, 16 bytes
// buffer buf2: arena, 16 bytes at 0
//
// graph @graph4(%u: f32[2, 2] @ buf0[2, 2], %v: f32[2, 2] @ buf1[2, 2]) {
//   move %v: buf1[2, 2] -> buf2[2, 2]
//   move %u: buf0[2, 2] -> buf1[2, 2]
//   move %v: buf2[2, 2] -> buf0[2, 2]
//   return %v @ buf1[2, 2], %u @ buf0[2, 2]
// }

// == remarks
// %b = aten.neg.default(%a)
//   not computed in its operand, %a: still read by %k, %y = higher_order.while_loop(@graph1, @graph2, [%n, %a], []), 16 bytes
// %c = aten.lt.Scalar(%i, 3)
//   computed in the output's memory: taken, 1 bytes
// %j = aten.add.Tensor(%i, 1)
//   computed in the input's memory, %i: taken, 8 bytes
// %j = aten.add.Tensor(%i, 1)
//   computed in a dying operand, %i: taken, 8 bytes
// %r = aten.select.int(%x, 0, 1)
//   kept as a view of its base, %x: taken, 8 bytes
// %t = aten.add.Tensor(%r, 1)
//   source computed in its region, %x: taken, 8 bytes
// %t = aten.add.Tensor(%r, 1)
//   computed in a dying operand, %r: taken, 8 bytes
// %z = aten.select_scatter.default(%x, %t, 0, 1)
//   scatter written into its base, %x: taken, 16 bytes
// %k, %y = higher_order.while_loop(@graph1, @graph2, [%n, %a], [])
//   computed in the output's memory: taken, 8 bytes
// %k, %y = higher_order.while_loop(@graph1, @graph2, [%n, %a], [])
//   computed in a dying operand, %a: taken, 16 bytes
// %c = aten.gt.Scalar(%m, 0)
//   computed in the output's memory: taken, 1 bytes
// %p, %q = higher_order.while_loop(@graph3, @graph4, [%y, %b], [])
//   computed in a dying operand, %y: taken, 16 bytes
// %p, %q = higher_order.while_loop(@graph3, @graph4, [%y, %b], [])
//   computed in the output's memory: taken, 16 bytes
// %s = aten.add.Tensor(%p, %b)
//   computed in the output's memory: taken, 16 bytes
// %s = aten.add.Tensor(%p, %b)
//   computed in a dying operand, %p: taken, 16 bytes

// == copies
// %v to the arena, 16 bytes
//   its elements are where the caller gave them
// %u to %v, 16 bytes
//   its elements are where the caller gave them
// %v to %u, 16 bytes
//   its elements are where the caller gave them

// == run
// input 0: i64[][]+0 = [0]
// input 1: f32[2, 2][2, 1]+0 = [0.0 1.0 2.0 3.0]
// output 0: i64[][]+0 = [3]
// output 1: f32[2, 2][2, 1]+0 = [-0.0 -4.0 -8.0 -12.0]
// output 2: f32[2, 2][2, 1]+0 = [0.0 2.0 7.0 9.0]
