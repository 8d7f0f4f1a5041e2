// What is decided in the bodies of a condition is told like anything else.
// run: remarks, copies, run
graph(%p: bool[], %x: f32[4]) {
  %a: f32[4] = aten.mul.Tensor(%x, 2)
  %r: f32[4] = higher_order.cond(%p, @yes, @no, [%a])
  return %r
}
graph @yes(%x: f32[4]) {
  %b: f32[4] = aten.neg.default(%x)
  %c: f32[4] = aten.add.Tensor(%b, 1)
  %d: f32[4] = aten.flip.default(%c, [0])
  return %d
}
graph @no(%x: f32[4]) {
  %h: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  %b: f32[4] = aten.cat.default([%h, %h])
  return %b
}

// == remarks
// %a = aten.mul.Tensor(%x, 2)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %b = aten.neg.default(%x)
//   not computed in its operand, %x: the caller can see that memory, 16 bytes
// %c = aten.add.Tensor(%b, 1)
//   computed in a dying operand, %b: taken, 16 bytes
// %d = aten.flip.default(%c, [0])
//   computed in the output's memory: taken, 16 bytes
// %h = aten.slice.Tensor(%x, 0, 0, 2)
//   kept as a view of its base, %x: taken, 8 bytes
// %b = aten.cat.default([%h, %h])
//   computed in the output's memory: taken, 16 bytes
// %b = aten.cat.default([%h, %h])
//   `cat` operand not computed in place, %h: it is stored elsewhere already, 8 bytes
// %b = aten.cat.default([%h, %h])
//   `cat` operand not computed in place, %h: it is stored elsewhere already, 8 bytes
// %r = higher_order.cond(%p, @graph1, @graph2, [%a])
//   computed in the output's memory: taken, 16 bytes

// == copies
// %h to result 0, for %b = aten.cat.default in @graph2, 8 bytes
//   `cat` operand not computed in place: it is stored elsewhere already
// %h to result 0, for %b = aten.cat.default in @graph2, 8 bytes
//   `cat` operand not computed in place: it is stored elsewhere already

// == run
// input 0: bool[][]+0 = [false]
// input 1: f32[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: f32[4][1]+0 = [0.0 2.0 0.0 2.0]
