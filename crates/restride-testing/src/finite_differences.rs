//! Finite differences, the oracle of gradient rules.

use crate::rng::Rng;
use restride::{Inputs, RawTensor, RunOptions, RunValue, State};
use restride_ir::{
    Arg, DType, Expr, InputKind, InputSpec, Layout, Meta, Op, OutputKind, OutputSpec, Program, SampleArg, Scalar,
    Stage, TensorType, Type, ValueId,
};
use restride_ops::lookup;
use restride_tensor::C64;

type Result<T> = std::result::Result<T, String>;

/// Prefix of the message for a call that PyTorch refuses.
pub const REFUSED: &str = "refused: ";

/// Operators with constant operands, which have no gradient: running statistics, and torchvision's regions.
const FIXED: &[(&[&str], &[usize])] = &[
    (
        &[
            "aten.batch_norm.default",
            "aten.native_batch_norm.default",
            "aten._native_batch_norm_legit_functional.default",
            "aten._native_batch_norm_legit_no_training.default",
            "aten._batch_norm_no_update.default",
            "aten._batch_norm_with_update_functional.default",
            "aten.instance_norm.default",
            "restride.instance_norm.default",
        ],
        &[3, 4],
    ),
    (&["torchvision.roi_align.default", "torchvision._roi_align_backward.default"], &[1]),
];

/// Positions of the arguments of an operator that are constants.
fn fixed(op: Op) -> &'static [usize] {
    FIXED.iter().find(|f| f.0.contains(&op.name())).map_or(&[], |f| f.1)
}

/// Number of leading results with gradients, where only the gradient reads the others.
const FIRST: &[(&[&str], usize)] = &[
    (
        &[
            "aten.native_layer_norm.default",
            "aten._fused_rms_norm.default",
            "aten.native_group_norm.default",
            "aten.native_batch_norm.default",
            "aten._native_batch_norm_legit_functional.default",
            "aten._native_batch_norm_legit.no_stats",
            "aten._native_batch_norm_legit_no_training.default",
            "aten._batch_norm_no_update.default",
            "aten._batch_norm_with_update_functional.default",
            "aten.log_sigmoid_forward.default",
            "aten.nll_loss_forward.default",
            "aten.nll_loss2d_forward.default",
            "aten._linalg_det.default",
            "aten._linalg_solve_ex.default",
            "aten._ctc_loss.default",
            "restride.instance_norm.default",
        ],
        1,
    ),
    (&["aten._linalg_slogdet.default"], 2),
];

/// Number of an operator's leading results with gradients.
fn shown(op: Op) -> usize {
    FIRST.iter().find(|f| f.0.contains(&op.name())).map_or(usize::MAX, |f| f.1)
}

/// Adds calls to a program's main graph.
pub struct Calls<'a> {
    /// The program.
    pub program: &'a mut Program,
    count: usize,
}

