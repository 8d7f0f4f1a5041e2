//! Functions with a backward pass of their own.

use super::emit::freed;
use super::memory::{SavedValue, TapeStorage};
use super::mode::{is_grad_enabled, no_grad};
use super::node::{Edge, NodeKind, TapeNode};
use super::tensor::{Tensor, differentiable, refuse};
use restride_ir::{Error, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// A function with a gradient of its own, used instead of the gradients of the calls that it makes.
///
/// ```
/// use restride_exec::eager::{Function, Saving, Tensor, apply};
/// use std::rc::Rc;
///
/// /// `x * x * x`, computed as `exp(3 * log(x))`.
/// struct Cube;
///
/// impl Function for Cube {
///     fn name(&self) -> &str {
///         "cube"
///     }
///     fn forward(&self, inputs: &[Tensor], saving: &mut Saving) -> restride_ir::Result<Vec<Tensor>> {
///         saving.save(&inputs[0]);
///         Ok(vec![inputs[0].log()?.mul_number(3)?.exp()?])
///     }
///     fn backward(
///         &self,
///         saved: &[Tensor],
///         gradients: &[Option<Tensor>],
///         _needs: &[bool],
///     ) -> restride_ir::Result<Vec<Option<Tensor>>> {
///         let Some(g) = &gradients[0] else { return Ok(vec![None]) };
///         Ok(vec![Some(saved[0].mul(&saved[0])?.mul_number(3)?.mul(g)?)])
///     }
/// }
///
/// let x = Tensor::from_slice(&[2.0], &[1])?.requiring_grad()?;
/// apply(Rc::new(Cube), &[x.clone()])?[0].sum()?.backward()?;
/// let gradient: Vec<f64> = x.grad().expect("x asked for it").to_vec()?;
/// assert_eq!(gradient, [12.0]);
/// # Ok::<(), restride_ir::Error>(())
/// ```
pub trait Function {
    /// Its name in histories and errors.
    fn name(&self) -> &str;

    /// Computes the results. Its calls are not recorded. Inputs are constants on the caller's memory and must not be written.
    /// `saving` keeps the values that `backward` reads.
    ///
    /// # Errors
    /// Any; [`apply`] returns it.
    fn forward(&self, inputs: &[Tensor], saving: &mut Saving) -> Result<Vec<Tensor>>;

    /// Computes the gradient of each input (`None` is zero) from those of the results (`None` for a result that the loss does
    /// not depend on). `saved` has the values that `forward` saved, in order; `needs` marks the inputs whose gradient is wanted.
    /// Its calls are recorded where gradients of gradients are wanted.
    ///
    /// # Errors
    /// Any; the backward pass returns it.
    fn backward(&self, saved: &[Tensor], gradients: &[Option<Tensor>], needs: &[bool]) -> Result<Vec<Option<Tensor>>>;
}

/// Values that a forward pass saves for the backward pass.
#[derive(Default)]
pub struct Saving {
    saved: Vec<Tensor>,
    constants: Vec<Tensor>,
}

impl Saving {
    /// Keeps an input, a result or another value. If the value is overwritten before the backward pass reads it, that pass fails,
    /// as for any operator.
    pub fn save(&mut self, t: &Tensor) {
        self.saved.push(t.clone());
    }

    /// Declares that a result has no gradient.
    pub fn constant(&mut self, result: &Tensor) {
        self.constants.push(result.clone());
    }
}

/// The origin of a saved value.
#[derive(Clone, Copy)]
enum SavedSource {
    Input(usize),
    Result(usize),
    Own,
}

/// A call of a function that was recorded.
pub(super) struct Applied {
    function: Rc<dyn Function>,
    /// `None` once it is gone.
    saved: RefCell<Option<Vec<(SavedValue, SavedSource)>>>,
}

impl Applied {
    pub fn name(&self) -> String {
        self.function.name().into()
    }

    /// Frees saved values.
    pub fn release(&self) {
        let mut saved = self.saved.borrow_mut();
        if saved.as_ref().is_some_and(|s| !s.is_empty()) {
            *saved = None;
        }
    }

    pub fn backward(
        &self,
        node: &Rc<TapeNode>,
        grads: &[Option<Tensor>],
        needs: &[bool],
    ) -> Result<Vec<Option<Tensor>>> {
        let name = self.function.name();
        let mut saved = Vec::new();
        for (value, source) in self.saved.borrow().as_ref().ok_or_else(freed)? {
            let edge = match *source {
                SavedSource::Input(i) => node.edges.get(i).cloned().flatten(),
                SavedSource::Result(slot) => Some(Edge { node: node.clone(), slot }),
                SavedSource::Own => None,
            };
            let (raw, memory) = value.get(|| format!(", which {name} saved"))?;
            let edge = edge.filter(|_| differentiable(raw.dtype()));
            saved.push(Tensor::standing(raw, memory, edge));
        }
        let made = self.function.backward(&saved, grads, needs)?;
        if made.len() != node.edges.len() {
            let (want, have) = (node.edges.len(), made.len());
            return refuse(format!(
                "function {name} returned an incorrect number of gradients (expected {want}, got {have})"
            ));
        }
        Ok(made)
    }
}

thread_local! {
    /// Inputs of functions that run now, the innermost last.
    static GIVEN: RefCell<Vec<Given>> = const { RefCell::new(Vec::new()) };
}

struct Given {
    function: Rc<dyn Function>,
    inputs: Vec<Rc<TapeStorage>>,
}

/// A guard: while it lives, writes to the inputs of the innermost function are refused.
struct InputLock;

impl InputLock {
    fn new(function: &Rc<dyn Function>, inputs: &[Tensor]) -> InputLock {
        let given = Given { function: function.clone(), inputs: inputs.iter().map(Tensor::memory).collect() };
        GIVEN.with_borrow_mut(|all| all.push(given));
        InputLock
    }
}

impl Drop for InputLock {
    fn drop(&mut self) {
        GIVEN.with_borrow_mut(Vec::pop);
    }
}

/// Refuses a write to an input of a function that runs now.
pub(super) fn refuse_given<'t>(mut targets: impl Iterator<Item = &'t Tensor>) -> Result<()> {
    GIVEN.with_borrow(|all| {
        if all.is_empty() {
            return Ok(());
        }
        let found = targets.find_map(|t| {
            let memory = t.memory();
            let place = |g: &Given| Some((g.function.clone(), g.inputs.iter().position(|m| Rc::ptr_eq(m, &memory))?));
            all.iter().rev().find_map(place)
        });
        match found {
            Some((function, i)) => {
                Err(Error::unsupported(format!("function {} writes its input {i}", function.name()))
                    .help("write a clone of it in forward, and copy that into the input afterwards"))
            }
            None => Ok(()),
        }
    })
}

