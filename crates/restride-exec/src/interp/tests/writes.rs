//! Writes, views and what eager PyTorch refuses.

use super::*;
use restride_tensor::C32;

#[test]
fn a_write_through_a_view_is_seen_by_all_aliases() {
    let x = count(&[2, 3]);
    let out = runs(
        "graph(%x: f32[2, 3]) {
  %t: f32[3, 2][1, 3] = aten.t.default(%x)
  %row: f32[2][3]+1 = aten.select.int(%t, 0, 1)
  %mul_: f32[2][3]+1 = aten.mul_.Tensor(%row, 10)
  return %mul_, %t
}",
        &[&x],
    );
    assert_eq!(x.to_elements::<f32>(), [0., 10., 2., 3., 40., 5.]);
    assert_eq!(floats(&out, 0), [10., 40.]);
    assert!(tensor(&out, 0).storage().same(x.storage()) && tensor(&out, 1).storage().same(x.storage()));
}

#[test]
fn a_change_of_metadata_is_seen_by_all_holders_of_the_object() {
    let x = count(&[2, 3]);
    let out = runs(
        "graph(%x: f32[2, 3]) {
  %t_: f32[3, 2][1, 3] = aten.t_.default(%x)
  %row: f32[2][3] = aten.select.int(%x, 0, 0)
  %add_: f32[2][3] = aten.add_.Tensor(%row, 100)
  return %x, %t_
}",
        &[&x],
    );
    // The tensor that was given keeps its own layout; the object that the program knows has turned.
    let after = out.inputs[0].tensor().unwrap();
    assert_eq!((&after.layout().sizes[..], &after.layout().strides[..]), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(tensor(&out, 0).layout(), tensor(&out, 1).layout());
    assert_eq!(x.to_elements::<f32>(), [100., 1., 2., 103., 4., 5.]);
}

#[test]
fn resize_makes_room_and_set_moves_to_other_memory() {
    let x = f32s(&[1., 2.]);
    let out = runs(
        "graph(%x: f32[2]) {
  %c: f32[2] = aten.clone.default(%x)
  %v: f32[2] = aten.view.default(%c, [2])
  %r: f32[3, 2] = aten.resize_.default(%v, [3, 2])
  %f: f32[3, 2] = aten.fill_.Scalar(%r, 7)
  %s: f32[2] = aten.set_.source_Tensor(%x, %c)
  return %c, %v, %x
}",
        &[&x],
    );
    assert_eq!(floats(&out, 0), [7., 7.]);
    assert_eq!(floats(&out, 1), [7.; 6]);
    assert!(tensor(&out, 2).storage().same(tensor(&out, 0).storage()));
    assert_eq!(x.to_elements::<f32>(), [1., 2.]);
}

#[test]
fn an_expanded_target_is_refused() {
    let x = f32s(&[1., 2., 3.]);
    let wide = x.alias(DType::F32, Layout::strided(&[4, 3], &[0, 1], 0)).unwrap();
    let e = fails(
        "graph(%x: f32[4, 3][0, 1]) {\n  %add_: f32[4, 3][0, 1] = aten.add_.Tensor(%x, 1)\n  return %add_\n}",
        &[&wide],
    );
    assert!(e.contains("more than one element of the written-to tensor refers to a single memory location"), "{e}");
    assert!(e.contains("%add_ = aten.add_.Tensor"), "{e}");
    assert_eq!(x.to_elements::<f32>(), [1., 2., 3.]);
}

#[test]
fn an_operand_on_some_of_the_target_s_cells_is_refused() {
    let text = "graph(%x: f32[6]) {
  %to: f32[5]+1 = aten.slice.Tensor(%x, 0, 1, 6)
  %from: f32[5] = aten.slice.Tensor(%x, 0, 0, 5)
  %c: f32[5]+1 = OP
  return %x
}";
    for op in ["aten.copy_.default(%to, %from)", "aten.addcmul.out(%from, %from, %from, out=%to)"] {
        let x = count(&[6]);
        let e = fails(&text.replace("OP", op), &[&x]);
        assert!(e.contains("some elements of the input tensor and the written-to tensor refer to a single"), "{e}");
        assert_eq!(x.to_elements::<f32>(), count(&[6]).to_elements::<f32>());
    }
    // The same cells are another matter, and so are cells that PyTorch does not look into.
    let x = count(&[6]);
    runs("graph(%x: f32[6]) {\n  %a: f32[6] = aten.add_.Tensor(%x, %x)\n  return %a\n}", &[&x]);
    assert_eq!(x.to_elements::<f32>(), [0., 2., 4., 6., 8., 10.]);
}

#[test]
fn indexed_writes_refuse_operands_on_the_target() {
    let text = "graph(%x: f32[6], %i: i64[3]) {
  %v: f32[3] = aten.slice.Tensor(%x, 0, 0, 3)
  %p: f32[6] = OP
  return %p
}";
    for op in ["aten.index_put_.default(%x, [%i], %v)", "aten.scatter_.src(%x, 0, %i, %v)"] {
        let e = fails(&text.replace("OP", op), &[&count(&[6]), &i64s(&[3, 4, 5])]);
        assert!(e.contains("some elements of the input tensor and the written-to tensor"), "{op}: {e}");
    }
}

