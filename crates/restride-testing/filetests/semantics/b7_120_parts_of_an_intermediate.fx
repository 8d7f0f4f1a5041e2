// All parts of an intermediate are returned; its base is written between.
// run: functionalize, run
// caller: output 1 = 7
graph(%a: f32[3]) {
  %x: f32[3] = aten.neg.default(%a)
  %p: f32[], %q: f32[]+1, %r: f32[]+2 = aten.unbind.int(%x)
  %w: f32[3] = aten.sub_.Tensor(%x, 1)
  return %q, %p, %r
}

// == functionalize
// stage: functional
// output 0: user as view f32[]+1 of base 3
// output 1: user as view f32[] of base 3
// output 2: user as view f32[]+2 of base 3
// output 3: base
//
// graph(%a: f32[3]) {
//   %x: f32[3] = aten.neg.default(%a)
//   %w: f32[3] = aten.sub.Tensor(%x, 1)
//   %v: f32[]+1 = aten.select.int(%w, 0, 1)
//   %v_1: f32[] = aten.select.int(%w, 0, 0)
//   %v_2: f32[]+2 = aten.select.int(%w, 0, 2)
//   return %v, %v_1, %v_2, %w
// }

// == run
// input 0: f32[3][1]+0 = [0.0 1.0 2.0]
// output 0: f32[][]+1 = [-2.0]
// output 1: f32[][]+0 = [7.0], on the storage of output 0
// output 2: f32[][]+2 = [-3.0], on the storage of output 0
