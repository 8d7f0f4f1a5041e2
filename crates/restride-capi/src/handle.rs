//! Handles: what an opaque pointer of the header points to.
//!
//! A handle is a header of its own with a magic word and a count of users; the value is behind it. Freeing clears the magic word
//! first, so that a handle that was freed, or one of another type, is told apart as long as its memory has not been given to
//! somebody else. Two threads that use a handle at the same time, where only one may, get an error instead of a race.

use crate::status::{CallError, CallResult, quiet, restride_kind};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// An opaque type of the header, and the value behind its handles.
pub(crate) trait Opaque: Sized {
    /// What a handle holds.
    type Value: Send + 'static;
    /// Tells handles of this type from others.
    const MAGIC: u64;
    /// The type's name in the header.
    const NAME: &'static str;
}

/// The magic word of a handle that was freed.
const FREED: u64 = u64::from_le_bytes(*b"r freed\0");

/// [`HandleHead::users`] while one caller uses the handle alone.
const ALONE: usize = usize::MAX;

#[repr(C)]
struct HandleHead {
    /// Allocators keep their lists in the first words of free memory; the magic word stays readable behind them.
    _spare: [u64; 2],
    magic: AtomicU64,
    users: AtomicUsize,
    value: *mut (),
}

/// A new handle.
pub(crate) fn create<H: Opaque>(value: H::Value) -> *mut H {
    let value = Box::into_raw(Box::new(value)).cast::<()>();
    let head = HandleHead { _spare: [0; 2], magic: AtomicU64::new(H::MAGIC), users: AtomicUsize::new(0), value };
    Box::into_raw(Box::new(head)).cast::<H>()
}

/// The head of a handle that passes all checks that C allows.
fn head<'h, H: Opaque>(handle: *const H, what: &str) -> CallResult<&'h HandleHead> {
    if handle.is_null() {
        return Err(CallError::argument(format!("{what} is NULL; a {} is needed", H::NAME)));
    }
    let head = handle.cast::<HandleHead>();
    if !head.is_aligned() {
        return Err(CallError::argument(format!("{what} is no {}: its address is not aligned", H::NAME)));
    }
    // SAFETY: the caller of the API promises a handle of this library. For one that was freed this reads free memory, which is
    // the only way to tell; the header says that such a call is an error of the caller.
    let head = unsafe { &*head };
    match head.magic.load(Ordering::Acquire) {
        magic if magic == H::MAGIC => Ok(head),
        FREED => Err(CallError::argument(format!("{what} was freed"))),
        _ => Err(CallError::argument(format!("{what} is no {}", H::NAME))),
    }
}

fn busy<T>(what: &str) -> CallResult<T> {
    Err(CallError::new(restride_kind::Busy, format!("{what} is in use by another thread")))
}

/// A handle that several callers read.
pub(crate) struct SharedHandle<'h, H: Opaque> {
    head: &'h HandleHead,
    value: &'h H::Value,
}

impl<H: Opaque> Deref for SharedHandle<'_, H> {
    type Target = H::Value;
    fn deref(&self) -> &H::Value {
        self.value
    }
}

impl<H: Opaque> Drop for SharedHandle<'_, H> {
    fn drop(&mut self) {
        self.head.users.fetch_sub(1, Ordering::Release);
    }
}

/// The value of a handle, beside other readers.
pub(crate) fn shared<'h, H: Opaque>(handle: *const H, what: &str) -> CallResult<SharedHandle<'h, H>>
where
    H::Value: Sync,
{
    let head = head(handle, what)?;
    let step = |users: usize| (users < ALONE - 1).then_some(users + 1);
    if head.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, step).is_err() {
        return busy(what);
    }
    // SAFETY: `create` made the value of this type, and no caller has it exclusively while the count of users includes this reader.
    let value = unsafe { &*head.value.cast::<H::Value>() };
    Ok(SharedHandle { head, value })
}

/// A handle that one caller uses.
pub(crate) struct OwnHandle<'h, H: Opaque> {
    head: &'h HandleHead,
    value: &'h mut H::Value,
}

impl<H: Opaque> Deref for OwnHandle<'_, H> {
    type Target = H::Value;
    fn deref(&self) -> &H::Value {
        self.value
    }
}

impl<H: Opaque> DerefMut for OwnHandle<'_, H> {
    fn deref_mut(&mut self) -> &mut H::Value {
        self.value
    }
}

impl<H: Opaque> Drop for OwnHandle<'_, H> {
    fn drop(&mut self) {
        self.head.users.store(0, Ordering::Release);
    }
}

fn lock<'h, H: Opaque>(handle: *const H, what: &str) -> CallResult<&'h HandleHead> {
    let head = head(handle, what)?;
    match head.users.compare_exchange(0, ALONE, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(head),
        Err(_) => busy(what),
    }
}

/// The value of a handle, for this caller alone.
pub(crate) fn own<'h, H: Opaque>(handle: *const H, what: &str) -> CallResult<OwnHandle<'h, H>> {
    let head = lock(handle, what)?;
    // SAFETY: `create` made the value of this type, and the count of users keeps all others away.
    let value = unsafe { &mut *head.value.cast::<H::Value>() };
    Ok(OwnHandle { head, value })
}

/// Frees a handle and gives its value.
pub(crate) fn take<H: Opaque>(handle: *mut H, what: &str) -> CallResult<H::Value> {
    let head = lock(handle, what)?;
    head.magic.store(FREED, Ordering::Release);
    let value = head.value.cast::<H::Value>();
    // SAFETY: `create` made both boxes, and the count of users, which stays as it is, keeps all others away.
    unsafe {
        drop(Box::from_raw(handle.cast::<HandleHead>()));
        Ok(*Box::from_raw(value))
    }
}

/// Frees a handle. One that is NULL, freed, of another type or in use stays as it is.
pub(crate) fn destroy<H: Opaque>(handle: *mut H) {
    quiet((), || take(handle, "the handle").map(drop));
}
