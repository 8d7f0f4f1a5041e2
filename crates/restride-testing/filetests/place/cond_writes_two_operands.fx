// Both results of the cond are made on its operands: the second does not go into the region of the first, where it is
// scattered later.
// run: place, remarks, copies, run
graph(%x: f32[3], %y: f32[], %p: bool[]) {
  %a: f32[3] = aten.mul.Tensor(%x, 2)
  %b: f32[] = aten.mul.Tensor(%y, 2)
  %c: f32[3], %d: f32[] = higher_order.cond(%p, @yes, @no, [%a, %b])
  %e: f32[3] = aten.select_scatter.default(%c, %d, 0, 1)
  %f: f32[] = aten.add.Tensor(%d, 1)
  return %e, %f
}

graph @yes(%a: f32[3], %b: f32[]) {
  %c: f32[3] = aten.select_scatter.default(%a, %b, 0, 1)
  return %c, %b
}

graph @no(%a: f32[3], %b: f32[]) {
  %c: f32[] = aten.mul.Tensor(%b, 3)
  return %a, %c
}

// == place
// stage: placed
// arena 128 bytes, at least 128 needed, optimal
// buffer buf0: input %x, 12 bytes
// buffer buf1: input %y, 4 bytes
// buffer buf2: input %p, 1 bytes
// buffer buf3: arena, 12 bytes at 0
// buffer buf4: arena, 4 bytes at 64
// buffer buf5: output 0, 12 bytes
// buffer buf6: output 1, 4 bytes
//
// graph(%x: f32[3] @ buf0[3], %y: f32[] @ buf1[], %p: bool[] @ buf2[]) {
//   %a @ buf3[3] = aten.mul.Tensor(%x @ buf0[3], 2)
//   %b @ buf4[] = aten.mul.Tensor(%y @ buf1[], 2)
//   %c @ buf5[3], %d @ buf6[] = higher_order.cond(%p @ buf2[], @yes, @no, [%a @ buf3[3], %b @ buf4[]])
//   move %d: buf6[] -> buf5[]+1
//   free %e @ buf5[3] = aten.select_scatter.default(%c @ buf5[3], %d @ buf6[], 0, 1)
//   %f @ buf6[] = aten.add.Tensor(%d @ buf6[], 1)
//   return %e @ buf5[3], %f @ buf6[]
// }
//
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %a, 12 bytes
// buffer buf1: input %b, 4 bytes
// buffer buf2: output 0, 12 bytes
// buffer buf3: output 1, 4 bytes
//
// graph @yes(%a: f32[3] @ buf0[3], %b: f32[] @ buf1[]) {
//   move %a: buf0[3] -> buf2[3]
//   move %b: buf1[] -> buf2[]+1
//   free %c @ buf2[3] = aten.select_scatter.default(%a @ buf0[3], %b @ buf1[], 0, 1)
//   move %b: buf1[] -> buf3[]
//   return %c @ buf2[3], %b @ buf1[]
// }
//
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %a, 12 bytes
// buffer buf1: input %b, 4 bytes
// buffer buf2: output 1, 4 bytes
// buffer buf3: output 0, 12 bytes
//
// graph @no(%a: f32[3] @ buf0[3], %b: f32[] @ buf1[]) {
//   %c @ buf2[] = aten.mul.Tensor(%b @ buf1[], 3)
//   move %a: buf0[3] -> buf3[3]
//   return %a @ buf0[3], %c @ buf2[]
// }

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 12 bytes
// %b = aten.mul.Tensor(%y, 2)
//   not computed in its operand, %y: the caller can see that memory, 4 bytes
// %c = aten.select_scatter.default(%a, %b, 0, 1)
//   scatter not written into its base, %a: the caller can see that memory, 12 bytes
// %c = aten.select_scatter.default(%a, %b, 0, 1)
//   computed in the output's memory: taken, 12 bytes
// %c = aten.select_scatter.default(%a, %b, 0, 1)
//   source not computed in its region, %b: it is an input, 4 bytes
// %c = aten.mul.Tensor(%b, 3)
//   computed in the output's memory: taken, 4 bytes
// %c, %d = higher_order.cond(%p, @yes, @no, [%a, %b])
//   source not computed in its region, %c: it shares only some cells with an operand, 4 bytes
// %e = aten.select_scatter.default(%c, %d, 0, 1)
//   scatter written into its base, %c: taken, 12 bytes
// %f = aten.add.Tensor(%d, 1)
//   computed in the output's memory: taken, 4 bytes
// %f = aten.add.Tensor(%d, 1)
//   computed in a dying operand, %d: taken, 4 bytes

// == copies
// %a to result 0, 12 bytes
//   its elements are where the caller gave them
// %a to result 0, for %c = aten.select_scatter.default in @yes, 12 bytes
//   scatter not written into its base: the caller can see that memory
// %d to output 0, for %e = aten.select_scatter.default, 4 bytes
//   source not computed in its region: it shares only some cells with an operand
// %b to result 0, for %c = aten.select_scatter.default in @yes, 4 bytes
//   source not computed in its region: it is an input
// %b to result 1, 4 bytes
//   its elements are where the caller gave them

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// input 1: f32[][]+0 = [0.0]
// input 2: bool[][]+0 = [false]
// output 0: f32[3][1]+0 = [0.0 0.0 4.0]
// output 1: f32[][]+0 = [1.0]