impl<'a> Calls<'a> {
    /// Appends calls to the main graph. Names of values begin with as many underscores as `prefix` has characters.
    pub fn new(program: &'a mut Program) -> Calls<'a> {
        let count = program.graph().values.len();
        Calls { program, count }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("made_{}", self.count)
    }

    /// A user input of this type.
    pub fn input(&mut self, ty: Meta) -> ValueId {
        let name = self.name();
        let ty = Type::Tensor(TensorType::new(ty.dtype, ty.layout.map(|d| Expr::Int(*d))));
        let value = self.program.graph_mut().add_input(name.as_str(), ty);
        self.program.signature.inputs.push(InputSpec { value, kind: InputKind::User(name.into()) });
        value
    }

    /// A call with all its results.
    pub fn call(&mut self, op: Op, args: &[Arg<ValueId, Scalar>]) -> Result<Vec<ValueId>> {
        let mut args = args.to_vec();
        op.fill_defaults_or_none(&mut args);
        let meta = |v: &ValueId| self.program.graph().tensor(*v).known().ok_or("unknown sizes");
        let metas =
            args.iter().map(|a| a.try_map(meta, |s| Ok::<_, &str>(*s))).collect::<std::result::Result<Vec<_>, _>>()?;
        let types = restride_ops::types(op, &metas).map_err(|e| format!("{REFUSED}{e}"))?;
        let results: Vec<(std::sync::Arc<str>, Type)> = types
            .into_iter()
            .map(|m| (self.name().into(), Type::Tensor(TensorType::new(m.dtype, m.layout.map(|d| Expr::Int(*d))))))
            .collect();
        let args = args.iter().map(lift).collect();
        let graph = self.program.graph_mut();
        let id = graph.add_node(op, args, results, std::sync::Arc::default());
        Ok(graph.nodes[id].results.to_vec())
    }

    /// A call by name with one result.
    pub fn one(&mut self, name: &str, args: &[Arg<ValueId, Scalar>]) -> Result<ValueId> {
        let op = lookup(name).ok_or("no such operator")?;
        Ok(self.call(op, args)?[0])
    }

    /// The loss: the sum of floating values times weights, which become inputs. Returns the loss and the weights' types in
    /// order, or `None` without floating values.
    pub fn weighted(&mut self, values: &[ValueId]) -> Result<Option<(ValueId, Vec<Meta>)>> {
        let mut total: Option<ValueId> = None;
        let mut weights = Vec::new();
        for &v in values {
            let ty = self.program.graph().tensor(v).known().ok_or("unknown sizes")?;
            let v = match ty.dtype {
                d if d.is_complex() => self.one("aten.view_as_real.default", &[Arg::Value(v)])?,
                d if d.is_float() => v,
                _ => continue,
            };
            let ty = self.program.graph().tensor(v).known().ok_or("unknown sizes")?;
            let weight = Meta::contiguous(DType::F64, ty.sizes());
            let w = self.input(weight.clone());
            weights.push(weight);
            let product = self.one("aten.mul.Tensor", &[Arg::Value(v), Arg::Value(w)])?;
            let sum = self.one("aten.sum.default", &[Arg::Value(product)])?;
            total = Some(match total {
                None => sum,
                Some(t) => self.one("aten.add.Tensor", &[Arg::Value(t), Arg::Value(sum)])?,
            });
        }
        Ok(total.map(|t| (t, weights)))
    }

    /// Makes this value the only output.
    pub fn returns(&mut self, v: ValueId) {
        self.program.graph_mut().outputs = vec![Arg::Value(v)];
        self.program.signature.outputs = vec![OutputSpec { kind: OutputKind::User, alias: None }];
    }
}

fn lift(a: &Arg<ValueId, Scalar>) -> Arg {
    let mapped: std::result::Result<_, std::convert::Infallible> = a.try_map(|v| Ok(*v), |s| Ok(Expr::from(*s)));
    match mapped {
        Ok(a) => a,
    }
}

/// A double-precision, row-major copy with small random shifts, so no number is at a corner of a function.
pub fn widened(t: &RawTensor, rng: &mut Rng) -> RawTensor {
    widened_by(t, 0.02, rng)
}

fn widened_by(t: &RawTensor, most: f64, rng: &mut Rng) -> RawTensor {
    let sizes = &t.layout().sizes;
    let shake = |x: f64, rng: &mut Rng| x + (unit(rng) - 0.5) * most * (x.abs() + 0.5);
    match t.dtype() {
        d if d.is_complex() => {
            let complex = |i: &Vec<i64>| match t.get(i) {
                Scalar::Complex(z) => z,
                s => C64::new(s.as_f64(), 0.0),
            };
            let data: Vec<C64> = indices(sizes).iter().map(complex).collect();
            let data: Vec<C64> = data.iter().map(|z| C64::new(shake(z.re, rng), shake(z.im, rng))).collect();
            RawTensor::from_slice(&data, sizes)
        }
        d if d.is_float() => {
            let all = indices(sizes);
            let data: Vec<f64> = all.iter().map(|i| shake(t.get(i).as_f64(), rng)).collect();
            RawTensor::from_slice(&data, sizes)
        }
        _ => t.clone(),
    }
}

/// A number between 0 and 1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.bits() >> 11) as f64 / (1u64 << 53) as f64
}

fn indices(sizes: &[i64]) -> Vec<Vec<i64>> {
    let mut out = vec![Vec::new()];
    for n in sizes {
        out = out.iter().flat_map(|i| (0..*n).map(|k| [i.as_slice(), &[k]].concat())).collect();
    }
    out
}

