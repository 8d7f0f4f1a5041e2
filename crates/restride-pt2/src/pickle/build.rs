//! The classes and functions that are known. All others stay names.

use super::value::PickleTensor;
use super::vm::{ObjectId, PickleObject, PickleStorage, Vm};
use crate::dtype::{FileDType, storage_reach};
use crate::error::{Pt2Error, Result};
use std::sync::Arc;

/// PyTorch allows no more dimensions than this either.
const MAX_RANK: usize = 64;

/// A class or function by name.
pub(super) fn global(module: &str, name: &str) -> PickleObject {
    // Python 2's name, which protocol 2 pickles write.
    let module = if module == "__builtin__" { "builtins" } else { module };
    if module == "torch"
        && let Ok(dtype) = FileDType::from_name(name)
    {
        return PickleObject::DType(dtype);
    }
    PickleObject::Global(format!("{module}.{name}").into())
}

fn bad(what: &str) -> Pt2Error {
    Pt2Error::malformed(format!("the pickle calls {what} with arguments that it does not take"))
}

/// Calls a known function; of any other, keeps the name and the arguments.
pub(super) fn call(vm: &mut Vm<'_, '_>, callee: ObjectId, args: &[ObjectId]) -> Result<PickleObject> {
    let name = match vm.object(callee) {
        PickleObject::Global(name) => name.clone(),
        PickleObject::DType(d) => return Err(bad(d.name())),
        _ => return Err(Pt2Error::malformed("the pickle calls something other than a function")),
    };
    match (&*name, args) {
        ("torch._utils._rebuild_tensor", [storage, offset, sizes, strides]) => {
            tensor(vm, *storage, *offset, *sizes, *strides, None, false)
        }
        ("torch._utils._rebuild_tensor_v2", [storage, offset, sizes, strides, grad, ..]) => {
            // A conj or neg bit would be lost, and with it the values.
            if let Some(&metadata) = args.get(6) {
                refuse_bits(vm, metadata)?;
            }
            let grad = boolean(vm, *grad)?;
            tensor(vm, *storage, *offset, *sizes, *strides, None, grad)
        }
        ("torch._utils._rebuild_tensor_v3", [storage, offset, sizes, strides, grad, _, dtype, ..]) => {
            if let Some(&metadata) = args.get(7) {
                refuse_bits(vm, metadata)?;
            }
            let PickleObject::DType(dtype) = *vm.object(*dtype) else {
                return Err(bad(&name));
            };
            let grad = boolean(vm, *grad)?;
            tensor(vm, *storage, *offset, *sizes, *strides, Some(dtype), grad)
        }
        ("torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state", [data, grad, ..]) => {
            let PickleObject::Tensor(t) = vm.object(*data) else {
                return Ok(PickleObject::Opaque(name, args.to_vec()));
            };
            let mut t = PickleTensor::clone(t);
            t.is_parameter = true;
            t.requires_grad = boolean(vm, *grad)?;
            Ok(PickleObject::Tensor(Arc::new(t)))
        }
        // A tensor or parameter with attributes: the attributes are dropped.
        ("torch._tensor._rebuild_from_type_v2", [function, class, inner, _]) => {
            let plain = matches!(vm.object(*class), PickleObject::Global(c)
                if ["torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer"].contains(&&**c));
            match (plain, vm.object(*inner).clone()) {
                (true, PickleObject::Tuple(inner)) => {
                    let (function, inner) = (*function, inner);
                    call_once(vm, function, &inner)
                }
                _ => Ok(PickleObject::Opaque(name, args.to_vec())),
            }
        }
        ("torch.Size", [sizes]) => Ok(PickleObject::Size(integers(vm, *sizes)?)),
        ("torch.device", [kind, ..]) => device(vm, *kind, args.get(1).copied()),
        ("collections.OrderedDict", []) => Ok(PickleObject::Dict(Vec::new())),
        ("collections.OrderedDict" | "builtins.dict", [items]) => dictionary(vm, *items),
        ("builtins.dict", []) => Ok(PickleObject::Dict(Vec::new())),
        ("collections.defaultdict", [_]) => Ok(PickleObject::Dict(Vec::new())),
        ("collections.deque", []) => Ok(PickleObject::List(Vec::new())),
        ("collections.deque" | "builtins.list", [items, ..]) => Ok(PickleObject::List(sequence(vm, *items, &name)?)),
        ("builtins.set" | "builtins.frozenset", [items]) => Ok(PickleObject::Set(sequence(vm, *items, &name)?)),
        ("builtins.complex", [re, im]) => Ok(PickleObject::Complex(float(vm, *re)?, float(vm, *im)?)),
        ("builtins.bytearray" | "builtins.bytes", []) => Ok(PickleObject::Bytes(Vec::new().into())),
        // Protocol 2 writes bytes as text with one character a byte.
        ("_codecs.encode", [text, codec]) => match (vm.object(*text), vm.object(*codec)) {
            (PickleObject::Str(text), PickleObject::Str(codec)) if &**codec == "latin1" => {
                let text = text.clone();
                vm.charge(text.len())?;
                let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
                bytes.map(|b| PickleObject::Bytes(b.into())).ok_or_else(|| bad(&name))
            }
            _ => Err(bad(&name)),
        },
        _ if name.starts_with("torch._utils._rebuild_tensor") => Err(bad(&name)),
        _ => Ok(PickleObject::Opaque(name, args.to_vec())),
    }
}

