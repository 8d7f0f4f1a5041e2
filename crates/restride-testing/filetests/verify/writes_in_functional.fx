// A functional program that writes.
// run: verify
stage: functional
graph(%x: f32[2]) {
  %a: f32[2] = aten.neg_.default(%x)
  return %a
}

// == verify
// error: an operator writes memory in a functional program (at %a = aten.neg_.default)
