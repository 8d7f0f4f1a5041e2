//! Locks on the storages of a run: other accesses neither write, resize or free the storages that it uses, nor read those that it
//! writes.

use restride_ir::{Error, ErrorKind, Result};
use restride_tensor::{AccessError, RawTensor, Storage};

/// A storage that runs use.
struct LockedStorage {
    storage: Storage,
    write: bool,
    /// Where its bytes were when addresses were taken.
    address: *mut u8,
    /// How messages name the tensor.
    name: Name,
}

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Name {
    /// An input of the graph, by position.
    Input(usize),
    /// An output of the graph, by position.
    Output(usize),
}

/// The storages of a run, each once as soon as they are locked.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<LockedStorage>,
}

impl Locks {
    /// One more tensor that runs use.
    pub fn add(&mut self, t: &RawTensor, write: bool, name: Name) {
        let storage = t.storage().clone();
        self.held.push(LockedStorage { storage, write, address: std::ptr::null_mut(), name });
    }

    /// Locks all, and remembers where their bytes are: addresses may be taken now.
    ///
    /// # Errors
    /// A storage that is in use, or that is written and read-only, by the name that `named` gives.
    pub fn first(&mut self, named: &dyn Fn(Name) -> String) -> Result<Taken<'_>> {
        // The sort keeps the order of a storage's tensors: the first one names it.
        self.held.sort_by_key(|held| held.storage.id());
        self.held.dedup_by(|later, first| {
            let same = later.storage.same(&first.storage);
            first.write |= same && later.write;
            same
        });
        for at in 0..self.held.len() {
            let held = &mut self.held[at];
            if let Err(e) = held.storage.acquire(held.write) {
                let e = refused(e, &named(held.name));
                Taken { of: self, many: at };
                return Err(e);
            }
            held.address = held.storage.address();
        }
        Ok(Taken { many: self.held.len(), of: self })
    }

    /// Locks all again.
    ///
    /// # Errors
    /// As [`Locks::first`]; a storage whose bytes have moved.
    pub fn again(&self, named: &dyn Fn(Name) -> String) -> Result<Taken<'_>> {
        let mut taken = Taken { of: self, many: 0 };
        for held in &self.held {
            held.storage.acquire(held.write).map_err(|e| refused(e, &named(held.name)))?;
            taken.many += 1;
            if held.storage.address() != held.address {
                let which = if matches!(held.name, Name::Input(_)) { "an input" } else { "an output" };
                let what = format!("{which} was resized since the session was made: {}", named(held.name));
                return Err(Error::new(ErrorKind::Inputs, what).help("make a new session for it"));
            }
        }
        Ok(taken)
    }
}

fn refused(e: AccessError, name: &str) -> Error {
    let error = Error::new(ErrorKind::Inputs, format!("{name} cannot be used: {e}"));
    match e {
        AccessError::ReadOnly => error.help("the program writes it: pass writable memory, or a copy"),
        _ => error.help("two runs cannot use memory at once that one of them writes"),
    }
}

/// Locks, until this is dropped.
pub(super) struct Taken<'l> {
    of: &'l Locks,
    many: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for held in &self.of.held[..self.many] {
            // SAFETY: acquired as this says, and ended once; who has a `Taken` uses the memory only while it lives.
            unsafe { held.storage.release(held.write) };
        }
    }
}
