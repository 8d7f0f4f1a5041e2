//! Several programs of one archive over one state.

use crate::arguments::{Out, text};
use crate::compiled::{compile_options, restride_compile_options};
use crate::dlpack::{DLManagedTensorVersioned, give};
use crate::handle::{Opaque, create, destroy, own};
use crate::instance::{bind_state, state_tensor};
use crate::outputs::{outputs_handle, restride_outputs};
use crate::program::{
    open_options, program_handle, restride_open_options, restride_program, restride_strings, strings,
};
use crate::status::{CallError, CallResult, call, restride_kind, restride_status};
use crate::tensors::{restride_tensor, tensors};
use restride::{Compiled, Methods, RunOptions};
use std::ffi::c_char;
use std::path::Path;
use std::ptr;

/// The programs of one archive (`prefill`, `decode`) over one state and one arena: the next one reads the buffers that one writes. One
/// thread at a time may use them, any thread; a second one gets RESTRIDE_KIND_BUSY.
pub struct restride_methods {
    _opaque: [u8; 0],
}

/// Methods, and how they run.
pub struct MethodsValue {
    methods: Methods,
    run: RunOptions,
}

impl Opaque for restride_methods {
    type Value = MethodsValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"rmethods");
    const NAME: &'static str = "restride_methods";
}

fn method<'m>(methods: &'m Methods, name: &str) -> CallResult<&'m Compiled> {
    methods.compiled(name).ok_or_else(|| {
        let have = methods.names().collect::<Vec<_>>().join(", ");
        CallError::new(restride_kind::Inputs, format!("no program is called {name:?}; the archive has {have}"))
    })
}

/// Opens and compiles every model of an archive, over one state. `path` is UTF-8; `options` and `compile` may be NULL;
/// `options->model` is not used. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_open(
    path: *const c_char,
    options: *const restride_open_options,
    compile: *const restride_compile_options,
    methods: *mut *mut restride_methods,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(methods, ptr::null_mut(), "methods")?;
        let (how, run) = compile_options(compile)?;
        let opened = Methods::open(Path::new(text(path, "path")?), &open_options(options)?, &how)?;
        out.set(create::<restride_methods>(MethodsValue { methods: opened, run }));
        Ok(())
    })
}

/// The names of the methods, in alphabetical order. Threads: one at a time for the methods.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_names(
    methods: *mut restride_methods,
    names: *mut *mut restride_strings,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(names, ptr::null_mut(), "names")?;
        out.set(strings(own(methods, "methods")?.methods.names()));
        Ok(())
    })
}

/// The program of a method, without mutation: to describe it. Threads: one at a time for the methods.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_program(
    methods: *mut restride_methods,
    name: *const c_char,
    program: *mut *mut restride_program,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(program, ptr::null_mut(), "program")?;
        let name = text(name, "name")?;
        let handle = own(methods, "methods")?;
        out.set(program_handle(method(&handle.methods, name)?.functional().clone()));
        Ok(())
    })
}

/// Binds memory of the caller to tensors of the common state, as restride_instance_bind_state. The memory must stay until the methods
/// are freed or the state is bound elsewhere. Threads: one at a time for the methods.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_bind_state(
    methods: *mut restride_methods,
    state: *const restride_tensor,
    count: usize,
    contents: u32,
) -> *mut restride_status {
    call(|| {
        let mut handle = own(methods, "methods")?;
        let given = tensors(state, count)?;
        let mut bound = handle.methods.state().clone();
        bind_state(&mut bound, &given, contents)?;
        handle.methods.set_state(bound);
        Ok(())
    })
}

/// A tensor of the common state by its name, without a copy, as restride_instance_state. Threads: one at a time for the methods.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_state(
    methods: *mut restride_methods,
    name: *const c_char,
    tensor: *mut *mut DLManagedTensorVersioned,
) -> *mut restride_status {
    call(|| {
        let out = Out::new(tensor, ptr::null_mut(), "tensor")?;
        let name = text(name, "name")?;
        let handle = own(methods, "methods")?;
        out.set(give(state_tensor(handle.methods.state(), name)?)?);
        Ok(())
    })
}

/// Runs a method once, as restride_instance_run. Threads: one at a time for the methods.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_run(
    methods: *mut restride_methods,
    name: *const c_char,
    inputs: *const restride_tensor,
    count: usize,
    outputs: *mut *mut restride_outputs,
) -> *mut restride_status {
    call(|| {
        let out = match outputs.is_null() {
            true => None,
            false => Some(Out::new(outputs, ptr::null_mut(), "outputs")?),
        };
        let name = text(name, "name")?;
        let mut handle = own(methods, "methods")?;
        let compiled = method(&handle.methods, name)?.clone();
        let given = tensors(inputs, count)?;
        let inputs = given.inputs(compiled.functional())?;
        let run = handle.run.clone();
        let results = handle.methods.run(name, &inputs, &run)?;
        given.keep();
        if let Some(out) = out {
            out.set(outputs_handle(compiled.functional(), &results));
        }
        Ok(())
    })
}

/// Frees methods with their state. NULL is allowed. Threads: no other thread may be using the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_methods_free(methods: *mut restride_methods) {
    destroy(methods);
}
