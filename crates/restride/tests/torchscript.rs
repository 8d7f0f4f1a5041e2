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
        "bool" => bytes.iter().map(|b| f64::from(*b)).collect(),
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
    let names = ["scripted_code", "scripted_state", "scripted_found", "scripted_growing"];
    for name in names.into_iter().chain(["scripted_decisions", "scripted_picked", "scripted_texts"]) {
        holds(name, &format!("{name}.pt"), "");
    }
}

#[test]
fn files_give_numbers_from_data_to_bodies() {
    for name in ["scripted_code", "scripted_decisions", "scripted_picked", "scripted_texts"] {
        let functional = holds(name, &format!("{name}.pt"), "");
        let bytes = restride_pt2::export::export_bytes(&functional).unwrap_or_else(|e| panic!("{name}: {e}"));
        let bytes = restride_tensor::Bytes::copy_of(&bytes);
        let program = restride::open_bytes(&bytes, &OpenOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        // PyTorch gives bodies tensors and integers.
        for (_, graph) in program.graphs.iter().filter(|(id, _)| *id != program.main) {
            let float = |v: &restride_ir::ValueId| matches!(&graph.values[*v].ty, restride_ir::Type::Scalar(e) if e.is_float() || e.is_bool());
            assert!(!graph.inputs.iter().any(float), "{name}: {}", graph.name);
        }
        let inputs = files::read_inputs(&folder().join(format!("{name}.inputs.json")), &program).unwrap();
        let mut state = State::new(&program).unwrap();
        let outputs = restride::interpret(&program, &inputs, &mut state, &RunOptions::default()).unwrap();
        compare(&format!("{name} as a file"), &outputs.values, &read(&format!("{name}.outputs.npz")));
    }
}

#[test]
fn operators_of_old_archives_mean_what_they_meant() {
    for name in ["old_version_3", "old_version_5"] {
        holds(name, &format!("{name}.pt"), "");
    }
}

/// Archives that PyTorch 1.4 to 1.11 wrote (`scripts/make/old_torchscript.py`).
#[test]
fn archives_of_old_versions_run_as_those_ran_them() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder().join("old")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = file.strip_suffix(".pt") {
            holds(&format!("old/{name}"), &format!("old/{file}"), "");
            count += 1;
        }
    }
    assert_eq!(count, 13);
}

/// The refusal of `def forward(self, x: Tensor, n: Tensor) -> BODY` in an archive.
fn refusal_of_loop(body: &str) -> restride::Error {
    let text = format!("def forward(self, x: torch.Tensor, n: torch.Tensor):\n{body}");
    let given =
        GivenInputs { items: GivenInputs::parse_types("x=f32[4,3],n=i64[]").unwrap(), ..GivenInputs::default() };
    let import = restride_torchscript::RecordOptions {
        method: None,
        lookup: &restride_ops::lookup,
        limits: restride::Limits::default(),
        inputs: &given,
    };
    restride_torchscript::text::import(&text, "text", None, &import).unwrap_err()
}

#[test]
fn loops_on_data_that_no_program_has_are_refused() {
    let grows = "    y = x\n    for i in range(n.item()):\n        y = torch.cat([y, x])\n    return y\n";
    let e = refusal_of_loop(grows);
    assert!(e.what.contains("changes the sizes of y in each iteration: f32[4, 3] becomes f32[8, 3]"), "{e}");
    let writes = "    y = [x]\n    for i in range(n.item()):\n        y[0] = x + 1\n    return y[0]\n";
    let e = refusal_of_loop(writes);
    assert!(e.what.contains("changes a list otherwise than by appending one tensor"), "{e}");
    let ragged = "    y = []\n    for i in range(n.item()):\n        y.append(x[:i])\n    return torch.cat(y)\n";
    let e = refusal_of_loop(ragged);
    assert!(e.what.contains("of which each has a size of its own"), "{e}");
    let read = "    y = []\n    for i in range(n.item()):\n        y.append(x)\n    return y[1:]\n";
    let e = refusal_of_loop(read);
    assert!(e.what.contains("as often as data decides") && e.help.is_some(), "{e}");
    for shares in [
        "    y = x\n    for i in range(n.item()):\n        y = y + 1\n    y.add_(1)\n    return x, y\n",
        "    y = x\n    for i in range(n.item()):\n        y = y + 1\n    x.add_(1)\n    return x, y\n",
        "    y = x\n    for i in range(n.item()):\n        y.add_(1)\n        y = y * 2\n    return x, y\n",
        "    y = []\n    for i in range(n.item()):\n        y.append(x[0])\n    x.add_(1)\n    return torch.stack(y)\n",
    ] {
        let e = refusal_of_loop(shares);
        assert!(e.what.contains("shares memory with another one only if data decides so"), "{shares}: {e}");
    }
    let writes = "    y = []\n    for i in range(n.item()):\n        x.add_(1)\n        y.append(x)\n    return torch.stack(y)\n";
    let e = refusal_of_loop(writes);
    assert!(e.what.contains("appends a tensor to a list and writes into its memory"), "{e}");
    let sizes = "    return x + x[x > 0]\n";
    let e = refusal_of_loop(sizes);
    assert!(e.what.contains("where data decides the sizes written `?`"), "{e}");
}

