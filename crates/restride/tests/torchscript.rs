//! Archives of `torch.jit.save` and printed graphs against what PyTorch computed of them (`scripts/make/torchscript.py`).

use restride::{
    CompileOptions, Compiled, GivenInputs, GraphForm, Inputs, OpenOptions, Program, RunOptions, RunValue, State, files,
};
use restride_pt2::tensors::{self, Item, NamedTensors};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torchscript")
}

fn opened(name: &str, file: &str, dynamic: &str) -> Program {
    let inputs = files::given_inputs(&folder().join(format!("{name}.inputs.json"))).unwrap();
    let mut given = GivenInputs { items: inputs, ..GivenInputs::default() };
    if !dynamic.is_empty() {
        given.dynamic = GivenInputs::parse_dynamic(dynamic).unwrap();
    }
    let weights = folder().join(format!("{name}.weights.pt"));
    let options = OpenOptions { inputs: given, weights: weights.exists().then_some(weights), ..OpenOptions::default() };
    restride::open(&folder().join(file), &options).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn numbers(file: &NamedTensors, name: &str) -> Option<(Vec<i64>, Vec<f64>)> {
    let Item::Tensor(t) = file.get(name)? else { return None };
    let bytes = file.contiguous_bytes(t).unwrap();
    let all = match t.dtype.name() {
        "float32" => bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect(),
        "float64" => bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        "int64" => bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64).collect(),
        other => panic!("{other}"),
    };
    Some((t.sizes.clone(), all))
}

fn elements(value: &RunValue) -> Option<(Vec<i64>, Vec<f64>)> {
    match value {
        RunValue::Tensor(t) => {
            let wide = restride::Tensor::call_one(
                "aten._to_copy.default",
                &[
                    restride_ir::Arg::Value(restride::Tensor::copy_of(t).unwrap()),
                    restride_ir::Arg::DType(restride::DType::F64),
                ],
            );
            Some((t.layout().sizes.to_vec(), wide.unwrap().to_vec::<f64>().unwrap()))
        }
        RunValue::Scalar(s) => Some((Vec::new(), vec![s.as_f64()])),
        _ => None,
    }
}

fn compare(what: &str, got: &[RunValue], want: &NamedTensors) {
    for (i, value) in got.iter().enumerate() {
        let Some((sizes, have)) = elements(value) else { continue };
        let (want_sizes, want) = numbers(want, &format!("output.{i}")).unwrap_or_else(|| panic!("{what}: output {i}"));
        assert_eq!(sizes, want_sizes, "{what}: output {i}");
        for (a, b) in have.iter().zip(&want) {
            assert!((a - b).abs() <= 1e-4 * b.abs() + 1e-5 || a == b, "{what}: output {i}: {a} is not {b}");
        }
    }
}

fn read(name: &str) -> NamedTensors {
    tensors::read_file(&folder().join(name)).unwrap()
}

/// Runs a program all three ways.
fn holds(name: &str, file: &str, dynamic: &str) -> Program {
    let program = opened(name, file, dynamic);
    let inputs = files::read_inputs(&folder().join(format!("{name}.inputs.json")), &program).unwrap();
    let want = read(&format!("{name}.outputs.npz"));
    let run = RunOptions::default();
    let mut state = State::new(&program).unwrap();
    let outputs = restride::interpret(&program, &inputs.deep_clone(), &mut state, &run).unwrap();
    compare(&format!("{file} interp"), &outputs.values, &want);
    let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).unwrap();
    assert!(compiled.functional().graph().ordered().all(|(_, n)| !n.op.mutates(&n.args)), "{file}");
    let mut state = State::new(&program).unwrap();
    let outputs = restride::interpret(compiled.functional(), &inputs.deep_clone(), &mut state, &run).unwrap();
    compare(&format!("{file} functional"), &outputs.values, &want);
    let mut instance = compiled.instance().unwrap();
    let given = inputs.deep_clone();
    let outputs = instance.run(&given, &run).unwrap();
    compare(&format!("{file} plan"), &outputs.values, &want);
    // Mutations of inputs are in the caller's memory.
    for (i, value) in given.values.iter().enumerate() {
        if let Some((_, want)) = numbers(&want, &format!("input.{i}")) {
            let (_, have) = elements(value).unwrap();
            assert!(have.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-5), "{file}: input {i}");
        }
    }
    if name == "scripted_state" {
        let again = instance.run(&inputs.deep_clone(), &run).unwrap();
        compare(&format!("{file} again"), &again.values, &read("scripted_state.again.npz"));
    }
    compiled.functional().clone()
}

