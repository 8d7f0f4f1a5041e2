// run: fuse, place fused, run
// A convolution and a product head what follows them: they are computed in the memory of the result, which the calls behind them finish
// part by part. A result that another node reads heads nothing.
graph(%x: f32[1, 2, 4, 4], %w: f32[3, 2, 3, 3], %m: f32[3], %v: f32[3], %r: f32[1, 3, 4, 4], %a: f32[4, 6], %b: f32[5, 6], %c: f32[5]) {
  %conv: f32[1, 3, 4, 4] = aten.conv2d.default(%x, %w, None, [1, 1], [1, 1])
  %norm: f32[1, 3, 4, 4] = aten.batch_norm.default(%conv, None, None, %m, %v, False, 0.1, 1e-05, True)
  %sum: f32[1, 3, 4, 4] = aten.add.Tensor(%norm, %r)
  %out: f32[1, 3, 4, 4] = aten.relu.default(%sum)
  %lin: f32[4, 5] = aten.linear.default(%a, %b, %c)
  %view: f32[4, 1, 5] = aten.view.default(%lin, [4, 1, 5])
  %act: f32[4, 1, 5] = aten.gelu.default(%view)
  %two: f32[4, 5] = aten.linear.default(%a, %b)
  %tanh: f32[4, 5] = aten.tanh.default(%two)
  return %out, %act, %two, %tanh
}

// == fuse
// stage: functional
//
// graph(
//   %x: f32[1, 2, 4, 4],
//   %w: f32[3, 2, 3, 3],
//   %m: f32[3],
//   %v: f32[3],
//   %r: f32[1, 3, 4, 4],
//   %a: f32[4, 6],
//   %b: f32[5, 6],
//   %c: f32[5],
// ) {
//   %out: f32[1, 3, 4, 4] = restride.fused.default(@graph1, [%x, %w, %m, %v, %r])
//   %act: f32[4, 1, 5] = restride.fused.default(@graph2, [%a, %b, %c])
//   %two: f32[4, 5] = aten.linear.default(%a, %b)
//   %tanh: f32[4, 5] = aten.tanh.default(%two)
//   return %out, %act, %two, %tanh
// }
//
// graph @graph1(%x: f32[1, 2, 4, 4], %w: f32[3, 2, 3, 3], %m: f32[3], %v: f32[3], %r: f32[1, 3, 4, 4]) {
//   %conv: f32[1, 3, 4, 4] = aten.conv2d.default(%x, %w, None, [1, 1], [1, 1])
//   %norm: f32[1, 3, 4, 4] = aten.batch_norm.default(%conv, None, None, %m, %v, False, 0.1, 1e-5, True)
//   %sum: f32[1, 3, 4, 4] = aten.add.Tensor(%norm, %r)
//   %out: f32[1, 3, 4, 4] = aten.relu.default(%sum)
//   return %out
// }
//
// graph @graph2(%a: f32[4, 6], %b: f32[5, 6], %c: f32[5]) {
//   %lin: f32[4, 5] = aten.linear.default(%a, %b, %c)
//   %view: f32[4, 1, 5] = aten.view.default(%lin, [4, 1, 5])
//   %act: f32[4, 1, 5] = aten.gelu.default(%view)
//   return %act
// }

