//! Registry: finds, derives and registers operators by name.
//!
//! The first lookup of a name registers the operator for the life of the process. Two lookups of one name return the same
//! handle.

pub(crate) mod custom;
mod derive;
pub(crate) mod forms;
mod outs;
mod schemas;

use crate::FAMILIES;
use foldhash::fast::FixedState;
use restride_ir::{Op, OpDef, OpError, RegisteredOp, Schema};
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A declared operator, under its own name or an alias.
#[derive(Clone, Copy)]
struct OpRow {
    def: &'static OpDef,
    /// The schema of the alias.
    alias: Option<&'static str>,
}

impl OpRow {
    /// PyTorch's schema, or the declaration's corrected one.
    fn schema(self) -> Option<&'static str> {
        self.alias.or_else(|| schemas::text(self.def))
    }
}

/// Declared operators by full name, and the names in the order of printed coverage.
struct OpTable {
    rows: HashMap<String, OpRow, FixedState>,
    names: Vec<String>,
}

fn table() -> &'static OpTable {
    static TABLE: OnceLock<OpTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = OpTable { rows: HashMap::default(), names: Vec::new() };
        for family in FAMILIES {
            for def in family.ops.iter().copied().flatten() {
                table.add(full_name(def.schema), OpRow { def, alias: None });
            }
            for (alias, name) in family.aliases {
                table.add_alias(alias, name);
            }
        }
        table
    })
}

impl OpTable {
    fn add(&mut self, name: String, row: OpRow) {
        self.names.push(name.clone());
        let before = self.rows.insert(name, row);
        assert!(before.is_none(), "{} is declared twice", row.def.schema);
    }

    /// Adds the overloads of `alias` that also exist for `name`.
    fn add_alias(&mut self, alias: &str, name: &str) {
        let every_overload = !alias.contains('.') && !name.contains('.');
        let ((alias, only), (name, of)) = (schemas::parts(alias), schemas::parts(name));
        for schema in schemas::overloads("aten", alias) {
            let overload = schemas::head(schema).2;
            if !every_overload && overload != only {
                continue;
            }
            let declared = Schema::name_of("aten", name, if every_overload { overload } else { of });
            if let Some(&OpRow { def, .. }) = self.rows.get(&declared) {
                self.add(full_name(schema), OpRow { def, alias: Some(schema) });
            }
        }
    }
}

/// The full name (`aten.add.Tensor`) for a schema or a declaration's name.
pub(crate) fn full_name(schema: &str) -> String {
    let (namespace, name, overload) = schemas::head(schema);
    Schema::name_of(namespace, name, overload)
}

/// Registered operators by name; passes look up each call that they add.
type Registered = RwLock<HashMap<&'static str, Op, FixedState>>;

fn registered() -> &'static Registered {
    static REGISTERED: OnceLock<Registered> = OnceLock::new();
    REGISTERED.get_or_init(Default::default)
}

fn known(name: &str) -> Option<Op> {
    // An insertion is one call, so a panic under the lock leaves the map whole.
    registered().read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// Registers an operator under its name, unless another thread has done so meanwhile: handles compare equal.
fn keep(op: RegisteredOp) -> Op {
    let mut registered = registered().write().unwrap_or_else(PoisonError::into_inner);
    if let Some(first) = registered.get(op.name()) {
        return *first;
    }
    let op = Op::register(op);
    registered.insert(op.name(), op);
    op
}

/// The operator of a full name (`aten.add.Tensor`, `_operator.mul`, `higher_order.cond`): declared, derived, or known by
/// its schema alone (`Op::can_run` tells). `None` for an unknown name.
pub fn lookup(name: &str) -> Option<Op> {
    if let Some(op) = known(name) {
        return Some(op);
    }
    let op = match table().rows.get(name) {
        Some(row) => derive::declared(*row),
        None => derive::from_schema(schemas::of(name)?),
    };
    Some(keep(op.unwrap_or_else(|e| panic!("{name}: {e}"))))
}

/// Every declared operator, in the order of printed coverage.
pub fn ops() -> &'static [Op] {
    static OPS: OnceLock<Vec<Op>> = OnceLock::new();
    OPS.get_or_init(|| {
        let names = table().names.iter();
        names.map(|name| lookup(name).expect("an operator of the table is found by its name")).collect()
    })
}

