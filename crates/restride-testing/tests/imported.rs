//! PyTorch's programs with features that other importers lose: all ways agree, or refuse alike.

use restride::{CompileOptions, Equivalence, OpenOptions, RunOptions};
use restride_exec::{Inputs, RunValue};
use restride_ir::Program;
use restride_pt2::export::export_bytes;
use restride_tensor::{Bytes, RawTensor};
use restride_testing::{Leftovers, WaysVerdict, difference, differential};
use std::path::Path;

fn fixture(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pt2").join(format!("{name}.pt2"));
    restride::open(&path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn verdict(program: &Program, inputs: &Inputs) -> WaysVerdict {
    differential(program, inputs, &CompileOptions::default())
}

fn samples(program: &Program) -> Inputs {
    Inputs::from_samples(program).expect("the file has sample inputs").expect("which can be read")
}

#[test]
fn all_ways_run_them() {
    for name in [
        "pinned_number",
        "nested_branches",
        "indexed_by_a_tensor",
        "default_double",
        "mapped_by_vmap",
        "scanned_by_association",
        "checked_factors",
        "expanded_sample",
        "promoted_types",
        "functionalized_noise",
        "three_factors",
    ] {
        let program = fixture(name);
        assert_eq!(verdict(&program, &samples(&program)), WaysVerdict::Agree, "{name}");
    }
}

#[test]
fn a_pinned_number_is_checked() {
    let program = fixture("pinned_number");
    let x = |v: [f32; 3]| RunValue::Tensor(RawTensor::from_slice(&v, &[3]));
    let n = |v: [i64; 2]| RunValue::Tensor(RawTensor::from_slice(&v, &[2]));
    let good = [-1.0, 2.0, 3.0];
    // Another number than the pinned one; another than the tensor's check allows; sizes that data decides on.
    for (x, n) in [(x(good), n([4, 4])), (x(good), n([3, 5])), (x([1.0, 2.0, 3.0]), n([3, 4]))] {
        let found = verdict(&program, &Inputs::new(vec![x, n]));
        assert!(matches!(found, WaysVerdict::Rejected(_)), "{found:?}");
    }
}

#[test]
fn a_factorisation_that_fails_is_refused() {
    let program = fixture("checked_factors");
    let inputs = samples(&program);
    let singular = RunValue::Tensor(RawTensor::from_slice(&[0f32; 9], &[3, 3]));
    let found = verdict(&program, &Inputs::new(vec![singular, inputs.values[1].clone()]));
    assert!(matches!(&found, WaysVerdict::Rejected(why) if why.contains("singular")), "{found:?}");
}

#[test]
fn a_negative_index_counts_from_the_end() {
    let program = fixture("indexed_by_a_tensor");
    let inputs = samples(&program);
    for position in -4i64..4 {
        let mut values = inputs.values.clone();
        values[1] = RunValue::Tensor(RawTensor::from_slice(&[position], &[]));
        assert_eq!(verdict(&program, &Inputs::new(values)), WaysVerdict::Agree, "{position}");
    }
    let mut values = inputs.values.clone();
    values[1] = RunValue::Tensor(RawTensor::from_slice(&[4i64], &[]));
    assert!(matches!(verdict(&program, &Inputs::new(values)), WaysVerdict::Rejected(_)));
}

/// The file was exported with an expanded tensor. A dense or a transposed one is taken, and a reshape of it resolves as for that layout.
#[test]
fn what_was_expanded_may_be_dense() {
    let program = fixture("expanded_sample");
    let samples = samples(&program);
    let dense: Vec<f32> = (0..12u8).map(f32::from).collect();
    let tensor = |sizes: &[i64]| RawTensor::from_slice(&dense, sizes);
    let wide = tensor(&[3, 4]);
    let layout = wide.layout().transpose(0, 1).expect("it has two dimensions");
    let transposed = wide.alias(wide.dtype(), layout).expect("the same cells");
    let sample = samples.values[0].tensor().expect("a tensor").layout().strides.clone();
    for given in [tensor(&[4, 3]), transposed] {
        assert_ne!(given.layout().strides, sample);
        let inputs = Inputs::new(vec![RunValue::Tensor(given), samples.values[1].clone()]);
        let held = restride::verify(&program, &inputs, &RunOptions::default(), &CompileOptions::default());
        let held = held.expect("it runs in all ways");
        assert!(held.stages.iter().all(|s| s.differences.is_empty()), "{held:?}");
        assert!(matches!(held.meaning, Equivalence::Same), "{held:?}");
    }
}

/// An assignment to `x.data` leaves a check of types, and the program goes on with the old contents.
#[test]
fn an_assignment_to_data_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hostile/assigned-data.pt2");
    let error = restride::open(&path, &OpenOptions::default()).expect_err("torch.export lost the assignment");
    assert!(error.to_string().contains("x.data"), "{error}");
}

/// A body that reads a number from outside is written with an operand for it, as PyTorch's exporter does, and reads back.
#[test]
fn numbers_from_outside_are_operands_in_a_file() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/functionalize/loop_reads_a_number_from_outside.fx");
    let text = std::fs::read_to_string(&path).expect("a filetest");
    let program = restride_ir::text::parse(&text, &restride_ops::lookup).expect("a program");
    let compiled = restride::Compiled::new(program.clone(), None, &CompileOptions::default()).expect("compiles");
    let bytes = export_bytes(compiled.functional()).expect("an archive");
    let back = restride::open_bytes(&Bytes::copy_of(&bytes), &OpenOptions::default()).expect("reads back");
    let printed = restride_ir::text::print(&back);
    assert!(printed.contains("[%x, %item])"), "{printed}");
    assert_eq!(printed.matches("%u0: Sym(u0)").count(), 2, "{printed}");
    let x = RawTensor::from_slice(&(0..12).map(|i| i as f32).collect::<Vec<_>>(), &[4, 3]);
    for n in [-3i64, 0, 1] {
        let inputs = Inputs::new(vec![RunValue::Tensor(x.clone()), RunValue::Tensor(RawTensor::from_slice(&[n], &[]))]);
        assert_eq!(verdict(&back, &inputs), WaysVerdict::Agree);
        let of = |p: &Program| Leftovers::interp(p, &inputs, &Default::default()).expect("it runs");
        assert_eq!(difference(&of(&program), &of(&back)), None);
    }
}

