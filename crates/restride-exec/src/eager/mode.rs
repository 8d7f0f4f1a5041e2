//! Settings of a thread's calls: recording, the guard of saved values, the seed of draws.

use crate::interp::RunOptions;
use restride_ir::RngKey;
use std::cell::Cell;

/// How a value that the gradient needs is guarded against being written over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Saved {
    /// An error in the backward pass if some cell of the value was written; writes elsewhere in its memory do not matter.
    #[default]
    Regions,
    /// PyTorch's strictness: an error if anything was written that shares memory with a value that PyTorch keeps, whether the
    /// rule here reads it or not, and PyTorch's refusals of views. Everything else is copied before it is written over.
    Strict,
    /// Values are copied before they are written over, once each.
    CloneOnWrite,
}

#[derive(Clone, Copy)]
struct GradMode {
    grad: bool,
    saved: Saved,
}

thread_local! {
    static MODE: Cell<GradMode> = const { Cell::new(GradMode { grad: true, saved: Saved::Regions }) };
    static DRAWS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static THREADS: Cell<usize> = const { Cell::new(1) };
}

/// Restores the setting before it when dropped.
#[must_use = "the setting ends when the guard is dropped"]
pub struct GradModeGuard(GradMode);

impl Drop for GradModeGuard {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

fn set(change: impl FnOnce(&mut GradMode)) -> GradModeGuard {
    let before = MODE.get();
    let mut mode = before;
    change(&mut mode);
    MODE.set(mode);
    GradModeGuard(before)
}

/// Calls are not recorded as long as the guard lives.
pub fn no_grad() -> GradModeGuard {
    set_grad_enabled(false)
}

/// Calls are recorded as long as the guard lives.
pub fn enable_grad() -> GradModeGuard {
    set_grad_enabled(true)
}

/// Whether calls are recorded, as long as the guard lives.
pub fn set_grad_enabled(on: bool) -> GradModeGuard {
    set(|m| m.grad = on)
}

/// Whether calls are recorded.
pub fn is_grad_enabled() -> bool {
    MODE.get().grad
}

/// How values that are saved while the guard lives are guarded.
pub fn saved_tensors(how: Saved) -> GradModeGuard {
    set(|m| m.saved = how)
}

pub(super) fn saved() -> Saved {
    MODE.get().saved
}

pub(super) fn strict() -> bool {
    saved() == Saved::Strict
}

/// Seeds the random operators of this thread.
pub fn manual_seed(seed: u64) {
    DRAWS.set((seed, 0));
}

/// The key of the next call's draws.
pub(super) fn next_key() -> RngKey {
    let (seed, call) = DRAWS.get();
    DRAWS.set((seed, call + 1));
    RngKey { seed, call, node: 0, iteration: 0 }
}

/// How many threads a kernel may use; results do not depend on it.
pub fn set_threads(threads: usize) {
    THREADS.set(threads.max(1));
}

pub(super) fn options() -> RunOptions {
    RunOptions { threads: THREADS.get(), ..RunOptions::default() }
}