/// Full names of all PyTorch operators, in alphabetical order.
pub fn torch_names() -> impl Iterator<Item = String> {
    schemas::lines().map(full_name)
}

/// Full names of an operator's overloads (`aten`, `add`), PyTorch's and those of registered custom operators.
pub fn overloads(namespace: &str, name: &str) -> Vec<String> {
    let mut out: Vec<String> = schemas::overloads(namespace, name).map(full_name).collect();
    if out.is_empty() {
        let head = format!("{namespace}.{name}.");
        let registered = registered().read().unwrap_or_else(PoisonError::into_inner);
        out.extend(registered.keys().filter(|n| n.starts_with(&head)).map(|n| n.to_string()));
        out.sort();
    }
    out
}

/// Whether a declaration or a PyTorch schema has this full name.
pub(crate) fn exists(name: &str) -> bool {
    table().rows.contains_key(name) || schemas::of(name).is_some()
}

/// The schema of a declared or PyTorch operator, without registering the operator.
pub(crate) fn schema_of(name: &str) -> Option<Schema> {
    let text = table().rows.get(name).and_then(|row| row.schema()).or_else(|| schemas::of(name))?;
    Schema::parse(text).ok()
}

/// Number of tested sample calls per operator: `data/sample_counts.txt`, which a test compares with the samples.
static SAMPLE_COUNTS: &str = include_str!("../../data/sample_counts.txt");

/// Number of sample calls of an operator that the tests run, by its full name.
pub fn sample_count(name: &str) -> usize {
    static COUNTS: OnceLock<HashMap<&str, usize, FixedState>> = OnceLock::new();
    let line = |l: &'static str| l.split_once(' ').and_then(|(name, n)| Some((name, n.parse().ok()?)));
    COUNTS.get_or_init(|| SAMPLE_COUNTS.lines().filter_map(line).collect()).get(name).copied().unwrap_or(0)
}

/// Registers a user's operator by its schema: `mylib::foo(Tensor(a!) x, Tensor[] ys) -> Tensor`.
///
/// Programs with the operator can be shown and functionalized. An operator that writes arguments also gets a functional form
/// ([`crate::custom_form`]). Registering the same schema again returns the same handle.
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
    custom::custom(&schema, text)
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
            if let Some(theirs) = schemas::of(op.name()) {
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
            ("aten._fused_sgd_.tensor_lr", "restride.fused_sgd_.tensor_lr"),
        ] {
            assert_eq!(lookup(name).unwrap().member().map(Op::name), Some(member), "{name}");
        }
        let missing: Vec<String> = torch_names()
            .filter(|n| n.starts_with("aten._foreach_") && !n.ends_with("out"))
            .filter(|n| lookup(n).unwrap().member().is_none())
            .collect();
        assert_eq!(missing, ["aten._foreach_powsum.Scalar"]);
    }

    #[test]
    fn threads_that_register_one_operator_get_one_handle() {
        let barrier = std::sync::Barrier::new(2);
        let register = || -> Vec<(Op, Op)> {
            let one = |i| {
                barrier.wait();
                let op = register_custom(&format!("threads::write{i}(Tensor(a!) x) -> ()")).unwrap();
                (op, custom::custom_form(op).expect("an operator that a thread sees has its form"))
            };
            (0..200).map(one).collect()
        };
        let (first, second) = std::thread::scope(|s| {
            let other = s.spawn(register);
            (register(), other.join().unwrap())
        });
        assert_eq!(first, second);
        assert!(first.iter().all(|(op, form)| custom::custom_form_of(*form) == Some(*op)));
    }
}
