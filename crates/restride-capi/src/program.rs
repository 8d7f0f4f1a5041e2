//! Programs: opened, described, transformed, saved.

use crate::arguments::{Out, c_string, flag, initialise, optional_text, options, slice, text};
use crate::dlpack::{DLDataType, DLManagedTensorVersioned, data_type, give};
use crate::handle::{Opaque, create, destroy, shared};
use crate::status::{CallError, CallResult, call, quiet, restride_status};
use restride::{
    Bytes, CompileOptions, Compiled, DeclaredSize, DescribedValue, Inputs, OpenOptions, Program, RunValue, ValueKind,
    ViewOptions,
};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// A program: what `torch.export.save` wrote, or what a transformation made of it. Immutable: any number of threads may use one.
pub struct restride_program {
    _opaque: [u8; 0],
}

/// A program, and its description once somebody asked for it.
pub struct ProgramValue {
    pub(crate) program: Program,
    described: OnceLock<DescribedProgram>,
}

impl Opaque for restride_program {
    type Value = ProgramValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"rprogram");
    const NAME: &'static str = "restride_program";
}

/// A handle for a program.
pub(crate) fn program_handle(program: Program) -> *mut restride_program {
    create::<restride_program>(ProgramValue { program, described: OnceLock::new() })
}

/// A list of texts. Immutable: any number of threads may use one.
pub struct restride_strings {
    _opaque: [u8; 0],
}

impl Opaque for restride_strings {
    type Value = Vec<CString>;
    const MAGIC: u64 = u64::from_le_bytes(*b"rstrings");
    const NAME: &'static str = "restride_strings";
}

/// A handle for a list of texts.
pub(crate) fn strings<'s>(all: impl Iterator<Item = &'s str>) -> *mut restride_strings {
    create::<restride_strings>(all.map(c_string).collect())
}

/// The number of texts; 0 for what is no list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_strings_count(strings: *const restride_strings) -> usize {
    quiet(0, || Ok(shared(strings, "strings")?.len()))
}

/// The text at a position; NULL past the end. Lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_strings_get(strings: *const restride_strings, index: usize) -> *const c_char {
    quiet(ptr::null(), || Ok(shared(strings, "strings")?.get(index).map_or(ptr::null(), |s| s.as_ptr())))
}

/// Frees a list. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_strings_free(strings: *mut restride_strings) {
    destroy(strings);
}

/// How to open a program. Initialise with restride_open_options_init.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct restride_open_options {
    /// sizeof(restride_open_options).
    pub size: usize,
    /// The model of an archive with several, UTF-8; NULL for the only one.
    pub model: *const c_char,
    /// A `.pt2` with the weights of a `.fx` text, UTF-8; NULL for none.
    pub weights: *const c_char,
    /// 1 reads files into memory instead of mapping them. A mapped file must stay as it is while programs of it are used.
    pub no_mmap: u32,
    /// 0.
    pub reserved: u32,
}

fn open_defaults() -> restride_open_options {
    restride_open_options {
        size: size_of::<restride_open_options>(),
        model: ptr::null(),
        weights: ptr::null(),
        no_mmap: 0,
        reserved: 0,
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_open_options_init(options: *mut restride_open_options) {
    quiet((), || {
        initialise(options, open_defaults());
        Ok(())
    });
}

pub(crate) fn open_options(given: *const restride_open_options) -> CallResult<OpenOptions> {
    let given = options(given, open_defaults(), |o| o.size)?;
    reserved(given.reserved)?;
    Ok(OpenOptions {
        model: optional_text(given.model, "options.model")?.map(str::to_string),
        weights: optional_text(given.weights, "options.weights")?.map(Into::into),
        no_mmap: flag(given.no_mmap, "options.no_mmap")?,
        ..OpenOptions::default()
    })
}

/// Refuses what a later version may give a meaning.
pub(crate) fn reserved(value: u32) -> CallResult<()> {
    if value == 0 { Ok(()) } else { Err(CallError::argument("options.reserved is not 0")) }
}

/// Opens a `.pt2` that `torch.export.save` wrote, or a `.fx` text. `path` is UTF-8, `options` may be NULL.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_open(
    path: *const c_char,
    options: *const restride_open_options,
    program: *mut *mut restride_program,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(program, ptr::null_mut(), "program")?;
        let opened = restride::open(Path::new(text(path, "path")?), &open_options(options)?)?;
        out.set(program_handle(opened));
        Ok(())
    })
}