#[test]
fn a_target_that_visits_a_cell_twice_is_a_loop_in_logical_order() {
    let (sizes, strides) = ([3i64, 2], [1i64, 1]);
    let visit = |start: &[f32], f: &mut dyn FnMut(&mut Vec<f32>, usize, usize)| {
        let mut cells = start.to_vec();
        for i in 0..sizes[0] {
            for j in 0..sizes[1] {
                f(&mut cells, (i * strides[0] + j * strides[1]) as usize, (i * 2 + j) as usize);
            }
        }
        cells
    };
    let text = "graph(%x: f32[4], %y: f32[3, 2]) {
  %v: f32[3, 2][1, 1] = aten.as_strided.default(%x, [3, 2], [1, 1])
  %w: f32[3, 2][1, 1] = OP
  return %x
}";
    let y: Vec<f32> = (0..6).map(|i| (i * i) as f32 + 0.5).collect();
    let operand = RawTensor::from_slice(&y, &[3, 2]);
    for (op, f) in [
        (
            "aten.mul_.Tensor(%v, 2)",
            &mut (|c: &mut Vec<f32>, at: usize, _: usize| c[at] *= 2.) as &mut dyn FnMut(&mut Vec<f32>, usize, usize),
        ),
        ("aten.sub_.Tensor(%v, %y)", &mut |c, at, k| c[at] -= y[k]),
        ("aten.div_.Tensor(%v, %y)", &mut |c, at, k| c[at] /= y[k]),
        ("aten.copy_.default(%v, %y)", &mut |c, at, k| c[at] = y[k]),
    ] {
        let x = f32s(&[1., 2., 3., 4.]);
        let want = visit(&[1., 2., 3., 4.], f);
        runs(&text.replace("OP", op), &[&x, &operand]);
        assert_eq!(x.to_elements::<f32>(), want, "{op}");
    }
}

#[test]
fn a_loop_over_cells_reads_what_it_wrote() {
    // y[i] is x's own cell i: an element may read what an earlier one has written.
    let x = f32s(&[1., 2., 3., 4.]);
    runs(
        "graph(%x: f32[4]) {
  %v: f32[2, 2][1, 1] = aten.as_strided.default(%x, [2, 2], [1, 1])
  %o: f32[2, 2][2, 0] = aten.as_strided.default(%x, [2, 2], [2, 0])
  %w: f32[2, 2][1, 1] = aten.add_.Tensor(%v, %o)
  return %x
}",
        &[&x],
    );
    let mut cells = [1f32, 2., 3., 4.];
    for i in 0..2 {
        for j in 0..2 {
            cells[i + j] += cells[2 * i];
        }
    }
    assert_eq!(x.to_elements::<f32>(), cells);
}

#[test]
fn results_that_do_not_fit_their_target_are_refused_in_pytorch_s_words() {
    let text = "graph(%x: T[3], %y: f32[2, 3]) {\n  %r: T[3] = OP\n  return %r\n}";
    let y = count(&[2, 3]);
    for (ty, op, words) in [
        ("f32", "aten.add_.Tensor(%x, %y)", "output with shape [3] doesn't match the broadcast shape [2, 3]"),
        ("i64", "aten.div_.Tensor(%x, 2)", "result type Float can't be cast to the desired output type Long"),
        ("bool", "aten.add_.Tensor(%x, 1)", "result type Long can't be cast to the desired output type Bool"),
    ] {
        let x = RawTensor::zeros(DType::from_name(ty).unwrap(), Layout::contiguous(&[3]));
        let e =
            fails(&text.replace('T', ty).replace("aten.add_.ensor", "aten.add_.Tensor").replace("OP", op), &[&x, &y]);
        assert!(e.contains(words), "{e}");
    }
}

#[test]
fn in_place_results_take_the_target_s_type() {
    let x = f32s(&[1., 2., 3.]);
    runs("graph(%x: f32[3]) {\n  %g: f32[3] = aten.ge_.Scalar(%x, 2)\n  return %g\n}", &[&x]);
    assert_eq!(x.to_elements::<f32>(), [0., 1., 1.]);
}

#[test]
fn out_arguments_are_resized_or_written_through_their_strides() {
    let x = f32s(&[1., 2., 3.]);
    let out = runs(
        "graph(%x: f32[3]) {
  %e: f32[0] = aten.empty.memory_format([0])
  %a: f32[3] = aten.add.out(%x, %x, out=%e)
  %m: f32[3] = aten.mul_.Tensor(%a, 2)
  return %e
}",
        &[&x],
    );
    assert_eq!(floats(&out, 0), [4., 8., 12.]);
    let gaps = Storage::zeroed(24);
    let o = on(&gaps, DType::F32, &[3], &[2], 0);
    runs(
        "graph(%x: f32[3], %o: f32[3][2]) {\n  %m: f32[3][2] = aten.mul.out(%x, 2, out=%o)\n  return %m\n}",
        &[&x, &o],
    );
    assert_eq!(on(&gaps, DType::F32, &[6], &[1], 0).to_elements::<f32>(), [2., 0., 4., 0., 6., 0.]);
}

