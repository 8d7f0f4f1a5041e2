// Complex functions where naive formulas overflow or take the wrong side of a cut.
// run: run
graph(%x: f64[4]) {
  %far: f64[4] = aten.mul.Tensor(%x, -5000)
  %near: f64[4] = aten.add.Tensor(%x, 1)
  %z: c128[4] = aten.complex.default(%far, %near)
  %a: c128[4] = aten.asinh.default(%z)
  %t: c128[4] = aten.tanh.default(%z)
  %s: c128[4] = aten.sigmoid.default(%z)
  %zero: f64[4] = aten.mul.Tensor(%x, 0)
  %real: c128[4] = aten.complex.default(%near, %zero)
  %h: c128[4] = aten.atanh.default(%real)
  %c: c128[4] = aten.acos.default(%real)
  return %a, %t, %s, %h, %c
}

// == run
// input 0: f64[4][1]+0 = [0.0 1.0 2.0 3.0]
// output 0: c128[4][1]+0 = [(-0.0+1.5707963267948966j) (-9.210340461976172+0.0003999999706666715j) (-9.903487600036126+0.0002999999895000008j) (-10.308952697310957+0.0002666666597530868j)]
// output 1: c128[4][1]+0 = [(-0.0+1.5574077246549023j) (-1.0-0.0j) (-1.0-0.0j) (-1.0+0.0j)]
// output 2: c128[4][1]+0 = [(0.5+0.27315124492189524j) (0.0+0.0j) (0.0+0.0j) (0.0-0.0j)]
// output 3: c128[4][1]+0 = [(inf+0.0j) (0.5493061443340549+1.5707963267948966j) (0.34657359027997264+1.5707963267948966j) (0.25541281188299536+1.5707963267948966j)]
// output 4: c128[4][1]+0 = [(0.0-0.0j) (0.0-1.3169578969248166j) (0.0-1.762747174039086j) (0.0-2.0634370688955608j)]
