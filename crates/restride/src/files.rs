//! Tensor files: inputs of a run and its results.

use restride_exec::copy::{allocate, copy_into};
use restride_exec::inputs::{evaluate, input_name, same_strides, user_inputs};
use restride_exec::interp::Outputs;
use restride_exec::symbols::unify;
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{DType, Error, ErrorKind, InputKind, Layout, Program, Result, Scalar, Weight, Weights};
use restride_pt2::dtype::{FileDType, computed};
use restride_pt2::tensors::{self, FileScalar, FileTensor, Format, Item, NamedItem, NamedTensors, RawStorage};
use restride_tensor::{Bytes, RawTensor, Storage};
use restride_torchscript::GivenValue;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn file_dtype(d: DType) -> FileDType {
    FileDType::from_name(d.torch_name()).expect("every element type has a name in files")
}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Inputs, what))
}

/// Whether names say positions alone: `numpy.savez` calls arrays that it gets without names `arr_0`, `arr_1`, ….
fn numbered(items: &[NamedItem]) -> bool {
    let has = |i| items.iter().any(|item| item.name.as_deref() == Some(&format!("arr_{i}")));
    !items.is_empty() && (0..items.len()).all(has)
}

/// Reads a program's user inputs. Names are those of the inputs; a file without names, or with `numpy.savez`'s own, gives them in
/// order.
/// Tensors that share a storage in the file share it in the run.
pub fn read_inputs(path: &Path, program: &Program) -> Result<Inputs> {
    let file = tensors::read_file(path)?;
    let storages: Vec<Storage> = file.storages.iter().map(|s| Storage::from_bytes(Bytes::copy_of(&s.bytes))).collect();
    let value = |item: &Item| -> Result<RunValue> {
        Ok(match item {
            Item::Tensor(t) => {
                let dtype = computed(t.dtype)?;
                let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
                let tensor = storages.get(t.storage).and_then(|s| RawTensor::new(s.clone(), dtype, layout));
                RunValue::Tensor(tensor.ok_or_else(|| Error::new(ErrorKind::Inputs, "a tensor leaves its storage"))?)
            }
            Item::Scalar(FileScalar::None) => RunValue::None,
            Item::Scalar(FileScalar::Bool(b)) => RunValue::Scalar(Scalar::Bool(*b)),
            Item::Scalar(FileScalar::Int(i)) => RunValue::Scalar(Scalar::Int(*i)),
            Item::Scalar(FileScalar::Float(x)) => RunValue::Scalar(Scalar::Float(*x)),
            Item::Scalar(FileScalar::Str(s)) => RunValue::Str(s.as_str().into()),
        })
    };
    let names: Vec<(usize, String)> = user_inputs(program).map(|(i, n)| (i, n.to_string())).collect();
    let strides = Format::from_path(path)? == Format::Json;
    if file.items.iter().all(|i| i.name.is_none()) {
        if file.items.len() != names.len() {
            let list: Vec<&str> = names.iter().map(|n| n.1.as_str()).collect();
            return wrong(format!(
                "{} has {} inputs, the program takes {}: {}",
                path.display(),
                file.items.len(),
                names.len(),
                list.join(", ")
            ));
        }
        return Ok(Inputs::new(file.items.iter().map(|i| value(&i.value)).collect::<Result<Vec<_>>>()?));
    }
    let numbered = numbered(&file.items) && names.iter().all(|(_, have)| file.get(have).is_none());
    let key = |position: usize, name: &str| if numbered { format!("arr_{position}") } else { name.to_string() };
    let mut used = 0;
    let mut values = Vec::new();
    for (position, (i, name)) in names.iter().enumerate() {
        match file.get(&key(position, name)) {
            Some(item) => {
                used += 1;
                let value = adapt(program, *i, value(item)?);
                values.push(if strides { value } else { laid(program, *i, value) });
            }
            // A value that was fixed at export may be left out.
            None => match &program.signature.inputs[*i].kind {
                InputKind::Fixed { value, .. } => values.push(fixed(value)),
                _ => return wrong(format!("{} has no input {name}", path.display())),
            },
        }
    }
    if used < file.items.len() {
        let extra: Vec<&str> = file
            .items
            .iter()
            .filter_map(|i| i.name.as_deref())
            .filter(|n| names.iter().enumerate().all(|(position, (_, have))| key(position, have) != *n))
            .collect();
        if !extra.is_empty() {
            return wrong(format!("{} has {}, which the program does not take", path.display(), extra.join(", ")));
        }
    }
    Ok(Inputs::new(values))
}