/// Opens a program in memory: the bytes of a `.pt2`, or of a `.fx` text.
///
/// `borrow` 0 copies the bytes, which may go when the call returns. `borrow` 1 uses them where they are, weights included, without a
/// copy: they must stay as they are until the program and every handle made of it, and every tensor that these gave, are freed.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_open_bytes(
    bytes: *const u8,
    size: usize,
    borrow: u32,
    options: *const restride_open_options,
    program: *mut *mut restride_program,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(program, ptr::null_mut(), "program")?;
        let how = open_options(options)?;
        let given = slice(bytes, size, "bytes")?;
        let bytes = match flag(borrow, "borrow")? {
            false => Bytes::copy_of(given),
            // SAFETY: the header asks for bytes that stay as they are until all that uses them is freed.
            true => unsafe { Bytes::foreign(given.as_ptr(), given.len(), || {}) },
        };
        out.set(program_handle(restride::open_bytes(&bytes, &how)?));
        Ok(())
    })
}

/// The names of the models in an archive, for restride_open_options.model. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_models(
    path: *const c_char,
    options: *const restride_open_options,
    models: *mut *mut restride_strings,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(models, ptr::null_mut(), "models")?;
        let names = restride::models(Path::new(text(path, "path")?), &open_options(options)?)?;
        out.set(strings(names.iter().map(String::as_str)));
        Ok(())
    })
}

/// Frees a program. What was made of it lives on. NULL is allowed. Threads: no other thread may be using the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_program_free(program: *mut restride_program) {
    destroy(program);
}

/// Which of a program's values a description is about.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_role {
    /// User inputs, in order.
    Input = 0,
    /// User outputs (`output.I`), in order, then gradients (`grad.NAME`).
    Output = 1,
    /// Parameters, buffers and constants, by name.
    State = 2,
}

/// Kind of a described value.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_value_kind {
    /// A tensor.
    Tensor = 0,
    /// A number. As an input it is given as a tensor without dimensions: int64, float64 or bool.
    Number = 1,
    /// An input that was fixed at export. It may be left out.
    Fixed = 2,
    /// None, a text, a token or a custom object. As an output it has no tensor.
    Other = 3,
    /// A parameter.
    Parameter = 4,
    /// A buffer.
    Buffer = 5,
    /// A tensor constant.
    Constant = 6,
}

/// A size or stride of a described tensor. `min` equals `max` where it is known.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct restride_size {
    /// The number, or the expression over symbols, as the file has it.
    pub text: *const c_char,
    /// The least that it may be; INT64_MIN is unbounded.
    pub min: i64,
    /// The most that it may be; INT64_MAX is unbounded.
    pub max: i64,
}

/// What restride_program_describe tells. All pointers live as long as the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct restride_description {
    /// The name: an input's own, `output.I`, `grad.NAME`, or that of the state dict.
    pub name: *const c_char,
    /// Kind.
    pub kind: restride_value_kind,
    /// 1: a run writes it. 0: no run does. -1: not known before the program is compiled for inputs.
    pub mutated: i32,
    /// Element type of a tensor.
    pub dtype: DLDataType,
    /// Number of dimensions of a tensor.
    pub ndim: i32,
    /// Sizes: `ndim` of them.
    pub sizes: *const restride_size,
    /// Strides in elements: `ndim` of them.
    pub strides: *const restride_size,
    /// Bytes of the storage under a tensor of the state; 0 for others.
    pub storage_bytes: usize,
}

