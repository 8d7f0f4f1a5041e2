// Two inputs get each other's content: one of them has to be taken aside.
// run: remarks, copies, run
graph(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = aten.clone.default(%x)
  %w: f32[4] = aten.copy_.default(%x, %y)
  %z: f32[4] = aten.copy_.default(%y, %a)
  return %w, %z
}

// == remarks
// %a = aten.clone.default(%x)
//   kept as a view of its base, %x: taken, 16 bytes
// %a = aten.clone.default(%x)
//   not computed in the input's memory: it is stored elsewhere already, 16 bytes

// == copies
// %y to the arena, 16 bytes
//   its elements are where the caller gave them
// %a to %y, 16 bytes
//   not computed in the input's memory: it is stored elsewhere already
// %y to %x, 16 bytes
//   its elements are where the caller gave them

// == run
// input 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [0.0 1.0 2.0 3.0], on the storage of input 0
// output 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0], on the storage of input 1
