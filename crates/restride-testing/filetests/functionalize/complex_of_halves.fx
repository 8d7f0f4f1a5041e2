// PyTorch gives complex numbers of halves, which are no type here.
// run: functionalize, run
// torch: makes complex numbers of halves of it, which have few operators
graph(%x: bf16[2], %c: c64[]) {
  %z: c64[2] = aten.mul.Tensor(%x, %c)
  return %z
}

// == functionalize
// error: BFloat16 with a complex number, which gives complex numbers of halves in PyTorch (at %z = aten.mul.Tensor)

// == run
// interp refuses: BFloat16 with a complex number, which gives complex numbers of halves in PyTorch (at %z = aten.mul.Tensor)