#[test]
fn writes_through_a_conjugate_reach_the_base() {
    let z = RawTensor::from_slice(&[C32::new(1., 2.), C32::new(3., -4.)], &[2]);
    let out = runs(
        "graph(%z: c64[2]) {
  %c: c64[2] = aten._conj.default(%z)
  %a: c64[2] = aten.add_.Tensor(%c, (0.0+1.0j))
  %i: f32[2][2]+1 = aten.imag.default(%c)
  %m: f32[2] = aten.mul.Tensor(%i, 1)
  return %m
}",
        &[&z],
    );
    let written: Vec<C32> = [C32::new(1., 2.), C32::new(3., -4.)].map(|z| (z.conj() + C32::i()).conj()).to_vec();
    assert_eq!(z.to_elements::<C32>(), written);
    assert_eq!(floats(&out, 0), written.iter().map(|z| -z.im).collect::<Vec<_>>());
}

#[test]
fn bits_are_written_through_a_view_of_another_type() {
    let x = f32s(&[1., -2., 0.]);
    runs(
        "graph(%x: f32[3]) {
  %v: i32[3] = aten.view.dtype(%x, i32)
  %o: i32[3] = aten.bitwise_or_.Scalar(%v, 2147483648)
  return %x
}",
        &[&x],
    );
    assert_eq!(x.to_elements::<f32>(), [-1., -2., -0.]);
    assert!(x.to_elements::<f32>()[2].is_sign_negative());
}

#[test]
fn foreach_runs_its_members_in_order() {
    // The second member reads what the first wrote: lists are not all read first.
    let x = f32s(&[1., 2., 3., 4.]);
    runs(
        "graph(%x: f32[4]) {
  %a: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)
  %b: f32[2]+2 = aten.slice.Tensor(%x, 0, 2, 4)
  aten._foreach_add_.List([%a, %b], [%b, %a])
  return %x
}",
        &[&x],
    );
    assert_eq!(x.to_elements::<f32>(), [4., 6., 7., 10.]);
}

#[test]
fn a_reshape_that_copies_does_not_alias() {
    let base = count(&[2, 3]);
    let x = base.alias(DType::F32, base.layout().transpose(0, 1).unwrap()).unwrap();
    let out = runs(
        "graph(%x: f32[3, 2][1, 3]) {
  %r: f32[6] = aten.reshape.default(%x, [-1])
  %a: f32[6] = aten.add_.Tensor(%r, 1)
  return %a
}",
        &[&x],
    );
    assert_eq!(base.to_elements::<f32>(), count(&[2, 3]).to_elements::<f32>());
    assert!(!tensor(&out, 0).storage().same(base.storage()));
}

#[test]
fn training_batch_norm_writes_its_statistics() {
    let x = RawTensor::from_slice(&[1f32, 10., 3., 30.], &[2, 2]);
    let (m, v) = (f32s(&[0., 0.]), f32s(&[1., 1.]));
    runs(
        "graph(%x: f32[2, 2], %m: f32[2], %v: f32[2]) {
  %y: f32[2, 2] = aten.batch_norm.default(%x, None, None, %m, %v, True, 0.5, 1e-5, False)
  return %y
}",
        &[&x, &m, &v],
    );
    // mean of each column; unbiased variance of two values is half the square of their difference.
    assert_eq!(m.to_elements::<f32>(), [1., 10.]);
    assert_eq!(v.to_elements::<f32>(), [0.5 + 0.5 * 2., 0.5 + 0.5 * 200.]);
}

#[test]
fn memory_outside_of_a_storage_is_refused() {
    let x = f32s(&[1., 2.]);
    for op in ["aten.as_strided.default", "aten.as_strided_copy.default"] {
        let text = format!("graph(%x: f32[2]) {{\n  %v: f32[9] = {op}(%x, [9], [1])\n  return %v\n}}");
        let e = fails(&text, &[&x]);
        assert!(e.contains("out of bounds for storage of size 8"), "{e}");
    }
}

#[test]
fn types_that_the_file_gets_wrong_are_found() {
    let x = count(&[2, 3]);
    let e = fails("graph(%x: f32[2, 3]) {\n  %t: f32[2, 3] = aten.t.default(%x)\n  return %t\n}", &[&x]);
    assert!(e.contains("%t is f32[3, 2] and is declared as f32[2, 3]"), "{e}");
    let e = fails("graph(%x: f32[2, 3]) {\n  %t: f32[3, 2] = aten.t.default(%x)\n  return %t\n}", &[&x]);
    assert!(e.contains("strides"), "{e}");
}
