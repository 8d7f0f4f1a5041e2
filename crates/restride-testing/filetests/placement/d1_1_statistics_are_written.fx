// An operator that writes its running statistics beside its result: in their own memory.
// run: remarks, copies, run
graph(%x: f32[4, 2], %m: f32[2], %v: f32[2]) {
  %y: f32[4, 2], %s: f32[2], %i: f32[2] = aten._native_batch_norm_legit.default(%x, None, None, %m, %v, True, 0.5, 0.0)
  return %y
}

// == remarks
// %y, %y_1, %y_2, %y_3, %y_4 = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 0.0)
//   computed in the output's memory: taken, 32 bytes
// %y, %y_1, %y_2, %y_3, %y_4 = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 0.0)
//   computed in the input's memory, %m: taken, 8 bytes
// %y, %y_1, %y_2, %y_3, %y_4 = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 0.0)
//   computed in a dying operand, %m: taken, 8 bytes
// %y, %y_1, %y_2, %y_3, %y_4 = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 0.0)
//   computed in the input's memory, %v: taken, 8 bytes
// %y, %y_1, %y_2, %y_3, %y_4 = aten._native_batch_norm_legit_functional.default(%x, None, None, %m, %v, True, 0.5, 0.0)
//   computed in a dying operand, %v: taken, 8 bytes

// == copies
// none

// == run
// input 0: f32[4, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// input 1: f32[2][1]+0 = [1.5 2.5]
// input 2: f32[2][1]+0 = [3.3333332538604736 3.8333332538604736]
// output 0: f32[4, 2][2, 1]+0 = [-1.341640830039978 -1.341640830039978 -0.4472135901451111 -0.4472135901451111 0.4472135901451111 0.4472135901451111 1.341640830039978 1.341640830039978]
