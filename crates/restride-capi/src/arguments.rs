//! Arguments of C, checked as far as C allows.

use crate::status::{CallError, CallResult};
use std::ffi::{CStr, CString, c_char};

/// A text for C; bytes that are NUL are left out.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| {
        let bytes: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
        CString::new(bytes).unwrap_or_default()
    })
}

/// A text of the caller.
pub(crate) fn text<'a>(text: *const c_char, what: &str) -> CallResult<&'a str> {
    optional_text(text, what)?.ok_or_else(|| CallError::argument(format!("{what} is NULL")))
}

/// A text of the caller, or NULL.
pub(crate) fn optional_text<'a>(text: *const c_char, what: &str) -> CallResult<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the header asks for a text that ends with NUL and lives as long as the call.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| CallError::argument(format!("{what} is no UTF-8")))
}

/// Elements of the caller.
pub(crate) fn slice<'a, T>(start: *const T, count: usize, what: &str) -> CallResult<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let bytes = count.checked_mul(size_of::<T>()).filter(|n| isize::try_from(*n).is_ok());
    if bytes.is_none() {
        return Err(CallError::argument(format!("{what} has {count} elements, more than memory can hold")));
    }
    pointer(start, what)?;
    // SAFETY: the header asks for that many elements that live as long as the call; NULL, alignment and length are checked above.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// Refuses a pointer that nothing of the type can be at.
fn pointer<T>(start: *const T, what: &str) -> CallResult<()> {
    match (start.is_null(), start.is_aligned()) {
        (true, _) => Err(CallError::argument(format!("{what} is NULL"))),
        (_, false) => Err(CallError::argument(format!("{what} is not aligned"))),
        _ => Ok(()),
    }
}

/// A struct of the caller, or the default for NULL.
pub(crate) fn options<T: Sized + Copy>(given: *const T, default: T, size: impl Fn(&T) -> usize) -> CallResult<T> {
    if given.is_null() {
        return Ok(default);
    }
    pointer(given, "options")?;
    // SAFETY: the header asks for an initialised struct, all of whose fields are plain numbers and pointers.
    let given = unsafe { *given };
    if size(&given) != size_of::<T>() {
        let what = "options.size is not the size of the struct: initialise options with their _init function";
        return Err(CallError::argument(what));
    }
    Ok(given)
}

/// A flag of the caller: 0 or 1.
pub(crate) fn flag(value: u32, what: &str) -> CallResult<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(CallError::argument(format!("{what} is {value}; it takes 0 or 1"))),
    }
}

/// Where a function leaves a result: refused if NULL.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place of the caller, which gets `empty` for the case of an error.
    pub(crate) fn new(place: *mut T, empty: T, what: &str) -> CallResult<Out<T>> {
        pointer(place.cast_const(), what)?;
        let out = Out(place);
        out.set(empty);
        Ok(out)
    }

    pub(crate) fn set(&self, value: T) {
        // SAFETY: the header asks for a writable place of this type; NULL and alignment were checked by `new`.
        unsafe { self.0.write(value) }
    }
}

/// Writes a struct's defaults, unless its pointer is null.
pub(crate) fn initialise<T>(place: *mut T, value: T) {
    if let Ok(out) = Out::new(place, value, "options") {
        let _ = out;
    }
}