#[test]
fn traces_run_as_pytorch_runs_them() {
    for name in ["traced_boxes", "traced_network", "traced_found"] {
        holds(name, &format!("{name}.pt"), "");
    }
}

#[test]
fn scripted_code_runs_as_pytorch_runs_it() {
    for name in ["scripted_code", "scripted_state", "scripted_found"] {
        holds(name, &format!("{name}.pt"), "");
    }
}

#[test]
fn traces_have_symbolic_sizes() {
    holds("traced_network", "traced_network.pt", "input.0=1..64");
}

#[test]
fn printed_graphs_run_as_pytorch_runs_them() {
    for name in ["fx_nodes", "fx_code", "exported", "jit_ir"] {
        holds(name, &format!("{name}.txt"), "");
    }
}

#[test]
fn what_is_printed_can_be_pasted() {
    for (name, file) in
        [("fx_nodes", "fx_nodes.txt"), ("exported", "exported.txt"), ("traced_boxes", "traced_boxes.pt")]
    {
        let functional = holds(name, file, "");
        let program = restride::written(&functional).unwrap();
        let inputs = files::read_inputs(&folder().join(format!("{name}.inputs.json")), &program).unwrap();
        let mut state = State::new(&program).unwrap();
        let want = restride::interpret(&program, &inputs.deep_clone(), &mut state, &RunOptions::default()).unwrap();
        for form in [GraphForm::Nodes, GraphForm::Code, GraphForm::Exported, GraphForm::JitIr] {
            let text = restride::print_graph(&program, form).unwrap();
            if form == GraphForm::JitIr && !program.weights.tensors.is_empty() {
                // Weights are inputs of the printed graph.
                continue;
            }
            let items = files::given_inputs(&folder().join(format!("{name}.inputs.json"))).unwrap();
            let given = GivenInputs { items, ..GivenInputs::default() };
            let import = restride_torchscript::RecordOptions {
                method: None,
                lookup: &restride_ops::lookup,
                limits: restride::Limits::default(),
                inputs: &given,
            };
            let again = restride_torchscript::text::import(&text, "again", Some(&program.weights), &import)
                .unwrap_or_else(|e| panic!("{file} as {form:?}: {e}\n{text}"));
            let mut state = State::new(&again).unwrap();
            let outputs = restride::interpret(
                &again,
                &Inputs::new(inputs.deep_clone().values),
                &mut state,
                &RunOptions::default(),
            )
            .unwrap_or_else(|e| panic!("{file} as {form:?}: {e}\n{text}"));
            for (i, (a, b)) in outputs.values.iter().zip(&want.values).enumerate() {
                assert_eq!(elements(a), elements(b), "{file} as {form:?}, output {i}\n{text}");
            }
        }
    }
}

#[test]
fn inputs_without_types_are_asked_for() {
    let e = restride::open(&folder().join("scripted_code.pt"), &OpenOptions::default()).unwrap_err();
    assert_eq!(e.what, "the file does not hold the types of its inputs: those of x, parts");
    assert!(e.help.unwrap().contains("--random \"x=f32[1,3]"), "advice");
    let e = restride::open(&folder().join("fx_nodes.txt"), &OpenOptions::default()).unwrap_err();
    assert!(e.what.contains("types of its inputs"), "{e}");
}

#[test]
fn a_state_dict_is_a_tensor_file() {
    let file = read("state_dict.pt");
    assert!(file.get("0.weight").is_some() && file.get("1.running_mean").is_some());
}