#[test]
fn errors_name_the_python_that_the_code_was_made_from() {
    // Both forms of the lines' table, of PyTorch 1.4 and 1.11.
    for (file, types, python) in [
        ("old/1.4_control_scripted.pt", "x=f32[2,4],k=2,mask=None", ", from "),
        ("old/1.11_rnn_scripted.pt", "x=f32[2,4,5]", "torch/nn/modules/rnn.py:"),
    ] {
        let inputs = GivenInputs { items: GivenInputs::parse_types(types).unwrap(), ..GivenInputs::default() };
        let options = OpenOptions { inputs, ..OpenOptions::default() };
        let error = restride::open(&folder().join(file), &options).unwrap_err();
        let source = error.source.unwrap();
        assert!(source.starts_with("code/__torch__/") && source.contains(python), "{source}");
    }
}

#[test]
fn traces_have_symbolic_sizes() {
    holds("traced_network", "traced_network.pt", "input.0=1..64");
}

#[test]
fn printed_graphs_run_as_pytorch_runs_them() {
    for name in ["fx_nodes", "fx_code", "fx_modules", "log", "exported", "jit_ir"] {
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

#[test]
fn a_run_starts_from_the_state_that_another_wrote() {
    let name = "scripted_state";
    let program = opened(name, "scripted_state.pt", "");
    let inputs = files::read_inputs(&folder().join("scripted_state.inputs.json"), &program).unwrap();
    let run = RunOptions::default();
    let path = std::env::temp_dir().join(format!("restride-state-{}.npz", std::process::id()));
    let (old, mut state) = (State::new(&program).unwrap(), State::new(&program).unwrap());
    let outputs = restride::interpret(&program, &inputs.deep_clone(), &mut state, &run).unwrap();
    files::write_outputs(&path, &program, (&inputs, &old), &outputs, &state).unwrap();
    let mut state = State::new(&program).unwrap();
    files::read_state(&path, &mut state).unwrap();
    std::fs::remove_file(&path).unwrap();
    let outputs = restride::interpret(&program, &inputs.deep_clone(), &mut state, &run).unwrap();
    compare("again", &outputs.values, &read("scripted_state.again.npz"));
    // Results are no state.
    let e = files::read_state(&folder().join("scripted_state.again.npz"), &mut state).unwrap_err();
    assert!(e.to_string().contains("holds no state"), "{e}");
}

/// The results of a text on inputs of small numbers, interpreted and as a functional program.
fn ran(text: &str, types: &str) -> Vec<Vec<f64>> {
    let given = GivenInputs { items: GivenInputs::parse_types(types).unwrap(), ..GivenInputs::default() };
    let import = restride_torchscript::RecordOptions {
        method: None,
        lookup: &restride_ops::lookup,
        limits: restride::Limits::default(),
        inputs: &given,
    };
    let program = restride_torchscript::text::import(text, "text", None, &import).unwrap_or_else(|e| panic!("{e}"));
    let size = |n: &restride_ir::Expr| n.constant().expect("a known size").as_f64() as i64;
    let values = restride::user_inputs(&program).map(|(i, _)| {
        let ty = program.graph().tensor(program.signature.inputs[i].value).clone();
        let n: i64 = ty.layout.sizes.iter().map(size).product();
        let data: Vec<f32> = (0..n).map(|k| k as f32 - 1.0).collect();
        let sizes: Vec<i64> = ty.layout.sizes.iter().map(size).collect();
        RunValue::Tensor(restride::RawTensor::from_slice(&data, &sizes))
    });
    let inputs = Inputs::new(values.collect::<Vec<_>>());
    let run = RunOptions::default();
    let results = |p: &Program| -> Vec<Vec<f64>> {
        let mut state = State::new(p).unwrap();
        let out = restride::interpret(p, &inputs.deep_clone(), &mut state, &run).unwrap();
        out.values.iter().filter_map(elements).map(|v| v.1).collect()
    };
    let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).unwrap();
    let out = results(&program);
    assert_eq!(out, results(compiled.functional()));
    out
}

#[test]
fn bodies_of_printed_graphs_are_called() {
    let text = r#"
class GraphModule(torch.nn.Module):
    def forward(self, x):
        x: "f32[3]";

        x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
        _guards_fn = self._guards_fn(x);  _guards_fn = None
        sum_1: "f32[]" = torch.ops.aten.sum.default(x)
        gt: "b8[]" = torch.ops.aten.gt.Scalar(sum_1, 5);  sum_1 = None
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, [x]);  gt = true_graph_0 = None
        getitem: "f32[3]" = cond[0];  cond = None
        submod_1 = self.submod_1
        scan = torch.ops.higher_order.scan(submod_1, [getitem], [x], ());  submod_1 = None
        getitem_1: "f32[3]" = scan[1]
        return pytree.tree_unflatten((getitem, getitem_1), self._out_spec)

    class true_graph_0(torch.nn.Module):
        def forward(self, x: "f32[3]"):
            mul: "f32[3]" = torch.ops.aten.mul.Tensor(x, 2);  x = None
            return (mul,)

    class false_graph_0(torch.nn.Module):
        def forward(self, x: "f32[3]"):
            sub: "f32[3]" = torch.ops.aten.sub.Tensor(x, 3);  x = None
            return (sub,)

    class submod_1(torch.nn.Module):
        def forward(self, carry: "f32[3]", row: "f32[]"):
            add: "f32[3]" = torch.ops.aten.add.Tensor(carry, row);  carry = row = None
            sum_2: "f32[]" = torch.ops.aten.sum.default(add)
            return (add, sum_2)
"#;
    // x = [-1, 0, 1] sums to 0: x - 3 = [-4, -3, -2]; sums after adding each row: -12, -12, -9.
    assert_eq!(ran(text, ""), [vec![-4.0, -3.0, -2.0], vec![-12.0, -12.0, -9.0]]);
}