/// The inputs of a tensor file as types, for a program that is recorded for them.
///
/// # Errors
/// A file that cannot be read.
pub fn given_inputs(path: &Path) -> Result<Vec<(Option<Arc<str>>, GivenValue)>> {
    let file = tensors::read_file(path)?;
    let given = |item: &Item| -> Result<GivenValue> {
        Ok(match item {
            Item::Tensor(t) => {
                let dtype = computed(t.dtype)?;
                match element(&file, t, dtype) {
                    Some(n) => GivenValue::Element(dtype, n),
                    None => GivenValue::Tensor(dtype, Layout::strided(&t.sizes, &t.strides, 0)),
                }
            }
            Item::Scalar(FileScalar::None) => GivenValue::None,
            Item::Scalar(FileScalar::Bool(b)) => GivenValue::Number(Scalar::Bool(*b)),
            Item::Scalar(FileScalar::Int(i)) => GivenValue::Number(Scalar::Int(*i)),
            Item::Scalar(FileScalar::Float(x)) => GivenValue::Number(Scalar::Float(*x)),
            Item::Scalar(FileScalar::Str(s)) => GivenValue::Str(s.as_str().into()),
        })
    };
    let name = |i: &NamedItem| i.name.as_deref().map(Arc::from);
    if numbered(&file.items) {
        let at = |i| file.get(&format!("arr_{i}")).expect("numbered");
        return (0..file.items.len()).map(|i| Ok((None, given(at(i))?))).collect();
    }
    file.items.iter().map(|i| Ok((name(i), given(&i.value)?))).collect()
}

/// The element of a tensor without dimensions.
fn element(file: &NamedTensors, t: &FileTensor, dtype: DType) -> Option<Scalar> {
    if !t.sizes.is_empty() {
        return None;
    }
    let storage = Storage::from_bytes(Bytes::copy_of(&file.storages.get(t.storage)?.bytes));
    Some(RawTensor::new(storage, dtype, Layout::strided(&[], &[], t.offset))?.get(&[]))
}

/// Reads the state that a run left into a state: the `buffer.NAME` and `parameter.NAME` of a file that [`write_outputs`] wrote.
///
/// # Errors
/// A file that cannot be read or holds no state, a name that the state does not have, another type.
pub fn read_state(path: &Path, state: &mut State) -> Result<()> {
    let file = tensors::read_file(path)?;
    let mut found = false;
    for item in &file.items {
        let name =
            item.name.as_deref().and_then(|n| n.strip_prefix("buffer.").or_else(|| n.strip_prefix("parameter.")));
        let (Some(name), Item::Tensor(t)) = (name, &item.value) else { continue };
        found = true;
        let Some(own) = state.get(name) else {
            return wrong(format!("{} holds the state {name}, which the program does not have", path.display()));
        };
        let storage = file.storages.get(t.storage).map(|s| Storage::from_bytes(Bytes::copy_of(&s.bytes)));
        // A `.npz` has no `bf16`, and holds it as `f32`.
        let widened =
            |d: DType| d == DType::F32 && own.dtype() == DType::BF16 && path.extension().is_some_and(|e| e == "npz");
        let same = |d: &DType| (*d == own.dtype() || widened(*d)) && own.layout().sizes[..] == t.sizes[..];
        let dtype = DType::from_name(t.dtype.name()).filter(same);
        let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
        let Some(new) = dtype.zip(storage).and_then(|(d, s)| RawTensor::new(s, d, layout)) else {
            return wrong(format!("{} holds {name} of another type than the program has", path.display()));
        };
        restride_exec::copy::copy_into(own, &new)?;
    }
    match found {
        true => Ok(()),
        false => wrong(format!("{} holds no state: no buffer.NAME and no parameter.NAME", path.display())),
    }
}

