// How many results there are is not known beside how many tensors are written: there is no functional form.
// ops: mylib::many(Tensor(a!) x) -> Tensor[]
// run: functionalize
graph(%a: f32[4]) {
  %r: f32[2], %s: f32[2] = mylib.many.default(%a)
  return %r, %s
}

// == functionalize
// error: mylib.many.default writes an argument and has no functional form (at %r, %s = mylib.many.default); register the operator with a functional form
