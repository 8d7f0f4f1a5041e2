//! Threads that kernels share their work with: as many as were asked for, made once, and nothing allocated while they work.

use crate::support::scratch::Own;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Threads that wait for work. The thread that brings the work is one of them.
pub struct Pool {
    shared: Arc<PoolShared>,
    others: Vec<JoinHandle<()>>,
}

/// Work: calls for all numbers below `count`.
#[derive(Clone, Copy)]
struct Job {
    call: *const (dyn Fn(usize) + Sync),
    count: usize,
}
// SAFETY: any thread may make the call, and it lives until all threads have left it (see `PoolShared::run`).
unsafe impl Send for Job {}

#[derive(Default)]
struct PoolState {
    job: Option<Job>,
    /// Threads that wait for `work` in the system.
    sleeping: usize,
    /// Whether the thread that brought the job waits for `done` in the system.
    waiting: bool,
    stop: bool,
    panic: Option<Box<dyn Any + Send>>,
}

#[derive(Default)]
struct PoolShared {
    state: Mutex<PoolState>,
    work: Condvar,
    done: Condvar,
    /// Number of the job, told apart from the last one without the lock.
    epoch: AtomicU64,
    next: AtomicUsize,
    /// Threads of the pool at the job. Grows only under the lock while there is a job.
    running: AtomicUsize,
    busy: AtomicBool,
    /// How often a thread looks before it sleeps.
    spins: usize,
}

thread_local! {
    /// The pool that the thread's kernels share work with.
    static CURRENT: Cell<Option<*const PoolShared>> = const { Cell::new(None) };
}

/// How often a thread looks for new work, or for the end of work, before it sleeps: kernels follow each other closely, and to be
/// woken takes longer than most of them.
const SPINS: usize = 4000;

impl Pool {
    /// `threads` of them, the caller's included.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(threads: usize) -> std::io::Result<Pool> {
        // More threads than processors must not keep each other from working.
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let spins = if threads <= processors { SPINS } else { 0 };
        let shared = Arc::new(PoolShared { spins, ..PoolShared::default() });
        let mut pool = Pool { shared, others: Vec::new() };
        for i in 1..threads {
            let shared = pool.shared.clone();
            pool.others.push(std::thread::Builder::new().name(format!("restride-{i}")).spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    /// Number of threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.others.len() + 1
    }

    /// Runs `f`, whose kernels share their work with the pool.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Back(Option<*const PoolShared>);
        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _back = Back(CURRENT.replace(Some(Arc::as_ptr(&self.shared))));
        f()
    }
}

/// Runs `f` within a pool, if given.
pub fn within<R>(pool: Option<&Pool>, f: impl FnOnce() -> R) -> R {
    match pool {
        Some(pool) => pool.enter(f),
        None => f(),
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.epoch.fetch_add(1, Ordering::Release);
        self.shared.work.notify_all();
        for thread in self.others.drain(..) {
            // A thread never panics outside of a job, whose panic the caller was given.
            let _ = thread.join();
        }
    }
}

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes numbers that no thread has taken yet, and calls for them.
    fn work(&self, job: Job) {
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= job.count {
                return;
            }
            // SAFETY: `run` waits for all threads at the job before the closure is dropped.
            let call = unsafe { &*job.call };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| call(i))) {
                self.lock().panic.get_or_insert(panic);
            }
        }
    }

    /// The loop of a thread of the pool.
    fn serve(&self) {
        // Work within work finds the pool busy, and is done where it is.
        CURRENT.set(Some(self));
        let mut own = Own::default();
        let mut seen = 0;
        loop {
            self.spin(|| self.epoch.load(Ordering::Acquire) != seen);
            let mut state = self.lock();
            while self.epoch.load(Ordering::Acquire) == seen && !state.stop {
                state.sleeping += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.sleeping -= 1;
            }
            if state.stop {
                return;
            }
            seen = self.epoch.load(Ordering::Acquire);
            let Some(job) = state.job else { continue };
            self.running.fetch_add(1, Ordering::Relaxed);
            drop(state);
            own.lend(|| self.work(job));
            self.running.fetch_sub(1, Ordering::Release);
            // Who waits said so under the lock, and counted the threads after that.
            if self.lock().waiting {
                self.done.notify_all();
            }
        }
    }

    /// Looks for a while whether it is time to go on.
    fn spin(&self, ready: impl Fn() -> bool) {
        for _ in 0..self.spins {
            if ready() {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Calls `f` for all numbers below `count`, and waits until that is done.
    fn run(&self, count: usize, f: &(dyn Fn(usize) + Sync)) {
        if self.busy.swap(true, Ordering::Acquire) {
            // Another thread's kernel has the others, or this is a part of one that is being shared.
            return (0..count).for_each(f);
        }
        // SAFETY: only the lifetime changes; no thread has the job any more when this returns.
        let call: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f) };
        let job = Job { call, count };
        let asleep = {
            let mut state = self.lock();
            state.job = Some(job);
            self.next.store(0, Ordering::Relaxed);
            self.epoch.fetch_add(1, Ordering::Release);
            state.sleeping > 0
        };
        if asleep {
            self.work.notify_all();
        }
        self.work(job);
        // No thread comes to the job from here on.
        self.lock().job = None;
        let done = || self.running.load(Ordering::Acquire) == 0;
        self.spin(done);
        let mut state = self.lock();
        state.waiting = true;
        while !done() {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting = false;
        let panic = state.panic.take();
        drop(state);
        self.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

/// Calls `f` for all numbers below `count`, shared between the threads of the pool that the thread is in; without one, between
/// `threads` of their own.
pub(crate) fn share(threads: usize, count: usize, f: &(dyn Fn(usize) + Sync)) {
    if let Some(pool) = CURRENT.get() {
        // SAFETY: the pool is borrowed for as long as the thread is in it.
        return unsafe { &*pool }.run(count, f);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let i = next.fetch_add(1, Ordering::Relaxed)
            && i < count
        {
            f(i);
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(count)).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_called_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads).unwrap();
            assert_eq!(pool.threads(), threads);
            for round in 0..50 {
                let seen: Vec<AtomicUsize> = (0..round).map(|_| AtomicUsize::new(0)).collect();
                pool.enter(|| {
                    share(threads, round, &|i| {
                        seen[i].fetch_add(1, Ordering::Relaxed);
                    })
                });
                assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{threads} {round}");
            }
        }
    }

    #[test]
    fn work_within_work_and_several_callers_get_done() {
        let pool = Pool::new(3).unwrap();
        let sum = AtomicUsize::new(0);
        let add = |n: usize| {
            sum.fetch_add(n, Ordering::Relaxed);
        };
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    pool.enter(|| {
                        for _ in 0..50 {
                            share(3, 4, &|i| share(3, 3, &|j| add(i * j)));
                        }
                    })
                });
            }
        });
        assert_eq!(sum.into_inner(), 4 * 50 * (6 * 3));
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(2).unwrap();
        for _ in 0..3 {
            let work = || pool.enter(|| share(2, 8, &|i| assert!(i != 5, "five")));
            let done = catch_unwind(AssertUnwindSafe(work));
            assert!(done.is_err());
        }
        let sum = AtomicUsize::new(0);
        let add = |n: usize| {
            sum.fetch_add(n, Ordering::Relaxed);
        };
        pool.enter(|| share(2, 4, &add));
        assert_eq!(sum.into_inner(), 6);
    }
}
