// A mutation of another type than its input.
// run: verify
stage: functional
output 0: mutation of %x
graph(%x: f32[2], %y: f32[3]) {
  return %y
}

// == verify
// error: output 0: f32[3] is not of the type of its input, f32[2]