/// A program of one call whose loss is a weighted sum of the results, with values for all inputs.
pub struct GradientCase {
    /// Functional; its one output is the loss.
    pub program: Program,
    /// Values of its inputs.
    pub inputs: Vec<RawTensor>,
    /// Names of the floating operands.
    pub wrt: Vec<String>,
    /// The call's arguments, in double precision.
    pub args: Vec<SampleArg>,
}

impl GradientCase {
    /// The case of a sample. The loss sums the results that have gradients; constant operands are not differentiated.
    /// `None` without a floating result or operand.
    pub fn new(op: Op, args: &[SampleArg], rng: &mut Rng) -> Result<Option<GradientCase>> {
        let (fixed, results) = (fixed(op), shown(op));
        let mut program = Program::new("case", Stage::Functional);
        let mut calls = Calls::new(&mut program);
        let (mut inputs, mut wrt) = (Vec::new(), Vec::new());
        let (mut given, mut wide) = (Vec::new(), Vec::new());
        for (at, a) in args.iter().enumerate() {
            let a = match a {
                Arg::DType(d) if d.is_float() => Arg::DType(DType::F64),
                Arg::DType(d) if d.is_complex() => Arg::DType(DType::C128),
                other => other.clone(),
            };
            let most = if fixed.contains(&at) { 0.0 } else { 0.02 };
            let a = a.map_values(|t| widened_by(t, most, rng));
            wide.push(a.clone());
            given.push(a.map_values(|t| {
                let t = t.clone();
                let v = calls.input(TensorType::new(t.dtype(), t.layout().clone()));
                if (t.dtype().is_float() || t.dtype().is_complex()) && !fixed.contains(&at) {
                    wrt.push(calls.program.graph().values[v].name.to_string());
                }
                inputs.push(t);
                v
            }));
        }
        if wrt.is_empty() {
            return Ok(None);
        }
        if op.mutates(&given.iter().map(lift).collect::<Vec<_>>()) {
            return Ok(None);
        }
        let made = calls.call(op, &given)?;
        let made = &made[..results.min(made.len())];
        let Some((loss, weights)) = calls.weighted(made)? else { return Ok(None) };
        calls.returns(loss);
        inputs.extend(weights.iter().map(|m| drawn(m, rng)));
        Ok(Some(GradientCase { program, inputs, wrt, args: wide }))
    }

    /// The loss of the gradients: their weighted sum, as a program over the same inputs and the weights.
    pub fn second(&self, rng: &mut Rng) -> Result<Option<GradientCase>> {
        let mut program = self.joint()?;
        let grads: Vec<ValueId> = program
            .signature
            .outputs
            .iter()
            .zip(&program.graph().outputs)
            .filter(|(o, _)| matches!(o.kind, OutputKind::Gradient(_)))
            .flat_map(|(_, a)| a.values().copied().collect::<Vec<_>>())
            .collect();
        let mut calls = Calls::new(&mut program);
        let Some((loss, weights)) = calls.weighted(&grads)? else { return Ok(None) };
        calls.returns(loss);
        let mut inputs = self.inputs.clone();
        inputs.extend(weights.iter().map(|m| drawn(m, rng)));
        Ok(Some(GradientCase { program, inputs, wrt: self.wrt.clone(), args: self.args.clone() }))
    }

    /// The joint program.
    pub fn joint(&self) -> Result<Program> {
        let options = restride::GradOptions { wrt: Some(self.wrt.clone()), ..Default::default() };
        let joint = restride::grad(&self.program, &options).map_err(|e| e.to_string())?;
        restride_ir::verify(&joint).map_err(|e| e.to_string())?;
        Ok(joint)
    }

    /// Gradients by the rule, with the positions of their inputs.
    pub fn gradients(&self) -> Result<Vec<(usize, RawTensor)>> {
        Ok(run(&self.joint()?, &self.inputs)?.gradients)
    }

    /// The loss at these inputs.
    fn loss(&self, inputs: &[RawTensor]) -> Result<f64> {
        let out = run(&self.program, inputs)?;
        let t = out.values[0].tensor().ok_or("no loss")?;
        Ok(t.get(&[]).as_f64())
    }

    /// Whether the program runs and its loss is a number.
    pub fn runs(&self) -> bool {
        self.loss(&self.inputs).is_ok_and(f64::is_finite)
    }