/// Beside truth values `True` is no 1, which would make integers of them.
#[test]
fn truth_beside_truth_values_stays_truth_in_a_file() {
    let text = "graph(%x: bool[3]) {\n  %y: bool[3] = aten.add.Tensor(%x, True)\n  return %y\n}\n";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    let bytes = export_bytes(&program).expect("an archive");
    let back = restride::open_bytes(&Bytes::copy_of(&bytes), &OpenOptions::default()).expect("reads back");
    let printed = restride_ir::text::print(&back);
    assert!(printed.contains("aten.add.Tensor(%x, True)"), "{printed}");
}

/// `detach_` changes no sizes: what reads its operand afterwards has types by the operators' rules.
#[test]
fn types_after_detach_in_place() {
    let text = "graph(%w: f32[6, 3], %i: i64[4], %o: i64[3]) {
      %d: i64[3] = aten.detach_.default(%o)
      %y: f32[2, 3], %bag: i64[4], %size: i64[3], %max: i64[3] = aten.embedding_bag.padding_idx(%w, %i, %d, False, 1, \
                False, None, True, None)
      return %y
    }";
    let mut program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    restride_ir::relay(&mut program);
    let graph = program.graph();
    let types: Vec<String> =
        graph.ordered().last().expect("a call").1.results.iter().map(|v| graph.values[*v].ty.to_string()).collect();
    assert_eq!(types[2], "i64[2]", "{types:?}");
    let indices = |n: &[i64]| RunValue::Tensor(RawTensor::from_slice(n, &[n.len() as i64]));
    let table = RunValue::Tensor(RawTensor::from_slice(&[1f32; 18], &[6, 3]));
    let inputs = Inputs::new(vec![table, indices(&[0, 1, 2, 3]), indices(&[0, 2, 4])]);
    assert_eq!(verdict(&program, &inputs), WaysVerdict::Agree);

    // With symbolic sizes the result that nothing reads has no type.
    let text = "symbol n in [0, inf]
      symbol d in [1, inf]
      graph(%w: f32[6, 3], %i: i64[n], %d: i64[d]) {
        %y: f32[d - 1, 3], %bag: i64[0], %size: i64[d - 1], %max: i64[d - 1] = aten.embedding_bag.padding_idx(%w, %i, %d, \
            False, 0, False, None, True, None)
        return %y
      }";
    let mut program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    restride_ir::relay(&mut program);
    for (items, offsets) in [(vec![0, 1, 2, 3], vec![0, 2, 4]), (vec![], vec![0]), (vec![5], vec![0, 0, 1, 1])] {
        let table = RunValue::Tensor(RawTensor::from_slice(&[1f32; 18], &[6, 3]));
        let inputs = Inputs::new(vec![table, indices(&items), indices(&offsets)]);
        assert_eq!(verdict(&program, &inputs), WaysVerdict::Agree);
    }
}

