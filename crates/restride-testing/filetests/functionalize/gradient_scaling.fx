// A scaler's operators: each gradient's check writes the one `found_inf`.
// run: functionalize, run
graph(%g: f32[2, 3], %h: f32[4], %f: f32[], %i: f32[1], %s: f32[], %n: i32[]) {
  %a: f32[1] = aten.add_.Scalar(%i, 0.5)
  %b: f32[4] = aten.reciprocal_.default(%h)
  %c: f32[] = aten.add_.Scalar(%s, 4)
  aten._amp_foreach_non_finite_check_and_unscale_.default([%g, %h], %f, %i)
  %r: f32[] = aten._amp_update_scale_.default(%s, %n, %f, 2.0, 0.5, 1)
  return %r
}

// == functionalize
// output 0: mutation of %g
// output 1: mutation of %h
// output 2: mutation of %f
// output 3: mutation of %i
// output 4: mutation of %s
// output 5: mutation of %n
// output 6: user as view f32[] of input %s
//
// graph(%g: f32[2, 3], %h: f32[4], %f: f32[], %i: f32[1], %s: f32[], %n: i32[]) {
//   %a: f32[1] = aten.add.Scalar(%i, 0.5)
//   %b: f32[4] = aten.reciprocal.default(%h)
//   %c: f32[] = aten.add.Scalar(%s, 4)
//   %amp_non_finite_check_and_unscale: f32[2, 3], %amp_non_finite_check_and_unscale_1: f32[] = restride.amp_non_finite_check_and_unscale.default(%g, %f, %a)
//   %amp_non_finite_check_and_unscale_2: f32[4], %amp_non_finite_check_and_unscale_3: f32[] = restride.amp_non_finite_check_and_unscale.default(%b, %amp_non_finite_check_and_unscale_1, %a)
//   %r: f32[], %r_1: i32[] = aten._amp_update_scale.default(%c, %n, %amp_non_finite_check_and_unscale_3, 2.0, 0.5, 1)
//   return %amp_non_finite_check_and_unscale, %amp_non_finite_check_and_unscale_2, %amp_non_finite_check_and_unscale_3, %a, %r, %r_1, %r
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 0.5 1.0 1.5 2.0 2.5]
// input 1: f32[4][1]+0 = [inf 0.5 0.25 0.1666666716337204]
// input 2: f32[][]+0 = [1.0]
// input 3: f32[1][1]+0 = [0.5]
// input 4: f32[][]+0 = [2.0]
// input 5: i32[][]+0 = [0]
// output 0: f32[][]+0 = [2.0], on the storage of input 4
