// An input that is set to a lazily negated view is refused.
// run: functionalize, run
graph(%x: c64[3], %o: f32[3]) {
  %c: c64[3] = aten.conj.default(%x)
  %i: f32[3][2]+1 = aten.imag.default(%c)
  %r: f32[3][2]+1 = aten.add.out(%o, 1, out=%i)
  %s: f32[3][2]+1 = aten.set_.source_Tensor(%o, %i)
  return %x
}

// == functionalize
// error: %o becomes a conjugated or negated view; resolve_conj() or resolve_neg() what it is set to

// == run
// functionalize refuses: %o becomes a conjugated or negated view; resolve_conj() or resolve_neg() what it is set to