#[test]
fn a_branch_may_choose_between_what_was_made_before_it() {
    let text = r#"
class GraphModule(torch.nn.Module):
    def forward(self, x):
        x: "f32[3]";

        x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
        sum_1: "f32[]" = torch.ops.aten.sum.default(x)
        gt: "b8[]" = torch.ops.aten.gt.Scalar(sum_1, 5);  sum_1 = None
        mul: "f32[3]" = torch.ops.aten.mul.Tensor(x, 2)
        add: "f32[3]" = torch.ops.aten.add.Tensor(x, 1)
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, [mul, add]);  gt = true_graph_0 = None
        getitem: "f32[3]" = cond[0];  cond = None
        return pytree.tree_unflatten((getitem,), self._out_spec)

    class true_graph_0(torch.nn.Module):
        def forward(self, a: "f32[3]", b: "f32[3]"):
            return (a,)

    class false_graph_0(torch.nn.Module):
        def forward(self, a: "f32[3]", b: "f32[3]"):
            return (b,)
"#;
    assert_eq!(ran(text, ""), [vec![0.0, 1.0, 2.0]]);
}

#[test]
fn graphs_of_modules_are_called() {
    let text = r#"
>>> print(m.graph); print(m.inner.graph)
graph(%self.1 : __torch__.M,
      %x.1 : Float(3, strides=[1], requires_grad=0, device=cpu)):
  %f : Function = prim::Constant[name="relu"]()
  %no : bool = prim::Constant[value=0]()
  %inner : __torch__.Inner = prim::GetAttr[name="inner"](%self.1)
  %4 : Tensor = prim::CallMethod[name="forward"](%inner, %x.1) # m.py:16:35
  %5 : Tensor = prim::CallFunction(%f, %4, %no)
  return (%5)

graph(%self : __torch__.Inner,
      %x.1 : Tensor):
  %act : __torch__.torch.nn.modules.activation.Sigmoid = prim::GetAttr[name="act"](%self)
  %one : int = prim::Constant[value=1](), scope: __module.inner # m.py:3:0
  %c : Float(3, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 1  2 -9 [ CPUFloatType{3} ]]()
  %y : Tensor = aten::add(%x.1, %c, %one), scope: __module.inner # m.py:3:0
  %s : Tensor = prim::CallMethod[name="forward"](%act, %y)
  %z : Tensor = aten::mul_(%y, %s)
  return (%y)
"#;
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let got = ran(text, "");
    for (a, b) in got[0].iter().zip([0.0, 2.0 * sigmoid(2.0), 0.0]) {
        assert!((a - b).abs() < 1e-6, "{got:?}");
    }
}

