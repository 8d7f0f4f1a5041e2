//! Sample inputs: `(args, kwargs)` as `torch.save` writes them.

use crate::dtype::FileDType;
use crate::pytree::{Container, TreeSpec};
use crate::zip::{Compression, ZipWriter};
use restride_ir::{Program, Result, SampleInput, Scalar};
use serde_json::Value;

/// A `torch.save` file of the program's sample inputs. Empty, which PyTorch reads as none, if the program has no samples or
/// nests them in the user's classes.
pub fn file(program: &Program) -> Result<Vec<u8>> {
    let (Some(samples), Some((spec, _))) = (&program.sample_inputs, &program.pytree) else { return Ok(Vec::new()) };
    let Ok(spec) = TreeSpec::parse(spec) else { return Ok(Vec::new()) };
    if spec.leaf_count() != samples.inputs.len() {
        return Ok(Vec::new());
    }
    let sizes: Vec<usize> = samples.storages.iter().map(Vec::len).collect();
    let mut pickle = Pickle { out: vec![0x80, 2], sizes: &sizes };
    let mut leaves = samples.inputs.iter();
    if pickle.tree(&spec, &mut leaves).is_none() {
        return Ok(Vec::new());
    }
    pickle.out.push(b'.');
    let mut zip = ZipWriter::new(Vec::new());
    zip.add("archive/data.pkl", &pickle.out, Compression::Stored)?;
    zip.add("archive/byteorder", b"little", Compression::Stored)?;
    for (i, bytes) in samples.storages.iter().enumerate() {
        zip.add(&format!("archive/data/{i}"), bytes, Compression::Stored)?;
    }
    zip.add("archive/version", b"3\n", Compression::Stored)?;
    let digest = zip.digest();
    zip.add("archive/.data/serialization_id", digest.as_bytes(), Compression::Stored)?;
    Ok(zip.finish()?)
}

/// A writer of pickle protocol 2, for tensors, numbers, strings and containers.
struct Pickle<'a> {
    out: Vec<u8>,
    /// Bytes of the storages.
    sizes: &'a [usize],
}

