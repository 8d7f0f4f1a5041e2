// A norm over rows.
// run: remarks, copies, run
graph(%x: f32[2, 4]) {
  %a: f32[2, 4] = aten.mul.Tensor(%x, 2)
  %b: f32[2, 4] = aten.layer_norm.default(%a, [4])
  %d: f32[2, 4] = aten.flip.default(%b, [-1])
  return %d
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 32 bytes
// %b = aten.layer_norm.default(%a, [4])
//   computed in a dying operand, %a: taken, 32 bytes
// %d = aten.flip.default(%b, [-1])
//   computed in the output's memory: taken, 32 bytes

// == copies
// none

// == run
// input 0: f32[2, 4][4, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0]
// output 0: f32[2, 4][4, 1]+0 = [1.3416393995285034 0.44721314311027527 -0.44721314311027527 -1.3416393995285034 1.3416393995285034 0.44721314311027527 -0.44721314311027527 -1.3416393995285034]