struct DescribedEntry {
    name: CString,
    sizes: Vec<restride_size>,
    strides: Vec<restride_size>,
    _texts: Vec<CString>,
    value: DescribedValue,
}

struct DescribedProgram([Vec<DescribedEntry>; 3]);

// SAFETY: the pointers in it point to texts that it owns and never changes.
unsafe impl Send for DescribedProgram {}
// SAFETY: as above.
unsafe impl Sync for DescribedProgram {}

fn entry(value: &DescribedValue) -> DescribedEntry {
    let mut texts = Vec::new();
    let mut sizes = |all: &[DeclaredSize]| {
        let one = |s: &DeclaredSize| {
            texts.push(c_string(&s.text));
            // The text is on the heap: it does not move when the vector grows.
            let text = texts.last().map_or(ptr::null(), |t| t.as_ptr());
            restride_size { text, min: s.min.unwrap_or(i64::MIN), max: s.max.unwrap_or(i64::MAX) }
        };
        all.iter().map(one).collect::<Vec<_>>()
    };
    let (own, strides) = (sizes(&value.sizes), sizes(&value.strides));
    DescribedEntry { name: c_string(&value.name), sizes: own, strides, _texts: texts, value: value.clone() }
}

impl ProgramValue {
    fn described(&self, role: u32) -> CallResult<&[DescribedEntry]> {
        let at = usize::try_from(role).unwrap_or(usize::MAX);
        let all = self.described.get_or_init(|| {
            let d = restride::describe(&self.program);
            DescribedProgram([&d.inputs, &d.outputs, &d.state].map(|l| l.iter().map(entry).collect()))
        });
        let found = all.0.get(at).map(Vec::as_slice);
        found.ok_or_else(|| CallError::argument(format!("role is {role}; it takes 0 (input), 1 (output) or 2 (state)")))
    }
}

/// The number of values in a role (restride_role). Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_program_count(
    program: *const restride_program,
    role: u32,
    count: *mut usize,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(count, 0, "count")?;
        out.set(shared(program, "program")?.described(role)?.len());
        Ok(())
    })
}

/// Describes the value at a position in a role (restride_role): name, element type, sizes and strides with their ranges, whether
/// a run writes it. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_program_describe(
    program: *const restride_program,
    role: u32,
    index: usize,
    description: *mut restride_description,
) -> *mut restride_status {
    call(|| {
        let empty = restride_description {
            name: ptr::null(),
            kind: restride_value_kind::Other,
            mutated: 0,
            dtype: DLDataType::default(),
            ndim: 0,
            sizes: ptr::null(),
            strides: ptr::null(),
            storage_bytes: 0,
        };
        let out = Out::new(description, empty, "description")?;
        let program = shared(program, "program")?;
        let all = program.described(role)?;
        let Some(found) = all.get(index) else {
            return Err(CallError::argument(format!("index is {index}; there are {}", all.len())));
        };
        out.set(restride_description {
            name: found.name.as_ptr(),
            kind: match found.value.kind {
                ValueKind::Tensor => restride_value_kind::Tensor,
                ValueKind::Number => restride_value_kind::Number,
                ValueKind::Fixed => restride_value_kind::Fixed,
                ValueKind::Other => restride_value_kind::Other,
                ValueKind::Parameter => restride_value_kind::Parameter,
                ValueKind::Buffer => restride_value_kind::Buffer,
                ValueKind::Constant => restride_value_kind::Constant,
            },
            mutated: found.value.mutated.map_or(-1, i32::from),
            dtype: found.value.dtype.map_or(DLDataType::default(), data_type),
            ndim: found.sizes.len() as i32,
            sizes: found.sizes.as_ptr(),
            strides: found.strides.as_ptr(),
            storage_bytes: found.value.bytes,
        });
        Ok(())
    })
}

