// Writes of parts of parts, as PyTorch functionalizes them: each is one write in the base, and costs no copy.
// run: copies, run
graph(%x: f32[4, 3, 4]) {
  %y: f32[4, 3, 4] = aten.mul.Tensor(%x, 2)
  %s: f32[3, 4]+12 = aten.select.int(%y, 0, 1)
  %v: f32[4]+20 = aten.select.int(%s, 0, 2)
  %m: f32[4] = aten.mul.Tensor(%v, 2)
  %s1: f32[3, 4]+12 = aten.select.int(%y, 0, 1)
  %t: f32[3, 4]+12 = aten.select_scatter.default(%s1, %m, 0, 2)
  %y1: f32[4, 3, 4] = aten.select_scatter.default(%y, %t, 0, 1)
  %a: f32[2, 3, 4]+12 = aten.slice.Tensor(%y1, 0, 1, 3)
  %b: f32[2, 4, 3][12, 1, 4]+12 = aten.permute.default(%a, [0, 2, 1])
  %c: f32[2, 3][12, 5]+12 = aten.diagonal.default(%b, 0, 1, 2)
  %n: f32[2, 3] = aten.neg.default(%c)
  %d: f32[2, 4, 3][12, 1, 4]+12 = aten.diagonal_scatter.default(%b, %n, 0, 1, 2)
  %e: f32[2, 3, 4]+12 = aten.permute.default(%d, [0, 2, 1])
  %y2: f32[4, 3, 4] = aten.slice_scatter.default(%y1, %e, 0, 1, 3)
  %w: f32[48] = aten.view.default(%y2, [48])
  %u: f32[16][3] = aten.slice.Tensor(%w, 0, 0, 48, 3)
  %p: f32[16] = aten.add.Tensor(%u, 1)
  %w1: f32[48] = aten.slice_scatter.default(%w, %p, 0, 0, 48, 3)
  %y3: f32[4, 3, 4] = aten.view.default(%w1, [4, 3, 4])
  return %y3
}

// == copies
// none

// == run
// input 0: f32[4, 3, 4][12, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0]
// output 0: f32[4, 3, 4][12, 4, 1]+0 = [1.0 2.0 4.0 7.0 8.0 10.0 13.0 14.0 16.0 19.0 20.0 22.0 -23.0 26.0 28.0 31.0 32.0 -34.0 37.0 38.0 80.0 85.0 -88.0 92.0 -47.0 50.0 52.0 55.0 56.0 -58.0 61.0 62.0 64.0 67.0 -68.0 70.0 73.0 74.0 76.0 79.0 80.0 82.0 85.0 86.0 88.0 91.0 92.0 94.0]