impl Pickle<'_> {
    fn global(&mut self, module: &str, name: &str) {
        self.out.extend_from_slice(format!("c{module}\n{name}\n").as_bytes());
    }

    fn str(&mut self, s: &str) -> Option<()> {
        self.out.push(b'X');
        self.out.extend_from_slice(&u32::try_from(s.len()).ok()?.to_le_bytes());
        self.out.extend_from_slice(s.as_bytes());
        Some(())
    }

    fn int(&mut self, i: i64) {
        match i32::try_from(i) {
            Ok(small) => {
                self.out.push(b'J');
                self.out.extend_from_slice(&small.to_le_bytes());
            }
            Err(_) => {
                self.out.extend_from_slice(&[0x8a, 8]);
                self.out.extend_from_slice(&i.to_le_bytes());
            }
        }
    }

    fn bool(&mut self, b: bool) {
        self.out.push(if b { 0x88 } else { 0x89 });
    }

    fn ints(&mut self, list: &[i64]) {
        self.out.push(b'(');
        list.iter().for_each(|i| self.int(*i));
        self.out.push(b't');
    }

    fn tree<'s>(&mut self, spec: &TreeSpec, leaves: &mut impl Iterator<Item = &'s SampleInput>) -> Option<()> {
        let TreeSpec::Node(container, children) = spec else { return self.leaf(leaves.next()?) };
        match container {
            Container::Tuple => {
                self.out.push(b'(');
                for c in children {
                    self.tree(c, leaves)?;
                }
                self.out.push(b't');
            }
            Container::List => {
                self.out.extend_from_slice(b"](");
                for c in children {
                    self.tree(c, leaves)?;
                }
                self.out.push(b'e');
            }
            Container::Dict(keys) | Container::OrderedDict(keys) => {
                if matches!(container, Container::Dict(_)) {
                    self.out.push(b'}');
                } else {
                    self.global("collections", "OrderedDict");
                    self.out.extend_from_slice(b")R");
                }
                self.out.push(b'(');
                for (key, c) in keys.iter().zip(children) {
                    match key {
                        Value::String(s) => self.str(s)?,
                        Value::Bool(b) => self.bool(*b),
                        other => self.int(other.as_i64()?),
                    }
                    self.tree(c, leaves)?;
                }
                self.out.push(b'u');
            }
            // These would need their Python classes.
            Container::DefaultDict { .. }
            | Container::NamedTuple(_)
            | Container::Deque { .. }
            | Container::Custom { .. } => return None,
        }
        Some(())
    }

    fn leaf(&mut self, leaf: &SampleInput) -> Option<()> {
        match leaf {
            SampleInput::None => self.out.push(b'N'),
            SampleInput::Str(s) => self.str(s)?,
            SampleInput::Scalar(Scalar::Bool(b)) => self.bool(*b),
            SampleInput::Scalar(Scalar::Int(i)) => self.int(*i),
            SampleInput::Scalar(Scalar::Float(x)) => {
                self.out.push(b'G');
                self.out.extend_from_slice(&x.to_be_bytes());
            }
            SampleInput::Scalar(Scalar::Complex(_)) => return None,
            SampleInput::Tensor { storage, dtype, layout } => {
                self.global("torch._utils", "_rebuild_tensor_v2");
                self.out.extend_from_slice(b"((");
                self.str("storage")?;
                self.global("torch", FileDType::from_name(dtype.torch_name()).ok()?.storage_class()?);
                self.str(&storage.to_string())?;
                self.str("cpu")?;
                self.int((self.sizes.get(*storage)? / dtype.size()) as i64);
                self.out.extend_from_slice(b"tQ");
                self.int(layout.offset);
                self.ints(&layout.sizes);
                self.ints(&layout.strides);
                self.bool(false);
                self.global("collections", "OrderedDict");
                self.out.extend_from_slice(b")RtR");
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::{self, PickleValue};
    use restride_ir::{DType, Layout, SampleInputs, Stage};
    use std::sync::Arc;

    #[test]
    fn what_is_written_is_read() {
        let leaf = |container, n| TreeSpec::Node(container, vec![TreeSpec::Leaf; n]);
        let kwargs = leaf(Container::Dict(vec!["k".into()]), 1);
        let spec = TreeSpec::Node(Container::Tuple, vec![leaf(Container::Tuple, 3), kwargs]);
        let layout = Layout::strided(&[2, 2], &[1, 2], 1);
        let mut program = Program::new("p", Stage::Imported);
        program.pytree = Some((spec.print().into(), "".into()));
        program.sample_inputs = Some(Arc::new(SampleInputs {
            storages: vec![(0..24).collect()],
            inputs: vec![
                SampleInput::Tensor { storage: 0, dtype: DType::F32, layout },
                SampleInput::Scalar(Scalar::Int(1 << 40)),
                SampleInput::None,
                SampleInput::Scalar(Scalar::Float(0.5)),
            ],
        }));
        let file = file(&program).unwrap();
        let loaded = pickle::load(&file).unwrap();
        let PickleValue::Tuple(parts) = &loaded.value else { panic!("{:?}", loaded.value) };
        let PickleValue::Tuple(args) = &parts[0] else { panic!("{:?}", parts[0]) };
        let PickleValue::Tensor(t) = &args[0] else { panic!("{:?}", args[0]) };
        assert_eq!((&t.sizes[..], &t.strides[..], t.offset), (&[2, 2][..], &[1, 2][..], 1));
        assert_eq!(loaded.storage_bytes(&file, &t.storage).unwrap(), (0..24).collect::<Vec<u8>>());
        assert_eq!(args[1..], [PickleValue::Int(1 << 40), PickleValue::None]);
        assert_eq!(parts[1].get("k"), Some(&PickleValue::Float(0.5)));
    }
}
