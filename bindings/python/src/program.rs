//! Programs: opened, described, transformed, saved.

use crate::arrays::{ExpectedInput, Like, inputs, value};
use crate::compiled::Compiled;
use crate::engine::as_rank;
use crate::errors::OrRaise;
use crate::options::{Named, compile_options, keep, open_options, optimizer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use restride::{
    Bytes, CompileOptions, DeclaredSize, DescribedValue, Error, GradOptions, Inputs, Loss, OpenOptions, Stage,
    ValueKind, ViewOptions,
};
use std::path::PathBuf;

/// A program: what `torch.export.save` wrote, or what a transformation made of it. Immutable.
#[pyclass(frozen, module = "restride._restride")]
pub struct Program {
    /// The program.
    pub program: restride::Program,
}

/// Opens a file.
#[pyfunction]
#[pyo3(signature = (path, **options))]
pub fn open(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Program> {
    let options = opening(py, options)?;
    py.detach(|| restride::open(&path, &options)).or_raise().map(|program| Program { program })
}

/// Opens a program in memory, which is copied.
#[pyfunction]
#[pyo3(signature = (data, **options))]
pub fn open_bytes(py: Python<'_>, data: &[u8], options: Option<&Bound<'_, PyDict>>) -> PyResult<Program> {
    let options = opening(py, options)?;
    let bytes = Bytes::copy_of(data);
    py.detach(|| restride::open_bytes(&bytes, &options)).or_raise().map(|program| Program { program })
}

/// The names of the models in an archive.
#[pyfunction]
pub fn models(path: PathBuf) -> PyResult<Vec<String>> {
    restride::models(&path, &OpenOptions::default()).or_raise()
}

fn opening(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<OpenOptions> {
    let none = PyDict::new(py);
    let mut named = Named::new(options.unwrap_or(&none));
    let out = open_options(&mut named)?;
    named.end()?;
    Ok(out)
}

fn size<'py>(py: Python<'py>, s: &DeclaredSize) -> PyResult<Bound<'py, PyAny>> {
    match (s.min, s.max) {
        (Some(a), Some(b)) if a == b => Ok(a.into_pyobject(py)?.into_any()),
        _ => Ok(s.text.as_str().into_pyobject(py)?.into_any()),
    }
}

fn described<'py>(py: Python<'py>, values: &[DescribedValue]) -> PyResult<Bound<'py, PyList>> {
    let out = PyList::empty(py);
    for v in values {
        let one = PyDict::new(py);
        one.set_item("name", &v.name)?;
        let kind = match v.kind {
            ValueKind::Tensor => "tensor",
            ValueKind::Number => "number",
            ValueKind::Fixed => "fixed",
            ValueKind::Other => "other",
            ValueKind::Parameter => "parameter",
            ValueKind::Buffer => "buffer",
            ValueKind::Constant => "constant",
        };
        one.set_item("kind", kind)?;
        one.set_item("dtype", v.dtype.map(|d| d.torch_name()))?;
        let sizes = |all: &[DeclaredSize]| all.iter().map(|s| size(py, s)).collect::<PyResult<Vec<_>>>();
        one.set_item("shape", sizes(&v.sizes)?)?;
        one.set_item("strides", sizes(&v.strides)?)?;
        one.set_item("mutated", v.mutated)?;
        one.set_item("nbytes", v.bytes)?;
        out.append(one)?;
    }
    Ok(out)
}

impl Program {
    fn new(program: restride::Program) -> Program {
        Program { program }
    }

    /// The functional program that transformations begin with.
    fn functional(&self, given: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<(restride::Compiled, Option<Inputs>)> {
        let inputs = match given {
            Some(objects) => Some(inputs(&objects, &ExpectedInput::all(&self.program))?),
            None => Inputs::from_samples(&self.program).transpose().or_raise()?,
        };
        let compiled = restride::Compiled::new(self.program.clone(), inputs.as_ref(), &CompileOptions::default());
        Ok((compiled.or_raise()?, inputs))
    }

    /// Names of the user inputs.
    pub fn names(&self) -> Vec<String> {
        restride::user_inputs(&self.program).map(|(_, n)| n.to_string()).collect()
    }
}

#[pymethods]
impl Program {
    #[getter]
    fn name(&self) -> &str {
        &self.program.name
    }

    #[getter]
    fn stage(&self) -> &'static str {
        match self.program.stage {
            Stage::Imported => "imported",
            Stage::Functional => "functional",
        }
    }

    /// Nodes of the main graph.
    #[getter]
    fn nodes(&self) -> usize {
        self.program.graph().order.len()
    }

    /// The nesting of arguments and results, as PyTorch's JSON.
    #[getter]
    fn pytree(&self) -> Option<(String, String)> {
        self.program.pytree.as_ref().map(|(i, o)| (i.to_string(), o.to_string()))
    }

    #[getter]
    fn forward_args(&self) -> Vec<String> {
        self.program.forward_args.iter().map(|n| n.to_string()).collect()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.program.notes.clone()
    }

    #[getter]
    fn input_names(&self) -> Vec<String> {
        self.names()
    }