#[test]
fn texts_without_what_they_call_are_refused() {
    let refused = |text: &str, types: &str| {
        let given = GivenInputs { items: GivenInputs::parse_types(types).unwrap(), ..GivenInputs::default() };
        let import = restride_torchscript::RecordOptions {
            method: None,
            lookup: &restride_ops::lookup,
            limits: restride::Limits::default(),
            inputs: &given,
        };
        restride_torchscript::text::import(text, "text", None, &import).unwrap_err().to_string()
    };
    let nodes = "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    %b : [num_users=1] = get_attr[target=true_graph_0]\n    \
                 %c : [num_users=1] = call_function[target=torch.ops.higher_order.cond](args = (%x, %b, %b, []), kwargs = {})\n    return (c,)\n";
    assert!(refused(nodes, "x=bool[]").contains("print_readable()"));
    let inner = "graph(%self : __torch__.M,\n      %x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n  \
                 %m : __torch__.N = prim::GetAttr[name=\"m\"](%self)\n  %y : Tensor = prim::CallMethod[name=\"forward\"](%m, %x)\n  return (%y)\n";
    assert!(refused(inner, "").contains("whose code is not in the text"));
    let rounded = "graph(%x : Float(2, strides=[1], requires_grad=0, device=cpu)):\n  \
                   %c : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 0.1235  2.0000 [ CPUFloatType{2} ]]()\n  \
                   %y : Tensor = aten::mul(%x, %c)\n  return (%y)\n";
    assert!(refused(rounded, "").contains("few digits"));
}

#[test]
fn symbolic_sizes_are_printed_and_read() {
    let text = r#"
ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[s0, 4]"):
            sym_size_int: "Sym(s0)" = torch.ops.aten.sym_size.int(x, 0)
            mul: "Sym(4*s0)" = sym_size_int * 4
            view: "f32[4*s0]" = torch.ops.aten.view.default(x, [mul])
            add: "f32[4*s0]" = torch.ops.aten.add.Tensor(view, sym_size_int)
            return (add, mul)

Graph signature:
    # inputs
    x: USER_INPUT

    # outputs
    add: USER_OUTPUT
    mul: USER_OUTPUT

Range constraints: {s0: VR[1, 64]}
"#;
    let read = |text: &str, dynamic: &str| {
        let items = GivenInputs::parse_types("x=f32[5,4]").unwrap();
        let mut given = GivenInputs { items, ..GivenInputs::default() };
        if !dynamic.is_empty() {
            given.dynamic = GivenInputs::parse_dynamic(dynamic).unwrap();
        }
        let import = restride_torchscript::RecordOptions {
            method: None,
            lookup: &restride_ops::lookup,
            limits: restride::Limits::default(),
            inputs: &given,
        };
        restride_torchscript::text::import(text, "text", None, &import).unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    let results = |p: &Program, rows: i64| -> Vec<Vec<f64>> {
        let data: Vec<f32> = (0..rows * 4).map(|k| k as f32).collect();
        let inputs = Inputs::new([RunValue::Tensor(restride::RawTensor::from_slice(&data, &[rows, 4]))]);
        let mut state = State::new(p).unwrap();
        let out = restride::interpret(p, &inputs, &mut state, &RunOptions::default()).unwrap();
        out.values.iter().filter_map(elements).map(|v| v.1).collect()
    };
    let program = read(text, "");
    for form in [GraphForm::Nodes, GraphForm::Code, GraphForm::Exported, GraphForm::JitIr] {
        let printed = restride::print_graph(&program, form).unwrap();
        // Nodes and TorchScript IR hold no types of symbolic sizes.
        let dynamic = if matches!(form, GraphForm::Nodes | GraphForm::JitIr) { "x.0=1..64" } else { "" };
        let again = read(&printed, dynamic);
        for rows in [5, 3] {
            let want: Vec<f64> = (0..rows * 4).map(|k| (k + rows) as f64).collect();
            assert_eq!(results(&again, rows), [want, vec![(rows * 4) as f64]], "{printed}");
        }
    }
    let exported = restride::print_graph(&program, GraphForm::Exported).unwrap();
    assert!(exported.contains("VR[1, 64]") && exported.contains("4 * sym_0"), "{exported}");
}