// == place fused
// stage: placed
// arena 0 bytes, at least 0 needed, optimal
// buffer buf0: input %x, 128 bytes
// buffer buf1: input %w, 216 bytes
// buffer buf2: input %m, 12 bytes
// buffer buf3: input %v, 12 bytes
// buffer buf4: input %r, 192 bytes
// buffer buf5: input %a, 96 bytes
// buffer buf6: input %b, 120 bytes
// buffer buf7: input %c, 20 bytes
// buffer buf8: output 0, 192 bytes
// buffer buf9: output 1, 80 bytes
// buffer buf10: output 2, 80 bytes
// buffer buf11: output 3, 80 bytes
//
// graph(
//   %x: f32[1, 2, 4, 4] @ buf0[1, 2, 4, 4],
//   %w: f32[3, 2, 3, 3] @ buf1[3, 2, 3, 3],
//   %m: f32[3] @ buf2[3],
//   %v: f32[3] @ buf3[3],
//   %r: f32[1, 3, 4, 4] @ buf4[1, 3, 4, 4],
//   %a: f32[4, 6] @ buf5[4, 6],
//   %b: f32[5, 6] @ buf6[5, 6],
//   %c: f32[5] @ buf7[5],
// ) {
//   %out @ buf8[1, 3, 4, 4] = restride.fused.default(@graph1, [%x @ buf0[1, 2, 4, 4], %w @ buf1[3, 2, 3, 3], %m @ buf2[3], %v @ buf3[3], %r @ buf4[1, 3, 4, 4]])
//   %act @ buf9[4, 1, 5] = restride.fused.default(@graph2, [%a @ buf5[4, 6], %b @ buf6[5, 6], %c @ buf7[5]])
//   %two @ buf10[4, 5] = aten.linear.default(%a @ buf5[4, 6], %b @ buf6[5, 6])
//   %tanh @ buf11[4, 5] = aten.tanh.default(%two @ buf10[4, 5])
//   return %out @ buf8[1, 3, 4, 4], %act @ buf9[4, 1, 5], %two @ buf10[4, 5], %tanh @ buf11[4, 5]
// }

// == run
// input 0: f32[1, 2, 4, 4][32, 16, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0]
// input 1: f32[3, 2, 3, 3][18, 9, 3, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0 48.0 49.0 50.0 51.0 52.0 53.0]
// input 2: f32[3][1]+0 = [0.0 1.0 2.0]
// input 3: f32[3][1]+0 = [0.0 1.0 2.0]
// input 4: f32[1, 3, 4, 4][48, 16, 4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0 30.0 31.0 32.0 33.0 34.0 35.0 36.0 37.0 38.0 39.0 40.0 41.0 42.0 43.0 44.0 45.0 46.0 47.0]
// input 5: f32[4, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]
// input 6: f32[5, 6][6, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0 12.0 13.0 14.0 15.0 16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0 24.0 25.0 26.0 27.0 28.0 29.0]
// input 7: f32[5][1]+0 = [0.0 1.0 2.0 3.0 4.0]
// output 0: f32[1, 3, 4, 4][48, 16, 4, 1]+0 = [378208.40625 567946.0625 605894.375 399714.875 594828.375 883229.125 931612.9375 608112.9375 731442.8125 1076764.5 1125148.375 729548.4375 450320.3125 655236.875 681801.0625 436409.3125 2722.986328125 4187.97900390625 4524.9775390625 3081.984619140625 4599.97705078125 7024.96484375 7502.96240234375 5076.974609375 5899.970703125 8936.955078125 9414.953125 6328.96826171875 4114.9794921875 6203.96923828125 6504.9677734375 4361.978515625 3014.56884765625 4661.7099609375 5053.03173828125 3472.944580078125 5183.017578125 7967.18310546875 8534.57421875 5826.65478515625 6714.36474609375 10236.748046875 10804.138671875 7324.060546875 4816.958984375 7312.6259765625 7678.4921875 5196.13916015625]
// output 1: f32[4, 1, 5][5, 5, 1]+0 = [55.0 146.0 237.0 328.0 419.0 145.0 452.0 759.0 1066.0 1373.0 235.0 758.0 1281.0 1804.0 2327.0 325.0 1064.0 1803.0 2542.0 3281.0]
// output 2: f32[4, 5][5, 1]+0 = [55.0 145.0 235.0 325.0 415.0 145.0 451.0 757.0 1063.0 1369.0 235.0 757.0 1279.0 1801.0 2323.0 325.0 1063.0 1801.0 2539.0 3277.0]
// output 3: f32[4, 5][5, 1]+0 = [1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0]
