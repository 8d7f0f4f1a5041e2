// PyTorch negates in place what it copied from a negated tensor, and truth values cannot be.
// run: functionalize, run
graph(%x: f32[2], %f: bool[2]) {
  %n: f32[2] = aten._neg_view.default(%x)
  %a: bool[2] = aten.copy_.default(%f, %n)
  return %a
}

// == functionalize
// error: "neg_cpu" not implemented for 'Bool' (at %a = aten.copy_.default)

// == run
// error: "neg_cpu" not implemented for 'Bool' (at %a = aten.copy_.default)