/// Symbolic sizes and an exporter's wrong strides: those of results and of views of them are the operators' for all sizes.
#[test]
fn strides_of_symbolic_sizes_are_the_operators() {
    let text = "symbol n in [1, inf]
      graph(%x: f32[n, 4, 6, 8][192, 1, 32, 4]) {
        %r: f32[n, 4, 6, 8] = aten.roll.default(%x, [1], [2])
        %s: f32[n, 3, 6, 8][192, 48, 8, 1] = aten.slice.Tensor(%r, 1, 0, 3, 1)
        %a: f32[6][1] = aten.as_strided.default(%r, [6], [1], 0)
        return %r, %s, %a
      }";
    let mut program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    restride_ir::relay(&mut program);
    let graph = program.graph();
    let strides = |v: &restride_ir::ValueId| graph.tensor(*v).layout.strides.iter().map(|s| s.to_string()).collect();
    let laid: Vec<Vec<String>> = graph.ordered().map(|(_, node)| strides(&node.results[0])).collect();
    assert_eq!(laid, [vec!["192", "1", "32", "4"], vec!["192", "1", "32", "4"], vec!["1"]]);
    for n in [1, 3] {
        let numbers: Vec<f32> = (0..n * 192).map(|i| i as f32).collect();
        let x = RawTensor::from_slice(&numbers, &[n * 192]);
        let layout = restride_tensor::Layout::strided(&[n, 4, 6, 8], &[192, 1, 32, 4], 0);
        let x = RawTensor::new(x.storage().clone(), x.dtype(), layout).expect("in the storage");
        assert_eq!(verdict(&program, &Inputs::new(vec![RunValue::Tensor(x)])), WaysVerdict::Agree, "{n}");
    }
}

/// Strides that no size tells, of a slice of every other row, are learnt from the input.
#[test]
fn strides_of_inputs_tell_symbols() {
    let text = "symbol s in [0, inf]
      symbol n in [1, inf]
      graph(%x: f32[n, 4][4*s, 1]) {
        %y: f32[n, 4] = aten.mul.Scalar(%x, 2)
        return %y
      }";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    for step in [4, 8] {
        let x = RawTensor::from_slice(&[1f32; 24], &[24]);
        let layout = restride_tensor::Layout::strided(&[3, 4], &[step, 1], 0);
        let x = RawTensor::new(x.storage().clone(), x.dtype(), layout).expect("in the storage");
        assert_eq!(verdict(&program, &Inputs::new(vec![RunValue::Tensor(x)])), WaysVerdict::Agree, "{step}");
    }
}

/// A row that data chooses is the row that is written, or another one: a copy between them has one meaning. So have writes between
/// columns of a tensor whose rows data counts.
#[test]
fn writes_between_rows_and_columns() {
    let text = "symbol u0 in [0, 3]
      graph(%a: f32[4, 5], %p: i64[]) {
        %first: f32[5] = aten.select.int(%a, 0, 0)
        %t: f32[5] = aten.clone.default(%first)
        %u: Sym(u0) = aten.item.default(%p)
        %other: f32[5][1]+5*u0 = aten.select.int(%a, 0, u0)
        %x: f32[5] = aten.copy_.default(%first, %other)
        %y: f32[5][1]+5*u0 = aten.copy_.default(%other, %t)
        %z: f32[4, 5] = aten.mul.Scalar(%a, 2)
        return %z
      }";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    for row in 0..4i64 {
        let numbers: Vec<f32> = (0..20).map(|i| i as f32).collect();
        let a = RunValue::Tensor(RawTensor::from_slice(&numbers, &[4, 5]));
        let inputs = Inputs::new(vec![a, RunValue::Tensor(RawTensor::from_slice(&[row], &[]))]);
        assert_eq!(verdict(&program, &inputs), WaysVerdict::Agree, "{row}");
    }
    // Columns apart are so in any number of rows.
    let text = "symbol n in [0, inf]
      graph(%x: f32[n, 4]) {
        %y: f32[n, 4] = aten.mul.Scalar(%x, 1)
        %corner: f32[n, 2][4, 1] = aten.slice.Tensor(%y, 1, 0, 2)
        %size: f32[n, 2][4, 1]+2 = aten.slice.Tensor(%y, 1, 2, 4)
        %a: f32[n, 2][4, 1]+2 = aten.add_.Tensor(%size, %corner)
        %even: f32[n, 2][4, 2] = aten.slice.Tensor(%y, 1, 0, 4, 2)
        %odd: f32[n, 2][4, 2]+1 = aten.slice.Tensor(%y, 1, 1, 4, 2)
        %b: f32[n, 2][4, 2] = aten.mul_.Tensor(%even, %odd)
        %first: f32[n][4] = aten.select.int(%y, 1, 0)
        %last: f32[n][4]+3 = aten.select.int(%y, 1, 3)
        %c: f32[n][4] = aten.sub_.Tensor(%first, %last)
        return %y
      }";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    let whole = restride_passes::functionalize::functionalize(&program, &Default::default()).expect("for all sizes");
    assert_eq!((whole.symbols.len(), &whole.notes[..]), (1, &[][..]));
    for rows in [0, 1, 3] {
        let numbers: Vec<f32> = (0..rows * 4).map(|i| i as f32).collect();
        let inputs = Inputs::new(vec![RunValue::Tensor(RawTensor::from_slice(&numbers, &[rows, 4]))]);
        assert_eq!(verdict(&program, &inputs), WaysVerdict::Agree, "{rows}");
    }
    // Columns 0 to 3 and u0 to u0 + 3 may meet at other elements.
    let text = "symbol u0 in [0, 1]
      graph(%a: f32[2, 5], %p: i64[]) {
        %left: f32[2, 4][5, 1] = aten.slice.Tensor(%a, 1, 0, 4)
        %u: Sym(u0) = aten.item.default(%p)
        %other: f32[2, 4][5, 1]+u0 = aten.slice.Tensor(%a, 1, u0, u0 + 4)
        %x: f32[2, 4][5, 1] = aten.copy_.default(%left, %other)
        return %a
      }";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    let refused = restride_passes::functionalize::functionalize(&program, &Default::default()).expect_err("refused");
    assert!(refused.what.starts_with("whether aten.copy_.default reads cells that it writes"), "{}", refused.what);
}

