//! Compiled programs, and the version of the library.

use crate::arguments::{Out, c_string, flag, initialise};
use crate::handle::{Opaque, create, destroy, shared};
use crate::json::plan_json;
use crate::program::restride_program;
use crate::status::{CallError, CallResult, call, quiet, restride_status};
use crate::tensors::{restride_tensor, tensors};
use restride::{CompileOptions, Compiled, FuseOptions, Inputs, RunOptions};
use std::ffi::{CString, c_char};
use std::ptr;

/// Number of the ABI. A library with the same number has all functions and structs of this header, unchanged.
pub const RESTRIDE_ABI: u32 = 1;

/// The library's RESTRIDE_ABI. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_abi() -> u32 {
    RESTRIDE_ABI
}

/// The library's version, as `0.1.0`. Lives forever. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Frees a text that a function of this header gave as `char **`. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_string_free(string: *mut c_char) {
    quiet((), || {
        if !string.is_null() {
            // SAFETY: the header asks for a text of this library, which made it by `CString::into_raw`.
            drop(unsafe { CString::from_raw(string) });
        }
        Ok(())
    });
}

/// How to compile, and how its runs go. Initialise with restride_compile_options_init.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct restride_compile_options {
    /// sizeof(restride_compile_options).
    pub size: usize,
    /// The most bytes of the arena; 0 is no limit. Cheap values are recomputed until it fits; results stay the same. A budget
    /// that cannot be met is an error with the smallest one that can.
    pub memory_budget: i64,
    /// Seed of random operators. Each run of an instance draws anew.
    pub seed: u64,
    /// Threads of a run, at least 1. Results do not depend on it.
    pub threads: u32,
    /// 1 checks every decision of the compiler by checkers of its own, 0 does not. A plan in a file is always checked.
    pub check: u32,
    /// The most operators that run as one step: 0 leaves it to the compiler, 1 makes every operator a step of its own.
    pub fusion: u32,
    /// 1 asks for the same bits in every run with the same seed, whatever the threads and layouts, as
    /// torch.use_deterministic_algorithms does. With 0 a later version may choose faster kernels; this one gives the same bits.
    pub determinism: u32,
}

fn compile_defaults() -> restride_compile_options {
    restride_compile_options {
        size: size_of::<restride_compile_options>(),
        memory_budget: 0,
        seed: 0,
        threads: 1,
        check: 1,
        fusion: 0,
        determinism: 0,
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_compile_options_init(options: *mut restride_compile_options) {
    quiet((), || {
        initialise(options, compile_defaults());
        Ok(())
    });
}

/// More threads than any machine has.
const MOST_THREADS: u32 = 1 << 12;

pub(crate) fn compile_options(given: *const restride_compile_options) -> CallResult<(CompileOptions, RunOptions)> {
    let given = crate::arguments::options(given, compile_defaults(), |o| o.size)?;
    // Every kernel is deterministic, so that nothing hangs on it yet.
    flag(given.determinism, "options.determinism")?;
    if given.memory_budget < 0 {
        return Err(CallError::argument(format!("options.memory_budget is {}", given.memory_budget)));
    }
    if !(1..=MOST_THREADS).contains(&given.threads) {
        let what = format!("options.threads is {}; it takes 1 to {MOST_THREADS}", given.threads);
        return Err(CallError::argument(what));
    }
    let fuse = match given.fusion {
        0 => FuseOptions::default(),
        most => FuseOptions { most: most as usize, ..FuseOptions::default() },
    };
    let compile = CompileOptions {
        fuse,
        check: flag(given.check, "options.check")?,
        budget: (given.memory_budget > 0).then_some(given.memory_budget),
        ..CompileOptions::default()
    };
    let run = RunOptions { seed: given.seed, threads: given.threads as usize, ..RunOptions::default() };
    Ok((compile, run))
}

/// A compiled program. Immutable: any number of threads may use one, each with its own instance.
pub struct restride_compiled {
    _opaque: [u8; 0],
}

/// A compiled program, and how its instances run.
pub struct CompiledValue {
    pub(crate) compiled: Compiled,
    pub(crate) run: RunOptions,
}

impl Opaque for restride_compiled {
    type Value = CompiledValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"rcompile");
    const NAME: &'static str = "restride_compiled";
}

/// Compiles a program.
///
/// `inputs` are tensors like those of later runs. They tell which inputs share memory, and strides other than the file's; their
/// elements are not read, and they are not used after the call. With `count` 0 the sample inputs in the file stand for them, if it has
/// any. Sizes that are symbols are placed, planned and checked in the first run with these sizes. `options` may be NULL.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_compile(
    program: *const restride_program,
    inputs: *const restride_tensor,
    count: usize,
    options: *const restride_compile_options,
    compiled: *mut *mut restride_compiled,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(compiled, ptr::null_mut(), "compiled")?;
        let program = shared(program, "program")?.program.clone();
        let (how, run) = compile_options(options)?;
        let given = tensors(inputs, count)?;
        let inputs = match count {
            0 => Inputs::from_samples(&program).transpose()?,
            _ => Some(given.inputs(&program)?),
        };
        let made = Compiled::new(program, inputs.as_ref(), &how)?;
        given.keep();
        out.set(create::<restride_compiled>(CompiledValue { compiled: made, run }));
        Ok(())
    })
}

/// The memory plan as JSON, as `restride plan --json` writes it: offset, bytes, steps and values of every buffer. With `count` 0 the
/// sample inputs in the file tell sizes, or the declared sizes do. The caller frees the text with restride_string_free.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_compiled_plan_json(
    compiled: *const restride_compiled,
    inputs: *const restride_tensor,
    count: usize,
    json: *mut *mut c_char,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(json, ptr::null_mut(), "json")?;
        let compiled = shared(compiled, "compiled")?;
        let functional = compiled.compiled.functional();
        let given = tensors(inputs, count)?;
        let inputs = match (count, Inputs::from_samples(functional).transpose()?) {
            (0, Some(samples)) => samples,
            (0, None) => restride::declared_inputs(functional)?,
            _ => given.inputs(functional)?,
        };
        let text = plan_json(&compiled.compiled.prepare(&inputs)?.plan_table());
        given.keep();
        out.set(c_string(&text).into_raw());
        Ok(())
    })
}

/// Frees a compiled program. Its instances live on. NULL is allowed. Threads: no other thread may be using the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_compiled_free(compiled: *mut restride_compiled) {
    destroy(compiled);
}
