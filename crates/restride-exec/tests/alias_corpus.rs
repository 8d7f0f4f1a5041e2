//! The corpus of aliasing bugs: every program runs as eager PyTorch ran it. Compared are the inputs as they are after
//! the run and the outputs: element types, sizes, strides, offsets, who shares storage with whom, and the storages'
//! elements; where PyTorch refused, the interpreter refuses.

use restride_exec::interp::{RunOptions, interpret};
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{DType, Error, ErrorKind, Layout, Program};
use restride_pt2::tensors::json::{self, Section};
use restride_pt2::tensors::{Item, NamedTensors};
use restride_tensor::{Bytes, RawTensor, Scalar, Storage};
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/alias")
}

fn dtype(name: &str) -> DType {
    DType::from_name(name).unwrap_or_else(|| panic!("element type {name}"))
}

/// The values of a section over storages of their own.
fn values(file: &NamedTensors) -> Vec<RunValue> {
    let storages: Vec<Storage> = file.storages.iter().map(|s| Storage::from_bytes(Bytes::copy_of(&s.bytes))).collect();
    let value = |item: &Item| match item {
        Item::Tensor(t) => {
            let layout = Layout::strided(&t.sizes, &t.strides, t.offset);
            RunValue::Tensor(RawTensor::new(storages[t.storage].clone(), dtype(t.dtype.name()), layout).unwrap())
        }
        Item::Scalar(restride_pt2::tensors::FileScalar::Int(i)) => RunValue::Scalar(Scalar::Int(*i)),
        Item::Scalar(restride_pt2::tensors::FileScalar::Float(x)) => RunValue::Scalar(Scalar::Float(*x)),
        Item::Scalar(restride_pt2::tensors::FileScalar::Bool(b)) => RunValue::Scalar(Scalar::Bool(*b)),
        Item::Scalar(restride_pt2::tensors::FileScalar::Str(s)) => RunValue::Str(s.as_str().into()),
        Item::Scalar(restride_pt2::tensors::FileScalar::None) => RunValue::None,
    };
    file.items.iter().map(|i| value(&i.value)).collect()
}