/// A symbolic offset is where the input begins, the strides of a lone row may be any.
#[test]
fn inputs_tell_where_they_begin() {
    let text = "symbol o in [0, inf]
      symbol s in [0, inf]
      symbol n in [1, inf]
      graph(%x: f32[n, 4][s, 1]+o) {
        %y: f32[n, 4] = aten.mul.Scalar(%x, 2)
        %z: f32[n, 4][s, 1]+o = aten.add_.Scalar(%x, 1)
        return %y
      }";
    let program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    for (rows, step, offset) in [(3, 5, 0), (1, 9, 0), (3, 4, 7), (1, 0, 1)] {
        let x = RawTensor::from_slice(&[1f32; 24], &[24]);
        let layout = restride_tensor::Layout::strided(&[rows, 4], &[step, 1], offset);
        let x = RawTensor::new(x.storage().clone(), x.dtype(), layout).expect("in the storage");
        let inputs = Inputs::new(vec![RunValue::Tensor(x)]);
        assert_eq!(verdict(&program, &inputs), WaysVerdict::Agree, "{rows} {step} {offset}");
    }
}

#[test]
fn bounds_that_depend_on_the_size_they_cut() {
    for (bound, rows) in [("-1*n + 1", "n + -1"), ("-1*FloorDiv(n, 2)", "FloorDiv(n, 2)")] {
        let text = format!(
            "symbol n in [2, inf]
            graph(%x: f32[n, 2]) {{
              %m: f32[n, 2] = aten.mul.Tensor(%x, 2)
              %s: f32[{rows}, 2] = aten.slice.Tensor(%m, 0, {bound})
              %t: f32[2] = aten.sum.dim_IntList(%s, [0])
              return %t
            }}"
        );
        let program = restride_ir::text::parse(&text, &restride_ops::lookup).expect("a program");
        for n in [4, 5, 9] {
            let numbers: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
            let x = RunValue::Tensor(RawTensor::from_slice(&numbers, &[n, 2]));
            assert_eq!(verdict(&program, &Inputs::new(vec![x])), WaysVerdict::Agree, "{bound} {n}");
        }
    }
}

#[test]
fn expanded_inputs_are_written() {
    let text = "graph(%x: f32[3, 4, 5][5, 0, 1]) {
        %r: f32[3, 5][5, 1] = aten.select.int(%x, 1, 0)
        %z: f32[3, 5][5, 1] = aten.add_.Scalar(%r, 1)
        %c: f32[3, 4, 5] = aten.mul.Tensor(%x, 2)
        return %c
      }";
    let mut program = restride_ir::text::parse(text, &restride_ops::lookup).expect("a program");
    restride_ir::relay(&mut program);
    let numbers: Vec<f32> = (0..15).map(|i| i as f32).collect();
    let x = RawTensor::from_slice(&numbers, &[15]);
    let layout = restride_tensor::Layout::strided(&[3, 4, 5], &[5, 0, 1], 0);
    let x = RawTensor::new(x.storage().clone(), x.dtype(), layout).expect("in the storage");
    let inputs = Inputs::new(vec![RunValue::Tensor(x)]);
    assert_eq!(verdict(&program, &inputs), WaysVerdict::Agree);
}