/// The tensors of a file as weights, by name.
///
/// # Errors
/// A file that cannot be read.
pub fn read_weights(path: &Path) -> Result<Weights> {
    let file = tensors::read_file(path)?;
    let mut out =
        Weights { storages: file.storages.iter().map(|s| Bytes::copy_of(&s.bytes)).collect(), ..Weights::default() };
    for item in &file.items {
        let (Some(name), Item::Tensor(t)) = (&item.name, &item.value) else { continue };
        let dtype = computed(t.dtype)?;
        let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
        let weight = Weight { storage: t.storage, dtype, layout, is_param: false, requires_grad: false };
        out.tensors.insert(name.as_str().into(), weight);
    }
    Ok(out)
}

/// The value of an input that was fixed at export.
pub fn fixed(value: &restride_ir::Arg) -> RunValue {
    match value {
        restride_ir::Arg::Scalar(e) => e.constant().map_or(RunValue::None, RunValue::Scalar),
        restride_ir::Arg::Str(s) => RunValue::Str(s.clone()),
        _ => RunValue::None,
    }
}

/// `.npz` has neither bf16 nor numbers that are no arrays: what came as f32 for a bf16 input, or as a 0-d array for a
/// number, is converted.
fn adapt(program: &Program, input: usize, value: RunValue) -> RunValue {
    let RunValue::Tensor(t) = &value else { return value };
    if t.layout().rank() == 0 {
        let number = match &program.signature.inputs[input].kind {
            InputKind::Fixed { value, .. } => !matches!(value, restride_ir::Arg::Value(_)),
            _ => {
                matches!(program.graph().values[program.signature.inputs[input].value].ty, restride_ir::Type::Scalar(_))
            }
        };
        if number {
            return RunValue::Scalar(t.get(&[]));
        }
    }
    let want = program.graph().values[program.signature.inputs[input].value].ty.tensor().map(|t| t.dtype);
    if want == Some(DType::BF16) && t.dtype() == DType::F32 {
        let out = RawTensor::zeros(DType::BF16, Layout::contiguous(&t.layout().sizes));
        if copy_into(&out, t).is_ok() {
            return RunValue::Tensor(out);
        }
    }
    value
}

/// `.npz` and `.safetensors` say no strides: a tensor gets those that the program was exported for.
fn laid(program: &Program, input: usize, value: RunValue) -> RunValue {
    let declared = program.graph().values[program.signature.inputs[input].value].ty.tensor();
    let (RunValue::Tensor(t), Some(ty)) = (&value, declared) else { return value };
    let mut symbols = restride_ir::Binding::new();
    if ty.rank() != t.layout().rank() || ty.dtype != t.dtype() {
        return value;
    }
    for (size, n) in ty.sizes().iter().zip(&t.layout().sizes) {
        unify(size, Scalar::Int(*n), &mut symbols);
    }
    let Some(mut layout) = evaluate(&ty.layout, &symbols) else { return value };
    layout.offset = 0;
    if layout.sizes != t.layout().sizes
        || same_strides(&layout, t.layout())
        || restride_tensor::self_overlaps(&layout) != Some(false)
    {
        return value;
    }
    match allocate(t.dtype(), layout) {
        Ok(out) if copy_into(&out, t).is_ok() => RunValue::Tensor(out),
        _ => value,
    }
}

/// The name of an input's gradient in files: `grad.NAME`.
pub fn gradient_name(program: &Program, input: usize) -> String {
    let full = input_name(program, input);
    format!("grad.{}", full.split_once(' ').map_or(full.as_str(), |(_, n)| n))
}