/// Calls one of the functions that make plain tensors, and nothing that would call again.
fn call_once(vm: &mut Vm<'_, '_>, function: ObjectId, args: &[ObjectId]) -> Result<PickleObject> {
    match vm.object(function) {
        PickleObject::Global(f) if f.starts_with("torch._utils._rebuild_") => call(vm, function, args),
        PickleObject::Global(f) => Ok(PickleObject::Opaque(f.clone(), args.to_vec())),
        _ => Err(bad("torch._tensor._rebuild_from_type_v2")),
    }
}

fn refuse_bits(vm: &Vm<'_, '_>, metadata: ObjectId) -> Result<()> {
    let PickleObject::Dict(items) = vm.object(metadata) else {
        return Ok(());
    };
    for &(key, value) in items {
        if let (PickleObject::Str(k), PickleObject::Bool(true)) = (vm.object(key), vm.object(value)) {
            return Err(Pt2Error::unsupported(format!("a saved tensor whose {k} bit is set")));
        }
    }
    Ok(())
}

fn boolean(vm: &Vm<'_, '_>, id: ObjectId) -> Result<bool> {
    match vm.object(id) {
        PickleObject::Bool(b) => Ok(*b),
        PickleObject::Int(n) => Ok(*n != 0),
        _ => Err(bad("a function that takes a truth value")),
    }
}

fn integer(vm: &Vm<'_, '_>, id: ObjectId) -> Result<i64> {
    match vm.object(id) {
        PickleObject::Int(n) => Ok(*n),
        _ => Err(bad("a function that takes an integer")),
    }
}

fn float(vm: &Vm<'_, '_>, id: ObjectId) -> Result<f64> {
    match vm.object(id) {
        PickleObject::Float(x) => Ok(*x),
        PickleObject::Int(n) => Ok(*n as f64),
        _ => Err(bad("a function that takes a float")),
    }
}

fn integers(vm: &Vm<'_, '_>, id: ObjectId) -> Result<Vec<i64>> {
    match vm.object(id) {
        PickleObject::Size(v) => Ok(v.clone()),
        PickleObject::Tuple(ids) | PickleObject::List(ids) if ids.len() <= MAX_RANK => {
            ids.iter().map(|&i| integer(vm, i)).collect()
        }
        _ => Err(bad("a function that takes sizes")),
    }
}

fn sequence(vm: &mut Vm<'_, '_>, id: ObjectId, what: &str) -> Result<Vec<ObjectId>> {
    let ids = match vm.object(id) {
        PickleObject::List(ids) | PickleObject::Tuple(ids) | PickleObject::Set(ids) => ids.clone(),
        _ => return Err(bad(what)),
    };
    vm.charge(ids.len())?;
    Ok(ids)
}

