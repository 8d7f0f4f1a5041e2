// Views that undo each other between scatters: all is computed in the memory of the output.
// run: copies, run
graph(%x: f32[4, 6]) {
  %y: f32[4, 6] = aten.mul.Tensor(%x, 2)
  %u: f32[4, 1, 6] = aten.unsqueeze.default(%y, 1)
  %a: f32[1, 6] = aten.select.int(%u, 0, 0)
  %m: f32[1, 6] = aten.neg.default(%a)
  %u1: f32[4, 1, 6] = aten.select_scatter.default(%u, %m, 0, 0)
  %y1: f32[4, 6] = aten.squeeze.dim(%u1, 1)
  %t: f32[6, 4][1, 6] = aten.t.default(%y1)
  %s: f32[4, 6] = aten.t.default(%t)
  %w: f32[4, 6] = aten.add.Tensor(%s, %s)
  %w1: f32[6, 4][1, 6] = aten.t.default(%w)
  %b: f32[4][6]+5 = aten.select.int(%w1, 0, 5)
  %n: f32[4] = aten.mul.Tensor(%b, 3)
  %w2: f32[6, 4][1, 6] = aten.select_scatter.default(%w1, %n, 0, 5)
  %y2: f32[4, 6] = aten.t.default(%w2)
  %p: f32[4, 6] = aten.mul.Tensor(%y2, 2)
  return %y2, %p
}

// == copies
// none

// == run
// input 0: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// output 0: f32[4, 6][6, 1]+0 = [-0.0 -4.0 -8.0 -12.0 -16.0 -60.0 24.0 28.0 32.0 36.0 40.0 132.0 48.0 52.0 56.0 60.0 64.0 204.0 72.0 76.0 80.0 84.0 88.0 276.0]
// output 1: f32[4, 6][6, 1]+0 = [-0.0 -8.0 -16.0 -24.0 -32.0 -120.0 48.0 56.0 64.0 72.0 80.0 264.0 96.0 104.0 112.0 120.0 128.0 408.0 144.0 152.0 160.0 168.0 176.0 552.0]