/// The sample input that the file holds for the input at a position, as a tensor in memory of its own, which the caller frees with
/// its deleter. An error where the file holds none, or none that is a tensor. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_program_sample(
    program: *const restride_program,
    index: usize,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(tensor, ptr::null_mut(), "tensor")?;
        let program = shared(program, "program")?;
        let Some(samples) = Inputs::from_samples(&program.program).transpose()? else {
            return Err(CallError::argument("the program has no sample inputs"));
        };
        match samples.values.get(index) {
            Some(RunValue::Tensor(t)) => out.set(give(t)?),
            Some(_) => return Err(CallError::argument(format!("the sample input {index} is no tensor"))),
            None => return Err(CallError::argument(format!("index is {index}; there are {}", samples.values.len()))),
        }
        Ok(())
    })
}

/// Writes a program as a `.pt2` that `torch.export.load` takes. `path` is UTF-8. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_save(program: *const restride_program, path: *const c_char) -> *mut restride_status {
    call(|| {
        let program = shared(program, "program")?;
        restride::save(&program.program, Path::new(text(path, "path")?))?;
        Ok(())
    })
}

fn compiled(program: *const restride_program) -> CallResult<Compiled> {
    let program = shared(program, "program")?.program.clone();
    let samples = Inputs::from_samples(&program).transpose()?;
    Ok(Compiled::new(program, samples.as_ref(), &CompileOptions::default())?)
}

/// Makes the program without mutation: input and buffer mutations become declared outputs. Sample inputs in the file that share
/// memory are provided for. restride_save writes the result. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_functionalize(
    program: *const restride_program,
    functional: *mut *mut restride_program,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(functional, ptr::null_mut(), "functional")?;
        out.set(program_handle(compiled(program)?.functional().clone()));
        Ok(())
    })
}

/// Makes the program with in-place operators, and views, where they are right. `views` 1 overwrites nothing that has contents:
/// copies of views become views, the parts of a `cat` slices of new memory. restride_save writes the result; run it in PyTorch
/// under `torch.no_grad()`. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_reinplace(
    program: *const restride_program,
    views: u32,
    reinplaced: *mut *mut restride_program,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(reinplaced, ptr::null_mut(), "reinplaced")?;
        let views = flag(views, "views")?;
        let compiled = compiled(program)?;
        let made = if views { compiled.with_views(ViewOptions::default())? } else { compiled.reinplaced()? };
        out.set(program_handle(made));
        Ok(())
    })
}

/// The update of a training step.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_optimizer {
    /// None: the program gives gradients.
    None = 0,
    /// `torch.optim.SGD`.
    Sgd = 1,
    /// `torch.optim.Adam`.
    Adam = 2,
}

/// What to differentiate, and the optimizer. Initialise with restride_grad_options_init.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct restride_grad_options {
    /// sizeof(restride_grad_options).
    pub size: usize,
    /// Position of the loss among the user outputs.
    pub loss: usize,
    /// Names of parameters and user inputs to differentiate by, UTF-8; NULL for every parameter and floating user input.
    pub wrt: *const *const c_char,
    /// Number of these names.
    pub wrt_count: usize,
    /// The largest number of iterations of a `while_loop`; 0 where there is none.
    pub max_trips: u64,
    /// The optimizer (restride_optimizer). Its state becomes buffers of the program.
    pub optimizer: u32,
    /// SGD's Nesterov momentum: 0 or 1.
    pub nesterov: u32,
    /// Adam's largest average of squares: 0 or 1.
    pub amsgrad: u32,
    /// Weights decay by themselves, as in AdamW: 0 or 1.
    pub decoupled_weight_decay: u32,
    /// Up the gradient instead of down: 0 or 1.
    pub maximize: u32,
    /// 0.
    pub reserved: u32,
    /// Learning rate.
    pub lr: f64,
    /// L2 penalty.
    pub weight_decay: f64,
    /// SGD's momentum.
    pub momentum: f64,
    /// SGD's dampening of momentum.
    pub dampening: f64,
    /// Adam's first decay of averages.
    pub beta1: f64,
    /// Adam's second decay of averages.
    pub beta2: f64,
    /// Added to Adam's denominator.
    pub eps: f64,
}

