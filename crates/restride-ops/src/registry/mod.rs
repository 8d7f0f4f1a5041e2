//! From names to operators.
//!
//! An operator is registered at its first lookup and kept for the life of the process: there are as many as the
//! programs that were opened use. Two lookups of one name give the same handle.

pub(crate) mod custom;
mod derive;
pub(crate) mod forms;

use crate::declarations;
use foldhash::fast::FixedState;
use restride_ir::{Op, OpDef, OpError, Schema};
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

/// Schemas of everything in the dispatcher of PyTorch, one a line, sorted (`scripts/make/dump_schemas.py`).
static SCHEMAS: &str = include_str!("../../data/schemas.txt");

/// What is known before anything is registered.
struct Sources {
    /// Declarations by full name.
    declared: HashMap<String, &'static OpDef>,
    /// PyTorch's schema text by full name.
    schemas: HashMap<String, &'static str>,
    /// Full names of a PyTorch operator's overloads, by `namespace.name`, in the order of the file.
    overloads: HashMap<&'static str, Vec<String>>,
}

/// `aten::add.Tensor(…` as (`aten::add`, `Tensor`).
fn head(schema: &str) -> (&str, &str) {
    let head = schema.split('(').next().unwrap_or("");
    head.split_once('.').unwrap_or((head, "default"))
}

fn sources() -> &'static Sources {
    static SOURCES: OnceLock<Sources> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let mut s = Sources { declared: HashMap::new(), schemas: HashMap::new(), overloads: HashMap::new() };
        for def in declarations() {
            let schema = Schema::parse(def.schema).expect("a test parses every declared schema");
            s.declared.insert(schema.full_name(), def);
        }
        for line in SCHEMAS.lines() {
            let (name, overload) = head(line);
            let full = format!("{}.{overload}", name.replacen("::", ".", 1));
            s.overloads.entry(name).or_default().push(full.clone());
            s.schemas.insert(full, line);
        }
        s
    })
}

/// Operators in use by name: looked up for every call that a pass adds.
type Registered = RwLock<HashMap<&'static str, Op, FixedState>>;

fn registered() -> &'static Registered {
    static REGISTERED: OnceLock<Registered> = OnceLock::new();
    REGISTERED.get_or_init(Default::default)
}

fn known(name: &str) -> Option<Op> {
    // A panic while the lock was held cannot leave the map half changed: an insertion is one call.
    registered().read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// The operator under its name; what another thread registered first wins, so that handles compare equal.
fn keep(op: Op) -> Op {
    *registered().write().unwrap_or_else(PoisonError::into_inner).entry(op.name()).or_insert(op)
}

/// The operator of a full name (`aten.add.Tensor`, `_operator.mul`, `higher_order.cond`): declared, derived, or known by
/// its schema alone (`Op::can_run` tells). `None` if nobody knows it.
pub fn lookup(name: &str) -> Option<Op> {
    if let Some(op) = known(name) {
        return Some(op);
    }
    let s = sources();
    let op = match (s.declared.get(name), s.schemas.get(name)) {
        (Some(def), _) => derive::declared(def),
        (None, Some(schema)) => derive::from_schema(schema),
        (None, None) => return None,
    };
    Some(keep(op.unwrap_or_else(|e| panic!("{name}: {e}"))))
}

/// Every declared operator, in the order in which coverage is printed.
pub fn ops() -> &'static [Op] {
    static OPS: OnceLock<Vec<Op>> = OnceLock::new();
    OPS.get_or_init(|| {
        let defs = declarations();
        defs.map(|def| {
            let schema = Schema::parse(def.schema).expect("a test parses every declared schema");
            lookup(&schema.full_name()).expect("a declared operator is found by its name")
        })
        .collect()
    })
}

/// Full names of every operator that PyTorch has, in alphabetical order.
pub fn torch_names() -> impl Iterator<Item = String> {
    SCHEMAS.lines().map(|line| {
        let (name, overload) = head(line);
        format!("{}.{overload}", name.replacen("::", ".", 1))
    })
}

/// Full names of the overloads of a PyTorch operator (`aten`, `add`).
pub(crate) fn overloads(namespace: &str, name: &str) -> &'static [String] {
    sources().overloads.get(format!("{namespace}::{name}").as_str()).map_or(&[], |v| v.as_slice())
}

/// Whether there is a declaration or a PyTorch schema of this full name.
pub(crate) fn exists(name: &str) -> bool {
    sources().declared.contains_key(name) || sources().schemas.contains_key(name)
}

/// The schema of a declared operator or of one of PyTorch's, without registering it.
pub(crate) fn schema_of(name: &str) -> Option<Schema> {
    let s = sources();
    let text = s.declared.get(name).map(|d| d.schema).or_else(|| s.schemas.get(name).copied())?;
    Schema::parse(text).ok()
}

