// A cat of what is there already would save nothing: it stays.
// run: functionalize, reinplace, views, run
graph(%x: f32[2], %y: f32[2]) {
  %a: f32[2] = aten.relu.default(%x)
  %c: f32[4] = aten.cat.default([%a, %y])
  return %c
}

// == functionalize
// graph(%x: f32[2], %y: f32[2]) {
//   %a: f32[2] = aten.relu.default(%x)
//   %c: f32[4] = aten.cat.default([%a, %y])
//   return %c
// }

// == reinplace
// stage: imported
//
// graph(%x: f32[2], %y: f32[2]) {
//   %a: f32[2] = aten.relu.default(%x)
//   %c: f32[4] = aten.cat.default([%a, %y])
//   return %c
// }

// == views
// graph(%x: f32[2], %y: f32[2]) {
//   %a: f32[2] = aten.relu.default(%x)
//   %c: f32[4] = aten.cat.default([%a, %y])
//   return %c
// }

// == run
// input 0: f32[2][1]+0 = [0.0 1.0]
// input 1: f32[2][1]+0 = [0.0 1.0]
// output 0: f32[4][1]+0 = [0.0 1.0 0.0 1.0]
