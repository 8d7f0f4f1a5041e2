//! Triton kernels in files: read as operators that write, called on memory, and written back in PyTorch's form.

use restride::{CompileOptions, Compiled, OpenOptions, open};
use restride_ir::text::print;
use restride_ir::{Program, Stage};
use restride_pt2::export::{export_bytes, program_model};
use restride_pt2::import::{ImportOptions, import};
use restride_tensor::Bytes;
use std::path::Path;

/// A launch as PyTorch's serializer writes one, between a product and another.
fn fixture() -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/triton/add_kernel.pt2");
    open(&path, &OpenOptions::default()).expect("a program with a kernel")
}

fn again(program: &Program) -> Program {
    let bytes = export_bytes(program).expect("an archive");
    let options = ImportOptions { model: None, lookup: &restride_ops::lookup, limits: Default::default() };
    import(&Bytes::copy_of(&bytes), &program.name, &options).expect("the archive is read")
}

fn calls<'p>(program: &'p Program, what: &str) -> Vec<&'p str> {
    let graph = program.graph();
    graph.ordered().map(|(_, n)| n.op.name()).filter(|name| name.contains(what)).collect()
}

fn targets(program: &Program) -> Vec<String> {
    let model = program_model(program).expect("a model");
    model.graph_module.graph.nodes.iter().map(|n| n.target.clone()).filter(|t| t.contains("triton")).collect()
}

#[test]
fn a_kernel_is_called_on_the_memory_itself() {
    let program = fixture();
    assert_eq!(calls(&program, "triton").len(), 1);
    let compiled = Compiled::new(program, None, &CompileOptions::default()).expect("a functional program");
    assert!(calls(compiled.functional(), "triton").iter().all(|n| n.contains("_functional")));
    let functional = targets(compiled.functional());
    assert_eq!(functional, ["torch.ops.higher_order.triton_kernel_wrapper_functional"]);

    let in_place = compiled.reinplaced().expect("a program in place");
    assert_eq!(in_place.stage, Stage::Imported);
    let text = print(&in_place);
    assert!(!text.contains("clone") && !text.contains("copy_"), "{text}");
    assert_eq!(targets(&in_place), ["torch.ops.higher_order.triton_kernel_wrapper_mutation"]);
}

#[test]
fn what_is_written_is_read_back() {
    let compiled = Compiled::new(fixture(), None, &CompileOptions::default()).expect("a functional program");
    let in_place = compiled.reinplaced().expect("a program in place");
    assert_eq!(print(&again(&in_place)), print(&in_place));
    // Of a functional node the clones that PyTorch makes are read; functionalized, it is what it was.
    let read = Compiled::new(again(compiled.functional()), None, &CompileOptions::default()).expect("it is read");
    let back = read.reinplaced().expect("a program in place");
    assert_eq!(calls(&back, "aten"), calls(&in_place, "aten"));
}

/// The options of a launch come through, names and all.
#[test]
fn options_of_a_launch_are_passed_along() {
    let compiled = Compiled::new(fixture(), None, &CompileOptions::default()).expect("a functional program");
    for program in [compiled.functional(), &compiled.reinplaced().expect("a program in place")] {
        let model = program_model(program).expect("a model");
        let node = model.graph_module.graph.nodes.iter().find(|n| n.target.contains("triton")).expect("the launch");
        let names: Vec<&str> = node.inputs.iter().map(|i| i.name.as_str()).collect();
        let own = ["in_ptr", "out_ptr", "n"];
        let options = [
            "name",
            "grid",
            "num_warps",
            "shared_memory_bytes",
            "kernel_param_names",
            "kernel_param_types",
            "output_indices",
        ];
        assert_eq!(names, [&own[..], &options].concat());
    }
}

const PARTS: &str = "graph(%a: f32[4, 4], %b: f32[4]) {
  %m: f32[4, 4] = aten.mul.Tensor(%a, 2)
  %r: f32[4] = aten.select.int(%m, 0, 0)
  %s: f32[4]+8 = aten.select.int(%m, 0, 2)
  triton.rows.v1.default(%r, %s, %b, 4, launch_grid=[1, 1, 1])
  return %m
}";

/// Rows of one tensor are given to a functional launch as views, and scattered; what overlaps is refused.
#[test]
fn parts_of_one_tensor() {
    let schema = "triton::rows.v1(Tensor(a!) x, Tensor(b!) y, Tensor z, int n, *, int[] launch_grid) -> ()";
    restride_ops::register_custom(schema).expect("a schema");
    let parse = |text: &str| {
        let text = text.replace(".v1.default", ".v1");
        restride_ir::text::parse(&text, &restride_ops::lookup).expect("a program")
    };
    let compiled = Compiled::new(parse(PARTS), None, &CompileOptions::default()).expect("a functional program");
    let written = again(compiled.functional());
    assert_eq!(calls(&written, "as_strided_scatter").len(), 2);
    let in_place = compiled.reinplaced().expect("a program in place");
    assert!(!print(&in_place).contains("clone"));

    let overlapping = PARTS
        .replace("%s: f32[4]+8 = aten.select.int(%m, 0, 2)", "%s: f32[4]+2 = aten.as_strided.default(%m, [4], [1], 2)");
    let compiled = Compiled::new(parse(&overlapping), None, &CompileOptions::default()).expect("a functional program");
    let error = export_bytes(compiled.functional()).expect_err("two arguments in the same cells");
    assert!(error.to_string().contains("may share memory"), "{error}");
}
