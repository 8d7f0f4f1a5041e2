//! The operators, and the parts that each declares.

use restride_ir::{Grad, Kernel, Op};

/// The parts that one operator declares.
#[derive(Clone, Copy, Debug)]
pub struct Coverage {
    /// Full name.
    pub name: &'static str,
    /// PyTorch's schema, with the aliases that it does not declare.
    pub schema: &'static str,
    /// How it is carried out.
    pub how: How,
    /// Whether its results can be views.
    pub view: bool,
    /// Whether it writes an argument.
    pub mutates: bool,
    /// Whether results can take over an argument's memory.
    pub reuse: bool,
    /// How it is differentiated.
    pub grad: Differentiated,
    /// Why it is not differentiated, where it could be.
    pub without: Option<&'static str>,
    /// How many sample calls it declares.
    pub samples: usize,
}

/// How an operator is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// By a kernel of its own.
    Kernel,
    /// As a view.
    View,
    /// Composed of other operators.
    Composed,
    /// A higher-order operator: runs its bodies.
    Bodies,
    /// Not.
    None,
}

/// How an operator is differentiated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Differentiated {
    /// By a rule of its own, or by its view rule.
    Rule,
    /// In another form, or through the operators of its composition.
    Composed,
    /// Its results have no gradient.
    Zero,
    /// Not; of results that are no floating numbers none is asked for.
    None,
}

/// Every declared operator, in the order of the table.
///
/// ```
/// # use restride::Differentiated;
/// let add = restride::coverage().into_iter().find(|c| c.name == "aten.add.Tensor").expect("an operator");
/// assert!(add.reuse && add.grad != Differentiated::None);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn coverage() -> Vec<Coverage> {
    restride_ops::ops().iter().map(|op| row(*op)).collect()
}

/// Whether restride runs an operator of a full name, forms that follow from PyTorch's schemas included.
///
/// ```
/// assert!(restride::runs("aten.add_.Tensor") && !restride::runs("demo.unknown.default"));
/// ```
pub fn runs(name: &str) -> bool {
    restride_ops::lookup(name).is_some_and(Op::can_run)
}

fn row(op: Op) -> Coverage {
    let def = op.def();
    let how = match () {
        () if def.hop.is_some() => How::Bodies,
        () if !matches!(def.kernel, Kernel::None) => How::Kernel,
        () if def.decompose.is_some() => How::Composed,
        () if def.view.is_some() => How::View,
        () if op.can_run() => How::Composed,
        () => How::None,
    };
    Coverage {
        name: op.name(),
        schema: def.schema,
        how,
        view: op.is_view(),
        mutates: op.is_mutable(),
        reuse: !def.reuse.is_empty(),
        grad: match def.grad {
            Some(Grad::Rule(_) | Grad::View) => Differentiated::Rule,
            Some(Grad::Composed | Grad::Form(_)) => Differentiated::Composed,
            Some(Grad::Zero) => Differentiated::Zero,
            None => Differentiated::None,
        },
        without: restride_ops::gradient::without(op.name()),
        samples: restride_ops::sample_count(op.name()),
    }
}
