// PyTorch asks where in the storage the elements begin: an intermediate that took a written input's place begins elsewhere.
// run: functionalize, run
graph(%x: u8[5]+1) {
  %c: u8[5]+1 = aten.clamp_.default(%x, 1, 4)
  %a: u8[2]+2 = aten.slice.Tensor(%x, 0, 1, 3)
  %b: i16[1]+1 = aten.view.dtype(%a, i16)
  %e: u8[0]+2 = aten.slice.Tensor(%x, 0, 1, 1)
  %f: i16[0]+1 = aten.view.dtype(%e, i16)
  %s: i16[1] = aten.add.Scalar(%b, 1)
  return %s, %f
}

// == functionalize
// stage: functional
// output 0: mutation of %x
// output 2: user as view i16[0]+1 of input %x
//
// graph(%x: u8[5]+1) {
//   %c: u8[5]+1 = aten.clamp.default(%x, 1, 4)
//   %a: u8[2]+2 = aten.slice.Tensor(%c, 0, 1, 3)
//   %b: i16[1]+1 = aten.view.dtype(%a, i16)
//   %s: i16[1] = aten.add.Scalar(%b, 1)
//   %e: u8[0]+2 = aten.slice.Tensor(%c, 0, 1, 1)
//   %f: i16[0]+1 = aten.view.dtype(%e, i16)
//   return %c, %s, %f
// }

// == run
// input 0: u8[5][1]+1 = [1 2 3 4 4]
// output 0: i16[1][1]+0 = [771]
// output 1: i16[0][1]+1 = [], on the storage of input 0