fn grad_defaults() -> restride_grad_options {
    let (sgd, adam) = (restride::Sgd::default(), restride::Adam::default());
    restride_grad_options {
        size: size_of::<restride_grad_options>(),
        loss: 0,
        wrt: ptr::null(),
        wrt_count: 0,
        max_trips: 0,
        optimizer: restride_optimizer::None as u32,
        nesterov: 0,
        amsgrad: 0,
        decoupled_weight_decay: 0,
        maximize: 0,
        reserved: 0,
        lr: adam.lr,
        weight_decay: 0.0,
        momentum: sgd.momentum,
        dampening: sgd.dampening,
        beta1: adam.betas.0,
        beta2: adam.betas.1,
        eps: adam.eps,
    }
}

/// Writes the defaults: PyTorch's, and no optimizer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_grad_options_init(options: *mut restride_grad_options) {
    quiet((), || {
        initialise(options, grad_defaults());
        Ok(())
    });
}

fn optimizer(o: &restride_grad_options) -> CallResult<Option<restride::Optimizer>> {
    let maximize = flag(o.maximize, "options.maximize")?;
    let (nesterov, amsgrad) = (flag(o.nesterov, "options.nesterov")?, flag(o.amsgrad, "options.amsgrad")?);
    let decoupled_weight_decay = flag(o.decoupled_weight_decay, "options.decoupled_weight_decay")?;
    let (lr, weight_decay) = (o.lr, o.weight_decay);
    Ok(match o.optimizer {
        0 => None,
        1 => Some(restride::Optimizer::Sgd(restride::Sgd {
            lr,
            momentum: o.momentum,
            dampening: o.dampening,
            weight_decay,
            nesterov,
            maximize,
        })),
        2 => Some(restride::Optimizer::Adam(restride::Adam {
            lr,
            betas: (o.beta1, o.beta2),
            eps: o.eps,
            weight_decay,
            amsgrad,
            maximize,
            decoupled_weight_decay,
        })),
        other => {
            let what = format!("options.optimizer is {other}; it takes 0 (none), 1 (SGD) or 2 (Adam)");
            return Err(CallError::argument(what));
        }
    })
}

/// Makes forward and backward one program; with an optimizer, a whole training step, which updates parameters and optimizer state
/// in its own state at every run. `options` may be NULL. restride_save writes the result, restride_compile compiles it.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_grad(
    program: *const restride_program,
    options: *const restride_grad_options,
    joint: *mut *mut restride_program,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(joint, ptr::null_mut(), "joint")?;
        let given = crate::arguments::options(options, grad_defaults(), |o| o.size)?;
        reserved(given.reserved)?;
        let names = slice(given.wrt, given.wrt_count, "options.wrt")?;
        let names: Vec<String> =
            names.iter().map(|n| text(*n, "a name of options.wrt").map(str::to_string)).collect::<CallResult<_>>()?;
        let how = restride::GradOptions {
            loss: restride::Loss::Output(given.loss),
            wrt: (!given.wrt.is_null()).then_some(names),
            max_trips: (given.max_trips > 0).then_some(given.max_trips),
        };
        let optimizer = optimizer(&given)?;
        let compiled = compiled(program)?;
        let made = match optimizer {
            Some(o) => compiled.train(&how, &|step, parameter| o.update(step, parameter))?,
            None => compiled.grad(&how)?,
        };
        let samples = Inputs::from_samples(&made).transpose()?;
        let kept = compiled.keep(&made, &how, restride::Keep::Auto, samples.as_ref())?;
        out.set(program_handle(kept.program));
        Ok(())
    })
}
