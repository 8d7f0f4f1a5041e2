// An operator that reads where it writes does so in an order that only itself knows.
// ops: mylib::named(Tensor(a!) self, Tensor other) -> ()
// run: functionalize
graph(%a: f32[4, 4]) {
  %r: f32[4] = aten.select.int(%a, 0, 1)
  %c: f32[4][4]+2 = aten.select.int(%a, 1, 2)
  mylib.named.default(%r, %c)
  return %a
}

// == functionalize
// error: mylib.named.default writes self and reads other, which may share memory (at mylib.named.default); clone the argument that is read before the call
