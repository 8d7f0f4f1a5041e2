//! Training steps: the update is the optimizer's formula on the gradient, and happens in the parameters' own memory.

use restride::{
    Adam, CompileOptions, Compiled, GradOptions, Inputs, Instance, OpenOptions, Optimizer, Program, RawTensor,
    RunOptions, Sgd, State, open,
};
use restride_ir::{Arg, Expr, InputKind, OutputKind};
use std::collections::BTreeMap;
use std::path::Path;

fn classifier() -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/classifier.pt2");
    open(&path, &OpenOptions::default()).expect("the program")
}

fn compiled(program: Program, inputs: &Inputs) -> Compiled {
    Compiled::new(program, Some(inputs), &CompileOptions::default()).expect("compiles")
}

fn numbers(t: &RawTensor) -> Vec<f64> {
    t.to_elements::<f32>().into_iter().map(f64::from).collect()
}

/// What an optimizer keeps of a parameter, number by number.
#[derive(Clone, Copy, Default)]
struct Kept {
    momentum: f64,
    average: f64,
    squares: f64,
    largest: f64,
}

/// The optimizers' formulas on one number.
fn formula(o: &Optimizer, step: i32, p: f64, g: f64, kept: &mut Kept) -> f64 {
    match o {
        Optimizer::Sgd(o) => {
            let g = if o.maximize { -g } else { g } + o.weight_decay * p;
            if o.momentum == 0.0 {
                return p - o.lr * g;
            }
            let part = if step == 1 { 1.0 } else { 1.0 - o.dampening };
            kept.momentum = o.momentum * kept.momentum + part * g;
            p - o.lr * if o.nesterov { g + o.momentum * kept.momentum } else { kept.momentum }
        }
        Optimizer::Adam(o) => {
            let g = if o.maximize { -g } else { g };
            let (g, p) = if o.decoupled_weight_decay {
                (g, p * (1.0 - o.lr * o.weight_decay))
            } else {
                (g + o.weight_decay * p, p)
            };
            let (b1, b2) = o.betas;
            kept.average = b1 * kept.average + (1.0 - b1) * g;
            kept.squares = b2 * kept.squares + (1.0 - b2) * g * g;
            kept.largest = kept.largest.max(kept.squares);
            let squares = if o.amsgrad { kept.largest } else { kept.squares };
            let root = squares.sqrt() / (1.0 - b2.powi(step)).sqrt();
            p - o.lr / (1.0 - b1.powi(step)) * kept.average / (root + o.eps)
        }
    }
}

/// The state of one instance as that of a program that has fewer weights.
fn as_state_of(program: &Program, of: &Instance) -> State {
    let mut out = State::new(program).expect("a state");
    for (name, t) in of.state().deep_clone().iter() {
        if out.get(name).is_some() {
            out.set(name.clone(), t.clone());
        }
    }
    out
}

fn follows(o: Optimizer) {
    let program = classifier();
    let inputs = Inputs::from_samples(&program).expect("samples").expect("inputs");
    let forward = compiled(program, &inputs);
    let options = GradOptions { wrt: None, ..GradOptions::default() };
    let step = forward.train(&options, &|step, p| o.update(step, p)).expect("a step");
    let joint = compiled(forward.grad(&options).expect("gradients"), &inputs);
    let mut trained = compiled(step, &inputs).instance().expect("an instance");
    let mut kept: BTreeMap<String, Vec<Kept>> = BTreeMap::new();
    for n in 1..=4 {
        let mut beside = joint.instance().expect("an instance");
        beside.set_state(as_state_of(joint.functional(), &trained));
        let gradients = beside.run(&inputs, &RunOptions::default()).expect("gradients").gradients;
        let mut expected = BTreeMap::new();
        for (i, g) in &gradients {
            let InputKind::Parameter(name) = &joint.functional().signature.inputs[*i].kind else { continue };
            let before = numbers(trained.state().get(name).expect("the parameter"));
            let own = kept.entry(name.to_string()).or_insert_with(|| vec![Kept::default(); before.len()]);
            let next = |((p, g), k): ((&f64, f64), &mut Kept)| formula(&o, n, *p, g, k);
            let new: Vec<f64> = before.iter().zip(numbers(g)).zip(own).map(next).collect();
            expected.insert(name.to_string(), new);
        }
        assert_eq!(expected.len(), 10);
        trained.run(&inputs, &RunOptions::default()).expect("a step");
        for (name, want) in expected {
            let have = numbers(trained.state().get(&name).expect("the parameter"));
            for (a, b) in have.iter().zip(&want) {
                // Adam divides by what may be next to nothing, and then by rounding.
                assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{o:?}, step {n}, {name}: {a} is not {b}");
            }
        }
    }
}

#[test]
fn sgd_is_the_formula() {
    let own = Sgd { lr: 0.1, ..Sgd::default() };
    follows(Optimizer::Sgd(own));
    follows(Optimizer::Sgd(Sgd { momentum: 0.9, weight_decay: 0.01, ..own }));
    follows(Optimizer::Sgd(Sgd { momentum: 0.5, dampening: 0.25, maximize: true, ..own }));
    follows(Optimizer::Sgd(Sgd { momentum: 0.5, nesterov: true, ..own }));
}