/// Writes the results of a run. Named files hold `output.I`, and `input.NAME`, `buffer.NAME`, `parameter.NAME` for tensors that
/// changed; a `.json` holds the inputs after the run, then the outputs, with their storages.
pub fn write_outputs(
    path: &Path,
    program: &Program,
    before: (&Inputs, &State),
    outputs: &Outputs,
    state: &State,
) -> Result<()> {
    let format = Format::from_path(path)?;
    let mut file = Writer::default();
    if format == Format::Json {
        for v in outputs.inputs.iter().chain(&outputs.values) {
            file.push(None, v)?;
        }
        tensors::write_file(path, &file.out)?;
        return Ok(());
    }
    let mut copies = Writer { contiguous: Some(format), ..Writer::default() };
    for (i, v) in outputs.values.iter().enumerate() {
        if let RunValue::Tensor(_) | RunValue::Scalar(_) = v {
            copies.push(Some(format!("output.{i}")), v)?;
        }
    }
    let names: Vec<String> = user_inputs(program).map(|(_, n)| n.to_string()).collect();
    for ((name, old), new) in names.iter().zip(&before.0.values).zip(&outputs.inputs) {
        if let (RunValue::Tensor(a), RunValue::Tensor(b)) = (old, new)
            && differs(a, b)
        {
            copies.push(Some(format!("input.{name}")), new)?;
        }
    }
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        let (kind, name) = match &spec.kind {
            InputKind::Parameter(n) => ("parameter", n),
            InputKind::Buffer { name, .. } => ("buffer", name),
            _ => continue,
        };
        if let (Some(a), Some(b)) = (before.1.get(name), state.get(name))
            && differs(a, b)
        {
            copies.push(Some(format!("{kind}.{name}")), &RunValue::Tensor(b.clone()))?;
        }
        let _ = i;
    }
    for (input, t) in &outputs.gradients {
        copies.push(Some(gradient_name(program, *input)), &RunValue::Tensor(t.clone()))?;
    }
    tensors::write_file(path, &copies.out)?;
    Ok(())
}

/// Whether two tensors show other elements (all NaNs equal). Those of bytes that were never written are not read.
pub fn differs(a: &RawTensor, b: &RawTensor) -> bool {
    if a.dtype() != b.dtype() || a.layout().sizes != b.layout().sizes {
        return true;
    }
    let unwritten = || Some(a.storage().contents()?.same(&b.storage().contents()?));
    let alike = a.layout() == b.layout() && (a.conj, a.neg) == (b.conj, b.neg);
    !(alike && unwritten().unwrap_or(false)) && element_bytes(a) != element_bytes(b)
}

/// The elements in logical order, as bytes; every NaN as one and the same.
pub fn element_bytes(t: &RawTensor) -> Vec<u8> {
    let t = restride_exec::copy::resolve(t).unwrap_or_else(|_| t.clone());
    let size = t.dtype().size();
    let bytes = t.storage().to_vec();
    let layout = t.layout();
    let mut out = Vec::with_capacity(t.numel() * size);
    if same_strides(layout, &Layout::contiguous(&layout.sizes)) {
        let start = layout.offset as usize * size;
        out.extend_from_slice(bytes.get(start..start + t.numel() * size).unwrap_or_default());
    } else {
        for cell in layout.cells() {
            let at = cell as usize * size;
            out.extend_from_slice(&bytes[at..at + size]);
        }
    }
    canonical_nans(t.dtype(), &mut out);
    out
}

fn canonical_nans(dtype: DType, bytes: &mut [u8]) {
    match dtype.real() {
        DType::F32 => bytes.chunks_exact_mut(4).for_each(|c| {
            if f32::from_le_bytes([c[0], c[1], c[2], c[3]]).is_nan() {
                c.copy_from_slice(&f32::NAN.to_le_bytes());
            }
        }),
        DType::F64 => bytes.chunks_exact_mut(8).for_each(|c| {
            if f64::from_le_bytes(c.try_into().expect("eight bytes")).is_nan() {
                c.copy_from_slice(&f64::NAN.to_le_bytes());
            }
        }),
        DType::F16 => bytes.chunks_exact_mut(2).for_each(|c| {
            if restride_tensor::f16::from_le_bytes([c[0], c[1]]).is_nan() {
                c.copy_from_slice(&restride_tensor::f16::NAN.to_le_bytes());
            }
        }),
        DType::BF16 => bytes.chunks_exact_mut(2).for_each(|c| {
            if restride_tensor::bf16::from_le_bytes([c[0], c[1]]).is_nan() {
                c.copy_from_slice(&restride_tensor::bf16::NAN.to_le_bytes());
            }
        }),
        _ => {}
    }
}

/// Collects values with the storages they are in.
#[derive(Default)]
struct Writer {
    out: NamedTensors,
    seen: BTreeMap<usize, usize>,
    /// Write row-major copies for this format instead.
    contiguous: Option<Format>,
}