/// Elements of a tensor as complex numbers: every type fits.
fn numbers(t: &RawTensor) -> Vec<(f64, f64)> {
    let mut index = vec![0; t.layout().rank()];
    let mut out = Vec::new();
    for _ in 0..t.numel() {
        let z = t.get(&index).as_c64();
        out.push((z.re, if t.conj { -z.im } else { z.im }));
        for d in (0..index.len()).rev() {
            index[d] += 1;
            if index[d] < t.layout().sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    out
}

fn close(dtype: DType, a: (f64, f64), b: (f64, f64)) -> bool {
    let near = |x: f64, y: f64| {
        let exact = !(dtype.is_float() || dtype.is_complex());
        let (rtol, atol) = if dtype.size() == 2 { (1e-2, 1e-2) } else { (1e-4, 1e-5) };
        x == y || (x.is_nan() && y.is_nan()) || (!exact && (x - y).abs() <= atol + rtol * y.abs())
    };
    near(a.0, b.0) && near(a.1, b.1)
}

fn compare(have: &[RunValue], want: &[RunValue]) -> Result<(), String> {
    if have.len() != want.len() {
        return Err(format!("{} values for {}", have.len(), want.len()));
    }
    let mut pairs: Vec<(&RawTensor, &RawTensor)> = Vec::new();
    for (i, (h, w)) in have.iter().zip(want).enumerate() {
        match (h, w) {
            (RunValue::Tensor(h), RunValue::Tensor(w)) => {
                if h.dtype() != w.dtype() || h.layout().sizes != w.layout().sizes {
                    return Err(format!("value {i} is {}{} for {}{}", h.dtype(), h.layout(), w.dtype(), w.layout()));
                }
                let steps = |d: usize| h.layout().sizes[d] == 1 || h.layout().strides[d] == w.layout().strides[d];
                if !(0..h.layout().rank()).all(steps) || h.layout().offset != w.layout().offset {
                    return Err(format!("value {i} lies at {} for {}", h.layout(), w.layout()));
                }
                let (a, b) = (numbers(h), numbers(w));
                if !a.iter().zip(&b).all(|(a, b)| close(h.dtype(), *a, *b)) {
                    return Err(format!("value {i} is {a:?} for {b:?}"));
                }
                pairs.push((h, w));
            }
            (RunValue::None, RunValue::None) => {}
            (RunValue::Scalar(a), RunValue::Scalar(b)) if a == b => {}
            _ => return Err(format!("value {i} is {h:?} for {w:?}")),
        }
    }
    for (i, (h1, w1)) in pairs.iter().enumerate() {
        for (h2, w2) in &pairs[..i] {
            if h1.storage().same(h2.storage()) != w1.storage().same(w2.storage()) {
                return Err(format!("tensor {i} shares its storage with other tensors than in PyTorch"));
            }
        }
        // Bytes of a storage beside the tensor's own elements.
        let whole = |t: &RawTensor, n: usize| t.alias(t.dtype(), Layout::contiguous(&[n as i64])).unwrap();
        let n = h1.storage().len().min(w1.storage().len()) / h1.dtype().size();
        let (a, b) = (numbers(&whole(h1, n)), numbers(&whole(w1, n)));
        if !a.iter().zip(&b).all(|(a, b)| close(h1.dtype(), *a, *b)) {
            return Err(format!("the storage of tensor {i} holds {a:?} for {b:?}"));
        }
    }
    Ok(())
}

fn run(program: &Program, inputs: Vec<RunValue>) -> Result<Vec<RunValue>, Error> {
    let inputs = Inputs::new(inputs);
    let out =
        interpret(program, &inputs, &mut State::new(program)?, &RunOptions { strict: true, ..RunOptions::default() })?;
    Ok(out.inputs.into_iter().chain(out.values).collect())
}

enum Verdict {
    Agrees,
    Refused(String),
    Wrong(String),
}

fn judge(pt2: &Path) -> Verdict {
    let text = std::fs::read(pt2.with_extension("json")).unwrap();
    let bytes = Bytes::copy_of(&std::fs::read(pt2).unwrap());
    let options =
        restride_pt2::import::ImportOptions { model: None, lookup: &restride_ops::lookup, limits: Default::default() };
    let program = match restride_pt2::import::import(&bytes, "case", &options) {
        Ok(p) => p,
        Err(e) => return Verdict::Refused(e.to_string()),
    };
    let inputs = values(&json::read(&text, Section::Inputs).unwrap());
    let after = json::read(&text, Section::After).ok().map(|f| values(&f));
    let result = run(&program, inputs);
    match (result, after) {
        (Err(e), _) if e.kind == ErrorKind::Unsupported => Verdict::Refused(e.to_string()),
        (Err(e), None) if e.kind == ErrorKind::Program => {
            let expected = String::from_utf8_lossy(&text).contains("Please clone() the tensor");
            let same = e.to_string().contains("Please clone() the tensor") || !expected;
            if same { Verdict::Agrees } else { Verdict::Wrong(format!("another error: {e}")) }
        }
        (Err(e), _) => Verdict::Wrong(e.to_string()),
        (Ok(_), None) => Verdict::Wrong("PyTorch refuses this".to_string()),
        (Ok(have), Some(want)) => compare(&have, &want).map_or_else(Verdict::Wrong, |()| Verdict::Agrees),
    }
}

#[test]
fn every_case_runs_as_eager_pytorch() {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(corpus())
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "pt2"))
        .collect();
    cases.sort();
    let (mut agree, mut complaints) = (0, Vec::new());
    for case in &cases {
        let name = case.file_stem().unwrap().to_string_lossy().into_owned();
        match judge(case) {
            Verdict::Agrees => agree += 1,
            // Operators of the user's own have no bodies in an archive.
            Verdict::Refused(_) if name.starts_with("customop_") => {}
            Verdict::Refused(why) => complaints.push(format!("{name}: refused: {why}")),
            Verdict::Wrong(why) => complaints.push(format!("{name}: wrong: {why}")),
        }
    }
    assert!(complaints.is_empty(), "{agree} of {} agree\n{}", cases.len(), complaints.join("\n"));
    assert!(agree > 80, "only {agree} cases");
}
