//! Inputs of generated programs: dense, transposed or with gaps, of all types, several on one storage.

use super::Generator;
use crate::magnitude::Magnitude;
use restride_exec::copy::copy_into;
use restride_ir::{DType, InputKind, Layout, Meta, TensorType, ValueId};
use restride_tensor::{C64, RawTensor};
use std::sync::Arc;

/// Largest number in an input.
const LARGEST: i64 = 9;

/// An input of the program, with its value.
pub(super) struct GeneratedInput {
    pub(super) value: ValueId,
    pub(super) kind: InputKind,
    pub(super) tensor: RawTensor,
}

/// Pairs of element types whose numbers stay the same in a bit cast.
fn same_numbers(a: DType, b: DType) -> bool {
    a == b
        || matches!((a, b), (DType::C64, DType::F32) | (DType::F32, DType::C64))
        || matches!((a, b), (DType::C128, DType::F64) | (DType::F64, DType::C128))
}

impl Generator {
    pub(super) fn inputs(&mut self) -> Vec<GeneratedInput> {
        let mut out: Vec<GeneratedInput> = Vec::new();
        for i in 0..1 + self.rng.below(4) {
            let name: Arc<str> = format!("x{i}").into();
            let weight: Arc<str> = format!("b{i}").into();
            let kind = match self.rng.below(100) {
                _ if self.floating => InputKind::User(name.clone()),
                0..12 => InputKind::Buffer { name: weight, persistent: true },
                12..17 => InputKind::Parameter(weight),
                17..20 => InputKind::Constant(weight),
                _ => InputKind::User(name.clone()),
            };
            // The user's tensors share with each other and with the module's.
            let user = |k: &InputKind| matches!(k, InputKind::User(_));
            let beside = out.iter().rev().find(|g| user(&g.kind) == user(&kind)).map(|g| (g.value, g.tensor.clone()));
            let share = if self.floating { 0 } else { 50 - 20 * u64::from(user(&kind)) };
            let beside = beside.filter(|_| self.rng.chance(share));
            let (tensor, on) = match beside {
                Some((v, t)) => (self.beside(&t), Some((v, t))),
                None => {
                    let dtype = self.dtype();
                    (self.tensor(dtype), None)
                }
            };
            let bound = match &on {
                Some((_, t)) if !same_numbers(t.dtype(), tensor.dtype()) => Magnitude::BITS,
                _ => Magnitude(LARGEST as f64),
            };
            let meta = TensorType::new(tensor.dtype(), tensor.layout().clone());
            let value = self.t.input(&name, meta, on.map(|(v, _)| v), bound);
            out.push(GeneratedInput { value, kind, tensor });
        }
        // Indices and a condition.
        let flag = RawTensor::zeros(DType::Bool, Layout::contiguous(&[]));
        flag.storage().write(&[self.rng.below(2) as u8]);
        for (name, t) in [("index", RawTensor::from_slice(&[2i64, 0, 5], &[3])), ("flag", flag)] {
            let meta = Meta::new(t.dtype(), t.layout().clone());
            let value = self.t.input(name, meta, None, Magnitude(LARGEST as f64));
            out.push(GeneratedInput { value, kind: InputKind::User(name.into()), tensor: t });
        }
        out
    }

    /// A tensor on its own storage: dense, transposed, or with gaps.
    fn tensor(&mut self, dtype: DType) -> RawTensor {
        let sizes = self.sizes();
        let layout = match self.rng.below(8) {
            0 | 1 if sizes.len() > 1 => {
                let mut perm: Vec<usize> = (0..sizes.len()).collect();
                perm.reverse();
                Layout::permuted(&sizes, &perm)
            }
            2 if !sizes.is_empty() => {
                let wide: Vec<i64> = sizes.iter().map(|n| n * 2).collect();
                let l = Layout::contiguous(&wide);
                Layout::strided(&sizes, &l.strides, self.rng.between(0, 1))
            }
            _ => Layout::contiguous(&sizes),
        };
        let t = RawTensor::zeros(dtype, layout);
        // Cells outside of the tensor have contents, too.
        let cells = t.storage().len() / dtype.size();
        let all = t.alias(dtype, Layout::contiguous(&[cells as i64])).expect("the whole storage");
        let numbers: Vec<C64> = (0..cells)
            .map(|_| C64::new(self.rng.between(-LARGEST, LARGEST) as f64, self.rng.between(-4, 4) as f64))
            .collect();
        let src = RawTensor::from_slice(&numbers, &[cells as i64]);
        if dtype.is_complex() {
            copy_into(&all, &src).expect("complex numbers convert");
        } else {
            let real: Vec<f64> = numbers.iter().map(|z| if dtype == DType::U8 { z.re.abs() } else { z.re }).collect();
            copy_into(&all, &RawTensor::from_slice(&real, &[cells as i64])).expect("numbers convert");
        }
        t
    }

    /// Another tensor on a tensor's storage, with any offset and strides, sometimes of another type.
    fn beside(&mut self, t: &RawTensor) -> RawTensor {
        let dtype = match t.dtype() {
            DType::Bool => DType::Bool,
            _ if self.rng.chance(75) => t.dtype(),
            DType::C64 => DType::F32,
            _ => *self.rng.choose(&[DType::I32, DType::F32, DType::U8, DType::I64, DType::F16]),
        };
        let cells = (t.storage().len() / dtype.size()) as i64;
        if self.rng.chance(30) || cells < 2 {
            return t.clone();
        }
        let n = self.rng.between(1, cells);
        let offset = self.rng.between(0, cells - n);
        let layout = match n {
            n if n % 2 == 0 && self.rng.chance(50) => {
                let l = Layout::contiguous(&[n / 2, 2]);
                if self.rng.chance(50) { l.transpose(0, 1).expect("two dimensions") } else { l }
            }
            n if n > 2 && self.rng.chance(40) => {
                let step = self.rng.between(2, 3);
                Layout::strided(&[(n + step - 1) / step], &[step], 0)
            }
            _ => Layout::contiguous(&[n]),
        };
        t.alias(dtype, Layout { offset, ..layout }).unwrap_or_else(|| t.clone())
    }

    fn sizes(&mut self) -> Vec<i64> {
        (0..self.rng.below(4)).map(|_| if self.rng.chance(4) { 0 } else { self.rng.between(1, 4) }).collect()
    }
}
