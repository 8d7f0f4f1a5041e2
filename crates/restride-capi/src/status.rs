//! The status of a call, and the boundary that no panic crosses.

use crate::arguments::c_string;
use crate::handle::{Opaque, create, destroy, shared};
use restride::{Error, ErrorKind};
use std::any::Any;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// What kind of error a status tells.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_kind {
    /// No error: the kind of a NULL status.
    Ok = 0,
    /// An argument is NULL, out of range, no UTF-8, or a handle that was freed or is of another type.
    Argument = 1,
    /// A file is damaged, missing, or of another format.
    File = 2,
    /// A program breaks a rule of the intermediate representation.
    Invalid = 3,
    /// PyTorch itself refuses the program, or refuses these inputs.
    Program = 4,
    /// restride does not support a feature of the program.
    Unsupported = 5,
    /// A program asks for more than its limits allow.
    Limit = 6,
    /// Tensors do not fit the program: names, element types, sizes, strides, shared memory.
    Inputs = 7,
    /// A checker rejects a decision of a pass: a bug in restride.
    Check = 8,
    /// Another thread is using the handle.
    Busy = 9,
    /// A panic inside of restride: a bug. The handle of the call may be lost for further use; free it.
    Panic = 10,
}

/// Why a call failed. NULL is success; any other status belongs to the caller, who frees it with restride_status_free.
/// Immutable: any thread may read it.
pub struct restride_status {
    _opaque: [u8; 0],
}

/// The texts of a status.
pub struct StatusValue {
    kind: restride_kind,
    text: CString,
    what: CString,
    node: Option<CString>,
    source: Option<CString>,
    code: Option<CString>,
    help: Option<CString>,
}

impl Opaque for restride_status {
    type Value = StatusValue;
    const MAGIC: u64 = u64::from_le_bytes(*b"rstatus\0");
    const NAME: &'static str = "restride_status";
}

/// An error on its way to a status.
#[derive(Debug)]
pub(crate) struct CallError {
    kind: restride_kind,
    error: Box<Error>,
}

pub(crate) type CallResult<T> = Result<T, CallError>;

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        let kind = match error.kind {
            ErrorKind::File => restride_kind::File,
            ErrorKind::Invalid => restride_kind::Invalid,
            ErrorKind::Program => restride_kind::Program,
            ErrorKind::Unsupported => restride_kind::Unsupported,
            ErrorKind::Limit => restride_kind::Limit,
            ErrorKind::Inputs => restride_kind::Inputs,
            ErrorKind::Check => restride_kind::Check,
        };
        CallError { kind, error: Box::new(error) }
    }
}

impl CallError {
    pub(crate) fn new(kind: restride_kind, what: impl Into<String>) -> CallError {
        CallError { kind, error: Box::new(Error::new(ErrorKind::Inputs, what)) }
    }

    /// An argument that cannot be used.
    pub(crate) fn argument(what: impl Into<String>) -> CallError {
        CallError::new(restride_kind::Argument, what)
    }

    fn panic(payload: &(dyn Any + Send)) -> CallError {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        CallError::new(restride_kind::Panic, format!("a bug in restride: {text}"))
    }

    fn into_status(self) -> *mut restride_status {
        let optional = |s: Option<&str>| s.map(c_string);
        let e = &self.error;
        create::<restride_status>(StatusValue {
            kind: self.kind,
            text: c_string(&e.to_string()),
            what: c_string(&e.what),
            node: optional(e.node.as_deref()),
            source: optional(e.source.as_deref()),
            code: optional(e.code.as_deref()),
            help: optional(e.help.as_deref()),
        })
    }
}

/// Runs the body of a function of the API. No panic leaves it.
pub(crate) fn call(body: impl FnOnce() -> CallResult<()>) -> *mut restride_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(e)) => e.into_status(),
        Err(payload) => CallError::panic(&*payload).into_status(),
    }
}

/// Runs a body that tells nothing of its failure.
pub(crate) fn quiet<T>(otherwise: T, body: impl FnOnce() -> CallResult<T>) -> T {
    catch_unwind(AssertUnwindSafe(body)).ok().and_then(Result::ok).unwrap_or(otherwise)
}

fn text_of(status: *const restride_status, get: impl FnOnce(&StatusValue) -> Option<&CString>) -> *const c_char {
    if status.is_null() {
        return ptr::null();
    }
    quiet(ptr::null(), || Ok(get(&*shared(status, "status")?).map_or(ptr::null(), |s| s.as_ptr())))
}

/// The kind of a status: RESTRIDE_KIND_OK for NULL, RESTRIDE_KIND_ARGUMENT for what is no status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_kind(status: *const restride_status) -> restride_kind {
    if status.is_null() {
        return restride_kind::Ok;
    }
    quiet(restride_kind::Argument, || Ok(shared(status, "status")?.kind))
}

/// The whole error on one line: what is wrong, at which node and source line, what to do. The text lives as long as the status;
/// NULL for a NULL status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_text(status: *const restride_status) -> *const c_char {
    text_of(status, |s| Some(&s.text))
}

/// What is wrong, without place and advice. Lives as long as the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_message(status: *const restride_status) -> *const c_char {
    text_of(status, |s| Some(&s.what))
}

/// The node at which it is wrong, as `%name = op`; NULL where no node is to blame. Lives as long as the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_node(status: *const restride_status) -> *const c_char {
    text_of(status, |s| s.node.as_ref())
}

/// The line of the model's source, as `file.py:12`; NULL where the file records none. Lives as long as the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_source(status: *const restride_status) -> *const c_char {
    text_of(status, |s| s.source.as_ref())
}

/// The text of that line; NULL where the file records none. Lives as long as the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_code(status: *const restride_status) -> *const c_char {
    text_of(status, |s| s.code.as_ref())
}

/// What to do about it; NULL without advice. Lives as long as the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_help(status: *const restride_status) -> *const c_char {
    text_of(status, |s| s.help.as_ref())
}

/// Frees a status. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_status_free(status: *mut restride_status) {
    destroy(status);
}
