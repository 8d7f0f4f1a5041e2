// What follows a view in its cells is no hint for the view's base, where another view of the base is read later: both are computed in
// their own parts of the cat.
// run: place
graph(%x: f32[2, 4]) {
  %a: f32[2, 4] = aten.exp.default(%x)
  %v: f32[1, 2, 4] = aten.view.default(%a, [1, 2, 4])
  %n: f32[1, 2, 4] = aten.neg.default(%v)
  %first: f32[8] = aten.view.default(%a, [8])
  %second: f32[8] = aten.view.default(%n, [8])
  %c: f32[16] = aten.cat.default([%first, %second])
  return %c
}

// == place
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %x, 32 bytes
// buffer buf1: output 0, 64 bytes
//
// graph(%x: f32[2, 4] @ buf0[2, 4]) {
//   %a @ buf1[2, 4] = aten.exp.default(%x @ buf0[2, 4])
//   free %v @ buf1[1, 2, 4] = aten.view.default(%a @ buf1[2, 4], [1, 2, 4])
//   %n @ buf1[1, 2, 4]+8 = aten.neg.default(%v @ buf1[1, 2, 4])
//   free %first @ buf1[8] = aten.view.default(%a @ buf1[2, 4], [8])
//   free %second @ buf1[8]+8 = aten.view.default(%n @ buf1[1, 2, 4]+8, [8])
//   free %c @ buf1[16] = aten.cat.default([%first @ buf1[8], %second @ buf1[8]+8])
//   return %c @ buf1[16]
// }