/// Registers a user's operator by its schema: `mylib::foo(Tensor(a!) x, Tensor[] ys) -> Tensor`. It can be shown and
/// functionalized: one that writes arguments gets a functional form beside it ([`crate::custom_form`]). Registering the
/// same schema again gives the same handle.
pub fn register_custom(schema_text: &str) -> Result<Op, OpError> {
    let schema = Schema::parse(schema_text.trim())?;
    let name = schema.full_name();
    if let Some(op) = known(&name).or_else(|| exists(&name).then(|| lookup(&name)).flatten()) {
        return if *op.schema() == schema {
            Ok(op)
        } else {
            Err(OpError::new(format!("{name} is already known with the schema {}", op.def().schema)))
        };
    }
    let text: &'static str = Box::leak(schema_text.trim().to_string().into_boxed_str());
    Ok(keep(custom::custom(&schema, text)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::TwinReturn;

    fn twin_name(name: &str) -> Option<&'static str> {
        Some(lookup(name)?.twin()?.op.name())
    }

    #[test]
    fn every_declared_schema_parses_and_is_pytorchs() {
        let mut seen = std::collections::BTreeSet::new();
        for op in ops() {
            assert!(seen.insert(op.name()), "{op} is declared twice");
            if let Some(theirs) = sources().schemas.get(op.name()) {
                let theirs = Schema::parse(theirs).unwrap();
                let ours = op.schema();
                let names = |s: &Schema| s.args.iter().map(|a| (a.name.clone(), a.ty, a.optional)).collect::<Vec<_>>();
                assert_eq!(names(ours), names(&theirs), "{op}");
                let defaults = |s: &Schema| s.args.iter().map(|a| a.default.clone()).collect::<Vec<_>>();
                assert_eq!(defaults(ours), defaults(&theirs), "{op}");
                assert_eq!(ours.returns.len(), theirs.returns.len(), "{op}");
            } else {
                assert!(!["aten", "prims", "torchvision"].contains(&ours_namespace(*op)), "PyTorch has no {op}");
            }
        }
    }

    fn ours_namespace(op: Op) -> &'static str {
        op.schema().namespace.as_str()
    }

    #[test]
    fn every_torch_name_is_found_once() {
        let mut count = 0;
        for name in torch_names() {
            let op = lookup(&name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(op.name(), name);
            assert_eq!(lookup(&name), Some(op));
            if let Some(twin) = op.twin() {
                assert!(!twin.op.is_mutable(), "{name} -> {}", twin.op);
            }
            count += 1;
        }
        assert!(count > 3000, "{count}");
        assert!(lookup("aten.no_such_thing.default").is_none());
    }

    #[test]
    fn in_place_and_out_forms_find_their_functional_form() {
        for (name, twin) in [
            ("aten.add_.Tensor", "aten.add.Tensor"),
            ("aten.__iand__.Tensor", "aten.__and__.Tensor"),
            ("aten.pow_.Scalar", "aten.pow.Tensor_Scalar"),
            ("aten.floor_divide_.Tensor", "aten.floor_divide.default"),
            ("aten.bernoulli_.float", "aten.bernoulli.p"),
            ("aten.normal_.default", "aten.normal_functional.default"),
            ("aten.index_put_.default", "aten.index_put.default"),
            ("aten.copy_.default", "aten.copy.default"),
            ("aten.add.out", "aten.add.Tensor"),
            ("aten.cat.out", "aten.cat.default"),
            ("aten.max.dim_max", "aten.max.dim"),
            ("aten._fused_moving_avg_obs_fq_helper.default", "aten._fused_moving_avg_obs_fq_helper_functional.default"),
            ("aten._native_batch_norm_legit.default", "aten._native_batch_norm_legit_functional.default"),
        ] {
            assert_eq!(twin_name(name), Some(twin), "{name}");
        }
        let max = lookup("aten.max.dim_max").unwrap().twin().unwrap();
        assert!(max.resizes && max.args[..] == [0, 1, 2] && max.writes[..] == [(3, 0), (4, 1)]);
        assert_eq!(max.returns[..], [TwinReturn::Arg(3), TwinReturn::Arg(4)]);
        let norm = lookup("aten._native_batch_norm_legit.default").unwrap().twin().unwrap();
        assert_eq!(norm.writes[..], [(3, 3), (4, 4)]);
        assert_eq!(norm.returns[..], [TwinReturn::Result(0), TwinReturn::Result(1), TwinReturn::Result(2)]);
    }

    #[test]
    fn lists_are_taken_apart() {
        for (name, member) in [
            ("aten._foreach_add_.List", "aten.add_.Tensor"),
            ("aten._foreach_mul.Scalar", "aten.mul.Scalar"),
            ("aten._foreach_addcmul_.ScalarList", "aten.addcmul_.default"),
            ("aten._foreach_sqrt.default", "aten.sqrt.default"),
            ("aten._foreach_pow.ScalarAndTensor", "aten.pow.Scalar"),
            ("aten._foreach_maximum.Scalar", "aten.clamp_min.default"),
            ("aten._foreach_copy_.default", "aten.copy_.default"),
            ("aten._foreach_lerp_.Scalar", "aten.lerp_.Scalar"),
        ] {
            assert_eq!(lookup(name).unwrap().member().map(Op::name), Some(member), "{name}");
        }
        let missing: Vec<String> = torch_names()
            .filter(|n| n.starts_with("aten._foreach_") && !n.ends_with("out"))
            .filter(|n| lookup(n).unwrap().member().is_none())
            .collect();
        assert_eq!(missing, ["aten._foreach_powsum.Scalar"]);
    }
}