/// Calls a function on inputs, and records it as one step if one of them is differentiated. Results are in memory of their own:
/// one that shows an input's memory, or another result's, is refused.
///
/// # Errors
/// The function's own error, an input that it wrote, a result in memory that is not its own.
pub fn apply(function: Rc<dyn Function>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let name = function.name().to_string();
    let edges: Vec<Option<Edge>> = match is_grad_enabled() {
        true => inputs.iter().map(Tensor::edge).collect(),
        false => vec![None; inputs.len()],
    };
    let given: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    let mut saving = Saving::default();
    let made = {
        let _off = no_grad();
        let _running = InputLock::new(&function, inputs);
        function.forward(&given, &mut saving)?
    };
    for (k, r) in made.iter().enumerate() {
        let same = |t: &Tensor| t.raw().storage().same(r.raw().storage()) && t.numel() > 0;
        let what = match (inputs.iter().position(same), made[..k].iter().position(same)) {
            (Some(i), _) => format!("its input {i}"),
            (_, Some(i)) => format!("its result {i}"),
            _ => continue,
        };
        return Err(Error::unsupported(format!("result {k} of function {name} is in the memory of {what}"))
            .help("return a clone of it"));
    }
    if edges.iter().all(Option::is_none) {
        return Ok(made);
    }
    let source = |t: &Tensor| {
        let result = made.iter().position(|r| r.is(t)).map(SavedSource::Result);
        let input = given.iter().zip(inputs).position(|(g, i)| g.is(t) || i.is(t)).map(SavedSource::Input);
        result.or(input).unwrap_or(SavedSource::Own)
    };
    let saved = saving.saved.iter().map(|t| Ok((SavedValue::new(t)?, source(t)))).collect::<Result<Vec<_>>>()?;
    let types = made.iter().map(Tensor::meta).collect();
    let applied = Applied { function, saved: RefCell::new(Some(saved)) };
    let node = TapeNode::new(NodeKind::Function(applied), edges, types);
    let constant = |r: &Tensor| !differentiable(r.dtype()) || saving.constants.iter().any(|c| c.is(r));
    let recorded = made.iter().enumerate().map(|(slot, r)| match constant(r) {
        true => r.clone(),
        false => Tensor::standing(r.raw(), r.memory(), Some(Edge { node: node.clone(), slot })),
    });
    Ok(recorded.collect())
}
