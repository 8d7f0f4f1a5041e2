// A mask along an inner dimension gives a contiguous tensor with a size that a run learns: no write puts two elements into one cell.
// run: run
symbol u0 in [0, 3]
graph(%x: f32[3, 4], %y: f32[2, 3, 4]) {
  %select: f32[3][4] = aten.select.int(%x, 1, 0)
  %gt: bool[3] = aten.gt.Scalar(%select, -0.5)
  %index: f32[2, u0, 4][4*Max(1, u0), 4, 1] = aten.index.Tensor(%y, [None, %gt])
  %add_: f32[2, u0, 4][4*Max(1, u0), 4, 1] = aten.add_.Tensor(%index, 1)
  %index_put_: f32[2, 3, 4] = aten.index_put_.default(%y, [None, %gt], %add_)
  return %index_put_, %add_
}

// == run
// input 0: f32[3, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0]
// input 1: f32[2, 3, 4][12, 4, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0]
// output 0: f32[2, 3, 4][12, 4, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0], on the storage of input 1
// output 1: f32[2, 3, 4][12, 4, 1]+0 = [1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0]
