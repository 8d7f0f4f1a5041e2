// A result that may share memory with any argument: a write through it would be lost.
// ops: mylib::part(Tensor(a) x) -> Tensor(a)
// run: functionalize
graph(%a: f32[4]) {
  %r: f32[2] = mylib.part.default(%a)
  %m: f32[2] = aten.mul_.Scalar(%r, 2)
  return %m
}

// == functionalize
// error: mylib.part.default returns a view, but does not declare which part of its argument it shows (at %r = mylib.part.default)
