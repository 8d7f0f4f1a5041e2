// An operator that is neither in-place nor out= and writes arguments: its functional form gives their new contents.
// run: functionalize, run
graph(%x: f32[2, 2], %on: i64[1], %lo: f32[1], %hi: f32[1], %scale: f32[1], %zero: i32[1]) {
  %y: f32[2, 2], %m: bool[2, 2] = aten._fused_moving_avg_obs_fq_helper.default(%x, %on, %on, %lo, %hi, %scale, %zero, 0.5, 0, 255, 0)
  return %y, %m
}

// == functionalize
// output 0: mutation of %lo
// output 1: mutation of %hi
// output 2: mutation of %scale
// output 3: mutation of %zero
//
// graph(%x: f32[2, 2], %on: i64[1], %lo: f32[1], %hi: f32[1], %scale: f32[1], %zero: i32[1]) {
//   %y: f32[2, 2], %y_1: bool[2, 2], %y_2: f32[1], %y_3: f32[1], %y_4: f32[1], %y_5: i32[1] = aten._fused_moving_avg_obs_fq_helper_functional.default(%x, %on, %on, %lo, %hi, %scale, %zero, 0.5, 0, 255, 0)
//   return %y_2, %y_3, %y_4, %y_5, %y, %y_1
// }

// == run
// interp refuses: aten._fused_moving_avg_obs_fq_helper_functional.default cannot be run: restride has no kernel for it (at %y, %m = aten._fused_moving_avg_obs_fq_helper.default); decompose it before the export (run_decompositions), or leave it out of the exported part