    /// Inputs, outputs and state.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>)> {
        let d = py.detach(|| restride::describe(&self.program));
        Ok((described(py, &d.inputs)?, described(py, &d.outputs)?, described(py, &d.state)?))
    }

    /// The sample inputs in the file, on memory of their own.
    fn samples<'py>(&self, py: Python<'py>, like: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(samples) = Inputs::from_samples(&self.program).transpose().or_raise()? else { return Ok(None) };
        let like = Like::of(like)?;
        samples.values.iter().map(|v| value(py, v, &like)).collect::<PyResult<_>>().map(Some)
    }

    /// Inputs drawn from a seed.
    fn random_inputs<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        like: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let drawn = restride::random_inputs(&self.program, seed).or_raise()?;
        let like = Like::of(like)?;
        drawn.values.iter().map(|v| value(py, v, &like)).collect()
    }

    /// The program as text.
    fn text(&self) -> String {
        restride::text::print(&self.program)
    }

    /// The program in PyTorch's operators, as text.
    fn written_text(&self) -> PyResult<String> {
        Ok(restride::text::print(&restride::written(&self.program).or_raise()?))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| restride::save(&self.program, &path)).or_raise()
    }

    /// The bytes of a `.pt2`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| restride::save_bytes(&self.program)).or_raise()?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (inputs=None, *, portable=false, views=false))]
    fn functionalize(
        &self,
        py: Python<'_>,
        inputs: Option<Vec<Bound<'_, PyAny>>>,
        portable: bool,
        views: bool,
    ) -> PyResult<Program> {
        let (compiled, _) = self.functional(inputs)?;
        let made = py.detach(|| match (portable, views) {
            (true, _) => restride::portable(compiled.functional()),
            (_, true) => compiled.with_views(ViewOptions { slices: false }),
            _ => Ok(compiled.functional().clone()),
        });
        made.or_raise().map(Program::new)
    }

    #[pyo3(signature = (inputs=None, *, views=false))]
    fn reinplace(&self, py: Python<'_>, inputs: Option<Vec<Bound<'_, PyAny>>>, views: bool) -> PyResult<Program> {
        let (compiled, _) = self.functional(inputs)?;
        let made =
            py.detach(|| if views { compiled.with_views(ViewOptions::default()) } else { compiled.reinplaced() });
        made.or_raise().map(Program::new)
    }

    /// The joint program of forward and backward, or with an optimizer the training step.
    #[pyo3(signature = (inputs=None, *, loss=None, wrt=None, max_trips=None, keep_values=None, optimizer_name=None, options=None))]
    fn grad(
        &self,
        py: Python<'_>,
        inputs: Option<Vec<Bound<'_, PyAny>>>,
        loss: Option<usize>,
        wrt: Option<Vec<String>>,
        max_trips: Option<u64>,
        keep_values: Option<Bound<'_, PyAny>>,
        optimizer_name: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Program> {
        let (compiled, inputs) = self.functional(inputs)?;
        let how = GradOptions { loss: Loss::Output(loss.unwrap_or(0)), wrt, max_trips };
        let keep = keep(keep_values)?;
        let none = PyDict::new(py);
        let chosen = optimizer_name.map(|n| optimizer(n, options.unwrap_or(&none))).transpose()?;
        let made = py.detach(|| {
            let made = match chosen {
                Some(o) => compiled.train(&how, &|step, parameter| o.update(step, parameter))?,
                None => compiled.grad(&how)?,
            };
            Ok::<_, Error>(compiled.keep(&made, &how, keep, inputs.as_ref())?.program)
        });
        made.or_raise().map(Program::new)
    }

    #[pyo3(signature = (**options))]
    fn compile(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Compiled> {
        let none = PyDict::new(py);
        let mut named = Named::new(options.unwrap_or(&none));
        let (how, threads) = compile_options(&mut named)?;
        named.end()?;
        Ok(Compiled::new(self.program.clone(), how, threads))
    }

    /// Runs the program with PyTorch's true aliasing, without compiling it.
    #[pyo3(signature = (objects, like, seed=0))]
    fn interpret<'py>(
        &self,
        py: Python<'py>,
        objects: Vec<Bound<'py, PyAny>>,
        like: &Bound<'py, PyAny>,
        seed: u64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let like = Like::of(like)?;
        let given = inputs(&objects, &ExpectedInput::all(&self.program))?;
        let options = restride::RunOptions { seed, ..restride::RunOptions::default() };
        let outputs = py.detach(|| {
            let mut state = restride::State::new(&self.program)?;
            as_rank(|| restride::interpret(&self.program, &given, &mut state, &options))
        });
        outputs.or_raise()?.values.iter().map(|v| value(py, v, &like)).collect()
    }

    /// Every stage on the same inputs, bit for bit: JSON, and the first difference.
    #[pyo3(signature = (objects=None))]
    fn verify(&self, py: Python<'_>, objects: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<(String, Option<String>)> {
        let given = match objects {
            Some(objects) => inputs(&objects, &ExpectedInput::all(&self.program))?,
            None => match Inputs::from_samples(&self.program) {
                Some(samples) => samples.or_raise()?,
                None => return Err(crate::errors::inputs_error("the program has no sample inputs: pass inputs")),
            },
        };
        let options = restride::RunOptions::default();
        let verdict =
            py.detach(|| as_rank(|| restride::verify(&self.program, &given, &options, &CompileOptions::default())));
        let verdict = verdict.or_raise()?;
        Ok((restride_cli::verdict_json(&verdict).to_string(), verdict.fault()))
    }
}