#[test]
fn adam_is_the_formula() {
    // An eps that rounding of gradients that are zero does not reach.
    let own = Adam { lr: 0.01, eps: 1e-3, ..Adam::default() };
    follows(Optimizer::Adam(own));
    follows(Optimizer::Adam(Adam { weight_decay: 0.1, maximize: true, betas: (0.5, 0.8), ..own }));
    follows(Optimizer::Adam(Adam { weight_decay: 0.1, decoupled_weight_decay: true, amsgrad: true, ..own }));
}

#[test]
fn parameters_are_updated_in_their_own_memory() {
    let program = classifier();
    let inputs = Inputs::from_samples(&program).expect("samples").expect("inputs");
    let forward = compiled(program, &inputs);
    let adam = Adam::default();
    let step = forward.train(&GradOptions::default(), &|step, p| adam.update(step, p)).expect("a step");
    let step = compiled(step, &inputs);
    let mut instance = step.instance().expect("an instance");
    let place = |i: &Instance| -> Vec<*const u8> {
        i.state().iter().map(|(_, t)| t.storage().address().cast_const()).collect()
    };
    // The first run takes weights out of the file.
    instance.run(&inputs, &RunOptions::default()).expect("a step");
    let before = place(&instance);
    instance.run(&inputs, &RunOptions::default()).expect("a step");
    assert_eq!(before, place(&instance));
    // Nothing is moved into a parameter or what the optimizer keeps: only BatchNorm's statistics come from elsewhere.
    let report = step.prepare(&inputs).expect("a report").report();
    let statistics = 4 * 2 * (8 + 16);
    assert!(report.placed.copy_bytes <= statistics, "{} bytes are copied", report.placed.copy_bytes);
    // Everything has an effect: each of the ten parameters has two averages, and there is the number of steps.
    let signature = &step.functional().signature;
    let of = |test: &dyn Fn(&InputKind) -> bool| {
        let is = |k: &OutputKind| matches!(k, OutputKind::Mutation(i) if test(&signature.inputs[*i].kind));
        signature.outputs.iter().filter(|o| is(&o.kind)).count()
    };
    assert_eq!(of(&|k| matches!(k, InputKind::Parameter(_))), 10);
    assert_eq!(of(&|k| matches!(k, InputKind::Buffer { name, .. } if name.starts_with("optimizer."))), 21);
    assert!(!signature.outputs.iter().any(|o| matches!(o.kind, OutputKind::Gradient(_))));
}

#[test]
fn any_update_is_written_with_operators() {
    let program = classifier();
    let inputs = Inputs::from_samples(&program).expect("samples").expect("inputs");
    let forward = compiled(program, &inputs);
    let only = GradOptions { wrt: Some(vec!["head.weight".into()]), ..GradOptions::default() };
    // Down by the sign of the gradient.
    let step = forward.train(&only, &|step, p| {
        let sign = step.op("aten.sign.default", &[Arg::Value(p.grad)])?;
        step.op("aten.add.Tensor", &[Arg::Value(p.value), Arg::Value(sign), Arg::Scalar(Expr::float(-0.25))])
    });
    let mut trained = compiled(step.expect("a step"), &inputs).instance().expect("an instance");
    let joint = compiled(forward.grad(&only).expect("gradients"), &inputs);
    let gradients =
        joint.instance().expect("an instance").run(&inputs, &RunOptions::default()).expect("a run").gradients;
    let before = trained.state().deep_clone();
    trained.run(&inputs, &RunOptions::default()).expect("a step");
    let of = |s: &State, name: &str| numbers(s.get(name).expect("a parameter"));
    let moved =
        of(&before, "head.weight").into_iter().zip(of(trained.state(), "head.weight")).zip(numbers(&gradients[0].1));
    for ((a, b), g) in moved {
        assert!((a - b - 0.25 * g.signum()).abs() < 1e-6, "{a} became {b} along {g}");
    }
    assert_eq!(of(&before, "head.bias"), of(trained.state(), "head.bias"));
}

#[test]
fn what_an_update_cannot_be_is_said() {
    let program = classifier();
    let inputs = Inputs::from_samples(&program).expect("samples").expect("inputs");
    let forward = compiled(program, &inputs);
    let refusal = |options: &GradOptions, update: &restride::Update<'_>| {
        forward.train(options, update).expect_err("a refusal").to_string()
    };
    let own = GradOptions::default();
    let said = refusal(&own, &|step, p| step.op("aten.sum.default", &[Arg::Value(p.value)]));
    assert!(said.contains("gives f32[]; the parameter is f32["), "{said}");
    let said = refusal(&own, &|step, p| Sgd { lr: -1.0, ..Sgd::default() }.update(step, p));
    assert!(said.contains("Invalid learning rate: -1"), "{said}");
    let user = GradOptions { wrt: Some(vec!["images".into()]), ..GradOptions::default() };
    let said = refusal(&user, &|step, p| Sgd::default().update(step, p));
    assert!(said.contains("%images is no parameter"), "{said}");
}