    /// Compares the gradients with differences of the loss along random directions. `Ok(false)` if the loss is not finite.
    pub fn check(&self, tolerance: f64, rng: &mut Rng) -> Result<bool> {
        // A call that does not run is not differentiated.
        if !self.runs() {
            return Ok(false);
        }
        let out = run(&self.joint()?, &self.inputs)?;
        // The form that an operator is differentiated through gives the same results.
        let (ours, plain) = (out.values[0].tensor().ok_or("no loss")?.get(&[]).as_f64(), self.loss(&self.inputs)?);
        if (ours - plain).abs() > 1e-9 * (1.0 + plain.abs()) {
            return Err(format!("the joint program's loss is {ours}, not {plain}"));
        }
        against(|inputs| self.loss(inputs), &self.inputs, &out.gradients, tolerance, rng)?;
        Ok(true)
    }
}

/// Compares gradients, each with the position of its input, with differences of a loss along random directions.
///
/// # Errors
/// An error of the loss, or a wrong gradient.
pub fn against(
    loss: impl Fn(&[RawTensor]) -> Result<f64>,
    inputs: &[RawTensor],
    gradients: &[(usize, RawTensor)],
    tolerance: f64,
    rng: &mut Rng,
) -> Result<()> {
    for _ in 0..2 {
        let directions: Vec<RawTensor> = gradients.iter().map(|(_, g)| drawn(&meta(g), rng)).collect();
        let ours: f64 = gradients.iter().zip(&directions).map(|((_, g), d)| dot(g, d)).sum();
        let step = 1e-6;
        let at = |by: f64| {
            let mut moved = inputs.to_vec();
            for ((i, _), d) in gradients.iter().zip(&directions) {
                moved[*i] = along(&moved[*i], d, by);
            }
            loss(&moved)
        };
        let theirs = (at(step)? - at(-step)?) / (2.0 * step);
        let scale: f64 = gradients.iter().map(|(_, g)| dot(g, g).abs()).sum::<f64>().sqrt();
        // Differences have fewer digits than the loss.
        let noise = at(0.0)?.abs() * f64::EPSILON / step * 20.0;
        let allowed = tolerance * (scale + 1.0) + noise;
        if (ours - theirs).abs().partial_cmp(&allowed) != Some(std::cmp::Ordering::Less) {
            return Err(format!("the rule says {ours}, differences {theirs}"));
        }
    }
    Ok(())
}

fn run(program: &Program, inputs: &[RawTensor]) -> Result<restride::Outputs> {
    let inputs = Inputs::new(inputs.iter().map(|t| RunValue::Tensor(t.clone())));
    let mut state = State::new(program).map_err(|e| e.to_string())?;
    restride::interpret(program, &inputs, &mut state, &RunOptions::default()).map_err(|e| e.to_string())
}

fn meta(t: &RawTensor) -> Meta {
    TensorType::new(t.dtype(), Layout::contiguous(&t.layout().sizes))
}

/// Random numbers of a type.
fn drawn(m: &Meta, rng: &mut Rng) -> RawTensor {
    let n = m.layout.numel();
    if m.dtype.is_complex() {
        let data: Vec<C64> = (0..n).map(|_| C64::new(unit(rng) * 2.0 - 1.0, unit(rng) * 2.0 - 1.0)).collect();
        return RawTensor::from_slice(&data, m.sizes());
    }
    let data: Vec<f64> = (0..n).map(|_| unit(rng) * 2.0 - 1.0).collect();
    RawTensor::from_slice(&data, m.sizes())
}

fn parts(t: &RawTensor) -> Vec<f64> {
    let read = |i: &Vec<i64>| match t.get(i) {
        Scalar::Complex(z) => vec![z.re, z.im],
        s => vec![s.as_f64()],
    };
    indices(&t.layout().sizes).iter().flat_map(read).collect()
}

fn dot(a: &RawTensor, b: &RawTensor) -> f64 {
    parts(a).iter().zip(parts(b)).map(|(x, y)| x * y).sum()
}

fn along(t: &RawTensor, direction: &RawTensor, by: f64) -> RawTensor {
    let sum: Vec<f64> = parts(t).iter().zip(parts(direction)).map(|(x, d)| x + by * d).collect();
    if t.dtype().is_complex() {
        let data: Vec<C64> = sum.chunks(2).map(|p| C64::new(p[0], p[1])).collect();
        return RawTensor::from_slice(&data, &t.layout().sizes);
    }
    RawTensor::from_slice(&sum, &t.layout().sizes)
}
