// A conversion to another element type is a tensor of its own: what was converted may be overwritten, and nothing is copied first.
// run: reinplace, run
graph(%index: i64[3]) {
  %b: bool[3] = aten.to.dtype(%index, bool)
  %w: bool[2, 2][1, 1] = aten.unfold.default(%b, 0, 2, 1)
  %f: i64[3] = aten.fill_.Scalar(%index, -3)
  return %f, %w
}

// == reinplace
// graph(%index: i64[3]) {
//   %b: bool[3] = aten.to.dtype(%index, bool)
//   %f: i64[3] = aten.fill_.Scalar(%index, -3)
//   %w: bool[2, 2][1, 1] = aten.unfold.default(%b, 0, 2, 1)
//   return %f, %w
// }

// == run
// input 0: i64[3][1]+0 = [-3 -3 -3]
// output 0: i64[3][1]+0 = [-3 -3 -3], on the storage of input 0
// output 1: bool[2, 2][1, 1]+0 = [false true true true]
