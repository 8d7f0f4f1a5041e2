//! From names to operators.

use restride_ir::{Op, OpDef};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Every family's declarations, in the order in which coverage is printed.
static FAMILIES: &[&[OpDef]] = &[];

fn table() -> &'static (Vec<Op>, HashMap<&'static str, Op>) {
    static TABLE: OnceLock<(Vec<Op>, HashMap<&'static str, Op>)> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut ops = Vec::new();
        for def in FAMILIES.iter().flat_map(|f| f.iter()) {
            ops.push(Op::register(*def, None, None).expect("declared schemas parse"));
        }
        let by_name = ops.iter().map(|op| (op.name(), *op)).collect();
        (ops, by_name)
    })
}

/// The operator of a full name (`aten.add.Tensor`), declared or derived.
pub fn lookup(name: &str) -> Option<Op> {
    table().1.get(name).copied()
}

/// Every declared operator.
pub fn ops() -> &'static [Op] {
    &table().0
}
