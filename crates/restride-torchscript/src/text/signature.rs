//! Signature and ranges of a printed ExportedProgram, and types in annotations.

use crate::eval::Evaluator;
use crate::given::{Dynamic, DynamicRange, GivenInputs, GivenValue};
use crate::syntax::ast::{Ast, AstKind, Param};
use crate::value::PyValue;
use restride_ir::{CollectTree, Error, InputKind, OutputKind, OutputSpec, Program, Result, Weight};
use restride_tensor::Layout;
use std::collections::BTreeMap;

/// Inputs, outputs and ranges that a text declares.
#[derive(Default)]
pub(crate) struct Declared {
    inputs: Vec<(String, DeclaredKind)>,
    outputs: Vec<Output>,
    ranges: BTreeMap<String, (i64, i64)>,
}

/// The kind of a declared input.
#[derive(Clone)]
pub(crate) enum DeclaredKind {
    User,
    Weight(InputKind),
}

enum Output {
    User,
    /// A new content of the parameter, buffer or user input of this name.
    Mutation(String),
}

/// Reads the part after the code.
pub(super) fn read(text: &str) -> Option<Declared> {
    let start = text.find("Graph signature:")?;
    let mut out = Declared::default();
    let part = &text[start..];
    let (signature, ranges) = part.split_once("Range constraints:").unwrap_or((part, ""));
    if signature.contains("InputSpec(") {
        old_form(signature, &mut out);
    } else {
        new_form(signature, &mut out);
    }
    // `{s77: VR[2, 16], u0: VR[0, int_oo]}`
    let ranges = ranges.split('}').next().unwrap_or_default().trim_start_matches([' ', '{']);
    for piece in ranges.split(']') {
        let Some((name, range)) = piece.split_once(": ") else { continue };
        let name = name.trim_matches([',', ' ', '{', '\n']);
        let Some((lo, hi)) = range.split_once('[').and_then(|r| r.1.split_once(',')) else { continue };
        let bound = |s: &str, open: i64| s.trim().parse().unwrap_or(open);
        out.ranges.insert(name.to_string(), (bound(lo, 0), bound(hi, i64::MAX)));
    }
    Some(out)
}

fn weight(kind: &str, target: &str, persistent: bool) -> Option<DeclaredKind> {
    Some(match kind {
        "PARAMETER" => DeclaredKind::Weight(InputKind::Parameter(target.into())),
        "BUFFER" => DeclaredKind::Weight(InputKind::Buffer { name: target.into(), persistent }),
        "CONSTANT_TENSOR" => DeclaredKind::Weight(InputKind::Constant(target.into())),
        "USER_INPUT" => DeclaredKind::User,
        _ => return None,
    })
}

/// `b_b: BUFFER target='b' persistent=True`
fn new_form(text: &str, out: &mut Declared) {
    let mut outputs = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('#') {
            outputs = line.contains("outputs");
            continue;
        }
        let Some((name, rest)) = line.split_once(": ") else { continue };
        let kind = rest.split(' ').next().unwrap_or_default();
        let target = rest.split_once("target='").and_then(|t| t.1.split_once('\'')).map_or("", |t| t.0);
        if outputs {
            match kind {
                "USER_OUTPUT" => out.outputs.push(Output::User),
                k if k.ends_with("_MUTATION") => out.outputs.push(Output::Mutation(target.to_string())),
                _ => {}
            }
        } else if let Some(kind) = weight(kind, target, !rest.contains("persistent=False")) {
            out.inputs.push((name.to_string(), kind));
        }
    }
}

/// `InputSpec(kind=<InputKind.PARAMETER: 2>, arg=TensorArgument(name='p_w'), target='w', persistent=None)`
fn old_form(text: &str, out: &mut Declared) {
    let quoted = |t: &str, key: &str| -> Option<String> {
        let (_, rest) = t.split_once(&format!("{key}'"))?;
        Some(rest.split_once('\'')?.0.to_string())
    };
    for piece in text.split("InputSpec(").skip(1) {
        let piece = piece.split("OutputSpec(").next().unwrap_or_default();
        let kind = piece.split_once("InputKind.").map_or("", |k| k.1.split(':').next().unwrap_or_default());
        let (Some(name), target) = (quoted(piece, "name="), quoted(piece, "target=").unwrap_or_default()) else {
            continue;
        };
        if let Some(kind) = weight(kind, &target, !piece.contains("persistent=False")) {
            out.inputs.push((name, kind));
        }
    }
    for piece in text.split("OutputSpec(").skip(1) {
        let kind = piece.split_once("OutputKind.").map_or("", |k| k.1.split(':').next().unwrap_or_default());
        match kind {
            "USER_OUTPUT" => out.outputs.push(Output::User),
            k if k.ends_with("_MUTATION") => {
                out.outputs.push(Output::Mutation(quoted(piece, "target=").unwrap_or_default()));
            }
            _ => {}
        }
    }
}

impl Declared {
    /// The kind of an input that is a weight.
    pub fn input(&self, name: &str) -> Option<&InputKind> {
        self.inputs.iter().find_map(|(n, k)| match k {
            DeclaredKind::Weight(kind) if n == name => Some(kind),
            _ => None,
        })
    }

    /// Number of results that the caller gets.
    pub fn user_outputs(&self) -> Option<usize> {
        let n = self.outputs.iter().filter(|o| matches!(o, Output::User)).count();
        (!self.outputs.is_empty()).then_some(n)
    }

