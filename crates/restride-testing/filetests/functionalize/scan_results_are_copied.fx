// run: functionalize, run
// A scan copies the results of an iteration before the next one runs: a body that returns the memory that it writes gives the
// contents of each iteration, not those of the last one.
graph(%c: f32[], %x: f32[3], %w: f32[2]) {
  %last: f32[], %all: f32[3, 2] = higher_order.scan(@step, [%c], [%x], [%w])
  return %last, %all
}

graph @step(%a: f32[], %s: f32[], %w: f32[2]) {
  %next: f32[] = aten.add.Scalar(%a, 1)
  %y: f32[2] = aten.add_.Tensor(%w, %s)
  return %next, %y
}

// == functionalize
// output 0: mutation of %w
//
// graph(%c: f32[], %x: f32[3], %w: f32[2]) {
//   %last: f32[], %w_1: f32[2], %all: f32[3, 2] = higher_order.scan(@graph1, [%c, %w], [%x], [])
//   return %w_1, %last, %all
// }
//
// graph @graph1(%a: f32[], %base_0: f32[2], %s: f32[]) {
//   %next: f32[] = aten.add.Scalar(%a, 1)
//   %y: f32[2] = aten.add.Tensor(%base_0, %s)
//   return %next, %y, %y
// }

// == run
// input 0: f32[][]+0 = [0.0]
// input 1: f32[3][1]+0 = [0.0 1.0 2.0]
// input 2: f32[2][1]+0 = [3.0 4.0]
// output 0: f32[][]+0 = [3.0]
// output 1: f32[3, 2][2, 1]+0 = [0.0 1.0 1.0 2.0 3.0 4.0]
