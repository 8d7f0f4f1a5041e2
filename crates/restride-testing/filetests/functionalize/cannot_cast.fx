// A result that cannot be cast to the target is refused.
// run: functionalize, run
graph(%x: i64[3]) {
  %w: i64[3] = aten.mul_.Tensor(%x, 1.5)
  return %w
}

// == functionalize
// error: result type Float can't be cast to the desired output type Long (at %w = aten.mul_.Tensor)

// == run
// error: result type Float can't be cast to the desired output type Long (at %w = aten.mul_.Tensor)
