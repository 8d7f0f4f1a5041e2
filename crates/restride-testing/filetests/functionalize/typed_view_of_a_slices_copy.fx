// A slice with one element has the stride of its column, which PyTorch's copy keeps and the view refuses.
// run: functionalize, run
graph(%x: c64[2, 1][1, 2]) {
  %r: u8[2, 8] = higher_order.map_impl(@each, [%x], [])
  return %r
}

graph @each(%a: c64[1]) {
  %b: c64[1] = aten.clone.default(%a)
  %c: u8[8] = aten.view.dtype(%b, u8)
  return %c
}

// == functionalize
// error: higher_order.map_impl whose body views a computed tensor as another element type, and operand 0 has other strides than declared (at %r = higher_order.map_impl); call clone(memory_format=torch.contiguous_format) before the view

// == run
// functionalize refuses: higher_order.map_impl whose body views a computed tensor as another element type, and operand 0 has other strides than declared (at %r = higher_order.map_impl); call clone(memory_format=torch.contiguous_format) before the view