    /// A weight: given, or of the declared type without memory.
    pub fn weight(&self, eval: &mut Evaluator<'_, '_>, param: &Param, kind: &InputKind) -> Result<PyValue> {
        let name = match kind {
            InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => n.clone(),
            _ => param.name.clone(),
        };
        if let Some(given) = eval.library.weight(&name) {
            return Ok(given);
        }
        let given = annotated(param.annotation.as_ref(), &mut |_| None)?;
        let Some(GivenValue::Tensor(dtype, layout)) = given else {
            return Err(Error::new(
                restride_ir::ErrorKind::Inputs,
                format!("the text does not say the type of {name}"),
            )
            .help("give weights with --weights FILE"));
        };
        let storage = eval.rec.no_storage();
        let layout = Layout::contiguous(&layout.sizes);
        let is_param = matches!(kind, InputKind::Parameter(_));
        let weight = Weight { storage, dtype, layout, is_param, requires_grad: is_param };
        Ok(PyValue::Tensor(eval.rec.weight(&name, kind.clone(), weight)?))
    }

    /// Marks declared mutations among the program's outputs.
    pub fn outputs(&self, program: &mut Program) -> Result<()> {
        if self.outputs.is_empty() || self.outputs.len() != program.signature.outputs.len() {
            return Ok(());
        }
        let mut specs = Vec::new();
        for output in &self.outputs {
            let kind = match output {
                Output::User => OutputKind::User,
                Output::Mutation(name) => {
                    let at = program.signature.inputs.iter().position(|i| match &i.kind {
                        InputKind::Parameter(n) | InputKind::User(n) | InputKind::Buffer { name: n, .. } => {
                            **n == **name
                        }
                        _ => false,
                    });
                    let at = at.ok_or_else(|| Error::invalid(format!("a mutation of {name}, which is no input")))?;
                    OutputKind::Mutation(at)
                }
            };
            specs.push(OutputSpec { kind, alias: None });
        }
        program.signature.outputs = specs;
        Ok(())
    }
}

/// The type in an annotation: `"f32[2, 3]"`, `"Sym(s0)"`. Sizes that are names are asked for.
fn annotated(annotation: Option<&Ast>, symbol: &mut dyn FnMut(&str) -> Option<i64>) -> Result<Option<GivenValue>> {
    let Some(AstKind::Str(text)) = annotation.map(|a| &a.kind) else { return Ok(None) };
    // A device follows the type: `f32[2, 3][3, 1]cpu`.
    let end = text.rfind(']').map_or(text.len(), |i| i + 1);
    let mut plain = String::new();
    let mut word = String::new();
    let mut inside = false;
    for c in text[..end].chars() {
        if inside && (c.is_alphanumeric() || c == '_') {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            match word.parse::<i64>() {
                Ok(_) => plain.push_str(&word),
                Err(_) => match symbol(&word) {
                    Some(n) => plain.push_str(&n.to_string()),
                    None => return Ok(None),
                },
            }
            word.clear();
        }
        inside |= c == '[';
        plain.push(c);
    }
    let parsed = GivenInputs::parse_types(&plain);
    Ok(parsed.ok().and_then(|mut p| if p.len() == 1 { p.pop().map(|p| p.1) } else { None }))
}

/// Types of user inputs: given ones, else those of the annotations. Names among the sizes become symbolic.
pub(super) fn types(
    _eval: &mut Evaluator<'_, '_>,
    users: &[Param],
    declared: &Declared,
    given: &GivenInputs,
) -> Result<GivenInputs> {
    let mut out = given.clone();
    let unnamed = given.items.iter().any(|i| i.0.is_none());
    let mut seen: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut values: BTreeMap<String, i64> = BTreeMap::new();
    for param in users {
        let mut dims: Vec<String> = Vec::new();
        let ty = annotated(param.annotation.as_ref(), &mut |name| {
            dims.push(name.to_string());
            let next = 5 + 2 * values.len() as i64;
            let (lo, hi) = declared.ranges.get(name).copied().unwrap_or((2, i64::MAX));
            Some(*values.entry(name.to_string()).or_insert(next.clamp(lo.max(0), hi)))
        })?;
        let Some(ty) = ty else { continue };
        if let (GivenValue::Tensor(_, layout), false) = (&ty, dims.is_empty()) {
            let by_value: BTreeMap<i64, &String> = values.iter().map(|(k, v)| (*v, k)).collect_map();
            for (d, n) in layout.sizes.iter().enumerate() {
                let Some(name) = by_value.get(n).filter(|n| dims.contains(n)) else { continue };
                let range = match seen.get(*name) {
                    Some((input, dim)) => DynamicRange::Same(input.clone(), *dim),
                    None => {
                        let (lo, hi) = declared.ranges.get(*name).copied().unwrap_or((2, i64::MAX));
                        DynamicRange::Between(lo.max(0), hi)
                    }
                };
                seen.entry((*name).clone()).or_insert((param.name.to_string(), d));
                out.dynamic.push(Dynamic { input: param.name.to_string(), dim: d, range });
            }
        }
        let named = given.items.iter().any(|i| i.0.as_ref() == Some(&param.name));
        if named && !dims.is_empty() {
            // The given size is the symbol's value.
            continue;
        }
        if !named && !unnamed {
            out.items.push((Some(param.name.clone()), ty));
        }
    }
    Ok(out)
}
