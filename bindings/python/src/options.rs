//! Options of opening, compiling and running, from Python's arguments.

use crate::errors::raise;
use crate::given::{given_inputs, given_weights};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use restride::{Adam, CompileOptions, Error, ErrorKind, Keep, MemorySpec, OpenOptions, Optimizer, Sgd};
use std::path::PathBuf;

/// Takes named arguments out of a dictionary, and refuses what is left.
pub struct Named<'a, 'py> {
    given: &'a Bound<'py, PyDict>,
    known: Vec<&'static str>,
}

impl<'a, 'py> Named<'a, 'py> {
    /// The arguments of a call.
    pub fn new(given: &'a Bound<'py, PyDict>) -> Named<'a, 'py> {
        Named { given, known: Vec::new() }
    }

    /// One of them; `None` where it is not given, or is `None`.
    pub fn take<T: for<'x> FromPyObject<'x, 'py, Error = PyErr>>(&mut self, name: &'static str) -> PyResult<Option<T>> {
        self.known.push(name);
        match self.given.get_item(name)? {
            Some(v) if !v.is_none() => v.extract().map(Some).map_err(|e: PyErr| {
                let what = format!("{name}: {}", e.value(self.given.py()));
                PyTypeError::new_err(what)
            }),
            _ => Ok(None),
        }
    }

    /// As [`Named::take`], as it came.
    pub fn object(&mut self, name: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.known.push(name);
        Ok(self.given.get_item(name)?.filter(|v| !v.is_none()))
    }

    /// As [`Named::take`], with a default.
    pub fn or<T: for<'x> FromPyObject<'x, 'py, Error = PyErr>>(
        &mut self,
        name: &'static str,
        default: T,
    ) -> PyResult<T> {
        Ok(self.take(name)?.unwrap_or(default))
    }

    /// # Errors
    /// A name that was not taken.
    pub fn end(self) -> PyResult<()> {
        for key in self.given.keys() {
            let key: String = key.extract()?;
            if !self.known.contains(&key.as_str()) {
                let known = self.known.join(", ");
                return Err(PyTypeError::new_err(format!("unknown option {key:?}; there are {known}")));
            }
        }
        Ok(())
    }
}

/// Options of opening.
pub fn open_options(named: &mut Named<'_, '_>) -> PyResult<OpenOptions> {
    let mut out = OpenOptions {
        model: named.take("model")?,
        weights: named.take::<PathBuf>("weights")?,
        ops: named.take::<PathBuf>("ops")?,
        no_mmap: !named.or("mmap", true)?,
        inputs: given_inputs(named)?,
        given_weights: given_weights(named)?,
        ..OpenOptions::default()
    };
    if let Some(bytes) = named.take::<u64>("max_memory")? {
        out.limits.memory = bytes;
    }
    Ok(out)
}

/// Options of compiling, and the threads of a run.
pub fn compile_options(named: &mut Named<'_, '_>) -> PyResult<(CompileOptions, usize)> {
    let threads = named.or("threads", 0usize)?;
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n,
    };
    let mut out = CompileOptions {
        check: named.or("check", true)?,
        order: named.or("reorder", true)?,
        fold: named.or("fold", true)?,
        budget: named.take("budget")?,
        ..CompileOptions::default()
    };
    out.fuse.most = named.or("fuse_limit", out.fuse.most)?;
    if !named.or("fuse", true)? {
        out.fuse.most = 0;
    }
    out.place.views = named.or("views", true)?;
    out.plan.align = named.or("align", out.plan.align)?;
    out.plan.search.budget = named.or("search_steps", out.plan.search.budget)?;
    if out.plan.align < 1 || out.plan.align & (out.plan.align - 1) != 0 {
        return Err(PyValueError::new_err(format!("align is {}; it takes a power of two", out.plan.align)));
    }
    if let Some(memories) = named.take::<Vec<(String, Option<i64>)>>("memories")? {
        let spec = |(name, capacity)| MemorySpec { name, capacity, pins: Vec::new() };
        out.memories = memories.into_iter().map(spec).collect();
    }
    Ok((out, threads))
}

/// What backward keeps: "auto", "all", "none" or bytes.
pub fn keep(given: Option<Bound<'_, PyAny>>) -> PyResult<Keep> {
    let Some(given) = given else { return Ok(Keep::Auto) };
    if let Ok(bytes) = given.extract::<i64>() {
        return Ok(Keep::Bytes(bytes));
    }
    match given.extract::<String>()?.as_str() {
        "auto" => Ok(Keep::Auto),
        "all" => Ok(Keep::All),
        "none" => Ok(Keep::None),
        other => {
            Err(PyValueError::new_err(format!("keep is {other:?}; it takes \"auto\", \"all\", \"none\" or bytes")))
        }
    }
}

/// An optimizer by its name, with its options.
pub fn optimizer(name: &str, given: &Bound<'_, PyDict>) -> PyResult<Optimizer> {
    let mut named = Named::new(given);
    let made = match name {
        "sgd" => {
            let own = Sgd::default();
            Optimizer::Sgd(Sgd {
                lr: named.or("lr", own.lr)?,
                momentum: named.or("momentum", own.momentum)?,
                dampening: named.or("dampening", own.dampening)?,
                weight_decay: named.or("weight_decay", own.weight_decay)?,
                nesterov: named.or("nesterov", own.nesterov)?,
                maximize: named.or("maximize", own.maximize)?,
            })
        }
        "adam" | "adamw" => {
            let own = Adam::default();
            let decay = if name == "adamw" { 0.01 } else { own.weight_decay };
            Optimizer::Adam(Adam {
                lr: named.or("lr", own.lr)?,
                betas: named.or("betas", own.betas)?,
                eps: named.or("eps", own.eps)?,
                weight_decay: named.or("weight_decay", decay)?,
                amsgrad: named.or("amsgrad", own.amsgrad)?,
                maximize: named.or("maximize", own.maximize)?,
                decoupled_weight_decay: named.or("decoupled_weight_decay", name == "adamw")?,
            })
        }
        other => {
            let what = format!("no optimizer is called {other:?}");
            return Err(raise(&Error::new(ErrorKind::Inputs, what).help("there are \"sgd\", \"adam\" and \"adamw\"")));
        }
    };
    named.end()?;
    Ok(made)
}