impl Writer {
    fn push(&mut self, name: Option<String>, value: &RunValue) -> Result<()> {
        let value = match value {
            RunValue::Scalar(Scalar::Bool(b)) => Item::Scalar(FileScalar::Bool(*b)),
            RunValue::Scalar(Scalar::Int(i)) => Item::Scalar(FileScalar::Int(*i)),
            RunValue::Scalar(s) => Item::Scalar(FileScalar::Float(s.as_f64())),
            RunValue::Str(s) => Item::Scalar(FileScalar::Str(s.to_string())),
            RunValue::None => Item::Scalar(FileScalar::None),
            RunValue::Tensor(t) => match self.contiguous {
                Some(format) => {
                    let (dtype, bytes) = plain(t, format)?;
                    let sizes = t.layout().sizes.to_vec();
                    self.out.push_contiguous(name.unwrap_or_default(), file_dtype(dtype), sizes, bytes);
                    return Ok(());
                }
                None => Item::Tensor(self.tensor(t)?),
            },
        };
        self.out.items.push(NamedItem { name, value });
        Ok(())
    }

    fn tensor(&mut self, t: &RawTensor) -> Result<FileTensor> {
        // A lazily conjugated tensor has no form in a file: its elements are written.
        let t = if t.conj || t.neg { restride_exec::copy::resolve(t)? } else { t.clone() };
        let dtype = file_dtype(t.dtype());
        let next = self.out.storages.len();
        let storage = *self.seen.entry(t.storage().id()).or_insert(next);
        if storage == next {
            self.out.storages.push(RawStorage { dtype, bytes: t.storage().to_vec() });
        }
        let l = t.layout();
        Ok(FileTensor { dtype, sizes: l.sizes.to_vec(), strides: l.strides.to_vec(), offset: l.offset, storage })
    }
}

fn plain(t: &RawTensor, format: Format) -> Result<(DType, Vec<u8>)> {
    if t.dtype() == DType::BF16 && format == Format::Npz {
        let wide = RawTensor::zeros(DType::F32, Layout::contiguous(&t.layout().sizes));
        copy_into(&wide, t)?;
        return Ok((DType::F32, element_bytes(&wide)));
    }
    Ok((t.dtype(), element_bytes(t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBTRACT: &str = "graph(%x: f32[1], %y: f32[1]) {
  %z: f32[1] = aten.sub.Tensor(%x, %y)
  return %z
}";

    /// What inputs of these names and numbers, as an .npz, give the program.
    fn read(items: &[(&str, f32)]) -> Result<Vec<f64>> {
        let program = restride_ir::text::parse(SUBTRACT, &restride_ops::lookup)?;
        let mut tensors = NamedTensors::default();
        for (name, x) in items {
            tensors.push_contiguous(*name, FileDType::F32, vec![1], x.to_le_bytes().to_vec());
        }
        let names: Vec<&str> = items.iter().map(|i| i.0).collect();
        let path = std::env::temp_dir().join(format!("restride-{}-{}.npz", names.join("-"), std::process::id()));
        tensors::write_file(&path, &tensors)?;
        let inputs = read_inputs(&path, &program);
        std::fs::remove_file(&path).expect("was written");
        let one = |v: &RunValue| v.tensor().map_or(f64::NAN, |t| t.get(&[0]).as_f64());
        Ok(inputs?.values.iter().map(one).collect())
    }

    #[test]
    fn arrays_without_names_are_in_order() {
        assert_eq!(read(&[("y", 2.0), ("x", 1.0)]).unwrap(), [1.0, 2.0]);
        assert_eq!(read(&[("arr_1", 2.0), ("arr_0", 1.0)]).unwrap(), [1.0, 2.0]);
        let refused = |items: &[(&str, f32)]| read(items).unwrap_err().to_string();
        assert!(refused(&[("arr_0", 1.0)]).contains("has no input y"));
        assert!(refused(&[("arr_0", 1.0), ("arr_1", 2.0), ("arr_2", 3.0)]).contains("has arr_2, which"));
        assert!(refused(&[("arr_1", 1.0), ("arr_2", 2.0)]).contains("has no input x"));
    }
}
