// What is computed of an item and put back in its place is computed there; what is computed of another item or of the whole
// is not, and what is read after it stays as it was.
// run: functionalize, reinplace, views, run
graph(%x: f32[4, 3]) {
  %a: f32[4, 3] = aten.clone.default(%x)
  %i: f32[3] = aten.select.int(%a, 0, 0)
  %j: f32[3] = aten.add_.Tensor(%i, 1)
  %k: f32[3]+3 = aten.select.int(%a, 0, 1)
  %l: f32[3]+3 = aten.relu_.default(%k)
  %m: f32[3]+6 = aten.select.int(%a, 0, 2)
  %n: f32[3] = aten.mul.Tensor(%l, %l)
  %o: f32[3]+6 = aten.copy_.default(%m, %n)
  %p: f32[3]+9 = aten.select.int(%a, 0, 3)
  %q: f32[3] = aten.neg.default(%p)
  %r: f32[3] = aten.exp.default(%p)
  %s: f32[3]+9 = aten.copy_.default(%p, %q)
  return %a, %r
}

// == functionalize
// stage: functional
//
// graph(%x: f32[4, 3]) {
//   %a: f32[4, 3] = aten.clone.default(%x)
//   %i: f32[3] = aten.select.int(%a, 0, 0)
//   %j: f32[3] = aten.add.Tensor(%i, 1)
//   %j_1: f32[4, 3] = aten.select_scatter.default(%a, %j, 0, 0)
//   %k: f32[3]+3 = aten.select.int(%j_1, 0, 1)
//   %l: f32[3]+3 = aten.relu.default(%k)
//   %l_1: f32[4, 3] = aten.select_scatter.default(%j_1, %l, 0, 1)
//   %n: f32[3] = aten.mul.Tensor(%l, %l)
//   %o: f32[4, 3] = aten.select_scatter.default(%l_1, %n, 0, 2)
//   %p: f32[3]+9 = aten.select.int(%o, 0, 3)
//   %q: f32[3] = aten.neg.default(%p)
//   %r: f32[3] = aten.exp.default(%p)
//   %s: f32[4, 3] = aten.select_scatter.default(%o, %q, 0, 3)
//   return %s, %r
// }

// == reinplace
// graph(%x: f32[4, 3]) {
//   %i: f32[3] = aten.select.int(%x, 0, 0)
//   %j: f32[3] = aten.add.Tensor(%i, 1)
//   %x_laid_out: f32[4, 3] = aten.clone.default(%x, memory_format=contiguous_format)
//   %j_1_region: f32[3] = aten.select.int(%x_laid_out, 0, 0)
//   %j_1_region_1: f32[3] = aten.copy_.default(%j_1_region, %j)
//   %k: f32[3]+3 = aten.select.int(%x_laid_out, 0, 1)
//   %l: f32[3]+3 = aten.relu_.default(%k)
//   %n: f32[3] = aten.mul.Tensor(%l, %l)
//   %o_region: f32[3]+6 = aten.select.int(%x_laid_out, 0, 2)
//   %o_region_1: f32[3]+6 = aten.copy_.default(%o_region, %n)
//   %p: f32[3]+9 = aten.select.int(%x_laid_out, 0, 3)
//   %q: f32[3] = aten.neg.default(%p)
//   %r: f32[3] = aten.exp.default(%p)
//   %s_region: f32[3]+9 = aten.select.int(%x_laid_out, 0, 3)
//   %s_region_1: f32[3]+9 = aten.copy_.default(%s_region, %q)
//   return %x_laid_out, %r
// }

// == views
// stage: functional
//
// graph(%x: f32[4, 3]) {
//   %i: f32[3] = aten.select.int(%x, 0, 0)
//   %j: f32[3] = aten.add.Tensor(%i, 1)
//   %j_1: f32[4, 3] = aten.select_scatter.default(%x, %j, 0, 0)
//   %k: f32[3]+3 = aten.select.int(%j_1, 0, 1)
//   %l: f32[3]+3 = aten.relu.default(%k)
//   %l_1: f32[4, 3] = aten.select_scatter.default(%j_1, %l, 0, 1)
//   %n: f32[3] = aten.mul.Tensor(%l, %l)
//   %o: f32[4, 3] = aten.select_scatter.default(%l_1, %n, 0, 2)
//   %p: f32[3]+9 = aten.select.int(%o, 0, 3)
//   %q: f32[3] = aten.neg.default(%p)
//   %r: f32[3] = aten.exp.default(%p)
//   %s: f32[4, 3] = aten.select_scatter.default(%o, %q, 0, 3)
//   return %s, %r
// }

// == run
// input 0: f32[4, 3][3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// output 0: f32[4, 3][3, 1]+0 = [1.0 2.0 3.0 3.0 4.0 5.0 9.0 16.0 25.0 -9.0 -10.0 -11.0]
// output 1: f32[3][1]+0 = [8103.083984375 22026.46484375 59874.140625]