fn dictionary(vm: &mut Vm<'_, '_>, id: ObjectId) -> Result<PickleObject> {
    if let PickleObject::Dict(items) = vm.object(id) {
        let items = items.clone();
        vm.charge(items.len())?;
        return Ok(PickleObject::Dict(items));
    }
    let pairs = sequence(vm, id, "dict")?;
    let pair = |&p: &ObjectId| match vm.object(p) {
        PickleObject::Tuple(kv) | PickleObject::List(kv) if kv.len() == 2 => Ok((kv[0], kv[1])),
        _ => Err(bad("dict")),
    };
    Ok(PickleObject::Dict(pairs.iter().map(pair).collect::<Result<_>>()?))
}

fn device(vm: &Vm<'_, '_>, kind: ObjectId, index: Option<ObjectId>) -> Result<PickleObject> {
    let PickleObject::Str(kind) = vm.object(kind) else {
        return Err(bad("torch.device"));
    };
    if kind.len() > 64 {
        return Err(bad("torch.device"));
    }
    let (kind, inside) = match kind.split_once(':') {
        Some((k, i)) => (k, Some(i.parse().map_err(|_| bad("torch.device"))?)),
        None => (&**kind, None),
    };
    let index = match index {
        Some(i) => Some(integer(vm, i)?),
        None => inside,
    };
    Ok(PickleObject::Device(kind.to_string(), index))
}

/// The storage of a persistent id `('storage', class, key, location, count)`, to which PyTorch 1.4 adds `None`: no view.
pub(super) fn persistent(vm: &mut Vm<'_, '_>, id: ObjectId) -> Result<PickleObject> {
    let bad = || Pt2Error::malformed("the pickle names a storage in a form that is not known");
    let PickleObject::Tuple(parts) = vm.object(id) else {
        return Err(bad());
    };
    let &[word, class, key, _, count, ref view @ ..] = parts.as_slice() else {
        return Err(bad());
    };
    if view.len() > 1 || view.iter().any(|v| !matches!(vm.object(*v), PickleObject::None)) {
        return Err(bad());
    }
    let (PickleObject::Str(word), PickleObject::Global(class), PickleObject::Str(key)) =
        (vm.object(word), vm.object(class), vm.object(key))
    else {
        return Err(bad());
    };
    if &**word != "storage" {
        return Err(bad());
    }
    let name = class.rsplit('.').next().unwrap_or_default();
    let dtype = match name {
        "UntypedStorage" => None,
        name => Some(
            FileDType::from_storage_class(name)
                .ok_or_else(|| Pt2Error::unsupported(format!("a storage of class {class}")))?,
        ),
    };
    let key = key.clone();
    let bytes = u64::try_from(integer(vm, count)?)
        .ok()
        .and_then(|n| n.checked_mul(dtype.map_or(1, FileDType::size) as u64))
        .ok_or_else(bad)?;
    (vm.require)(&key, bytes)?;
    Ok(PickleObject::Storage(PickleStorage { dtype, key, bytes }))
}

fn tensor(
    vm: &Vm<'_, '_>,
    storage: ObjectId,
    offset: ObjectId,
    sizes: ObjectId,
    strides: ObjectId,
    dtype: Option<FileDType>,
    requires_grad: bool,
) -> Result<PickleObject> {
    let PickleObject::Storage(storage) = vm.object(storage) else {
        return Err(bad("a tensor's maker"));
    };
    let dtype = dtype
        .or(storage.dtype)
        .ok_or_else(|| Pt2Error::malformed("the pickle has a tensor without an element type"))?;
    let t = PickleTensor {
        dtype,
        sizes: integers(vm, sizes)?,
        strides: integers(vm, strides)?,
        offset: integer(vm, offset)?,
        storage: storage.key.clone(),
        requires_grad,
        is_parameter: false,
    };
    let reach = storage_reach(&t.sizes, &t.strides, t.offset)?;
    let have = storage.bytes / dtype.size() as u64;
    if reach > have {
        return Err(Pt2Error::malformed(format!(
            "a tensor of sizes {:?}, strides {:?} and offset {} needs {reach} elements, but its storage {} has {have}",
            t.sizes, t.strides, t.offset, t.storage
        )));
    }
    Ok(PickleObject::Tensor(Arc::new(t)))
}
