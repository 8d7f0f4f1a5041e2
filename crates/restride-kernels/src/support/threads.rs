//! Threads that kernels share their work with: as many as were asked for, made once, and nothing allocated while they work.

use crate::support::scratch::Own;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
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

/// Apart from others in the cache: threads that write here do not keep those from working that read there.
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// What a pool's threads share.
///
/// A thread comes to a job without a lock: it adds itself to `running`, and takes the job if `turn` is odd after that. The thread that
/// brought the job makes `turn` even, and waits until `running` is zero. A thread that comes too late sees an even turn and leaves; the
/// bringer waits for all others. So no thread reads or calls a job while the next one is written. A thread takes the lock only to sleep
/// and to wake others.
struct PoolShared {
    turn: Apart<PoolTurn>,
    /// Threads that are at the job, or that look whether there is one.
    running: Apart<AtomicUsize>,
    /// How many of its own numbers each thread, or another in its place, has taken.
    taken: Vec<Apart<AtomicUsize>>,
    lock: Mutex<()>,
    work: Condvar,
    done: Condvar,
    /// Threads that wait for `work` in the system.
    sleeping: AtomicUsize,
    /// Whether the thread that brought the job waits for `done` in the system.
    waiting: AtomicBool,
    /// Whether there is a job. Its own, as only those who bring jobs use it.
    busy: Apart<AtomicBool>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// How often a thread looks before it sleeps.
    spins: usize,
}
// SAFETY: the job is written and read in turns, as said above; any thread may make its call, which lives until all threads have left it.
unsafe impl Sync for PoolShared {}
// SAFETY: as above.
unsafe impl Send for PoolShared {}

/// The job and its number: odd while there is one.
#[derive(Default)]
struct PoolTurn {
    number: AtomicU64,
    job: UnsafeCell<Option<Job>>,
}

/// The number of the turn in which threads end.
const STOP: u64 = u64::MAX;

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
        let shared = Arc::new(PoolShared {
            turn: Apart::default(),
            running: Apart::default(),
            taken: (0..threads.max(1)).map(|_| Apart::default()).collect(),
            lock: Mutex::new(()),
            work: Condvar::new(),
            done: Condvar::new(),
            sleeping: AtomicUsize::new(0),
            waiting: AtomicBool::new(false),
            busy: Apart::default(),
            panic: Mutex::new(None),
            spins,
        });
        let mut pool = Pool { shared, others: Vec::new() };
        for i in 1..threads {
            let shared = pool.shared.clone();
            pool.others.push(std::thread::Builder::new().name(format!("restride-{i}")).spawn(move || shared.serve(i))?);
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
        self.shared.turn.0.number.store(STOP, Ordering::SeqCst);
        self.shared.wake();
        for thread in self.others.drain(..) {
            // A thread never panics outside of a job, whose panic the caller was given.
            let _ = thread.join();
        }
    }
}

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> u64 {
        self.turn.0.number.load(Ordering::SeqCst)
    }

    /// Takes numbers that no thread has taken yet, and calls for them: first those of the thread's own part, so that it finds in its
    /// cache what it wrote there in the job before; then those of the others.
    fn work(&self, job: Job, thread: usize) {
        let threads = self.taken.len();
        let start = |of: usize| job.count * of / threads;
        for of in (thread..threads).chain(0..thread) {
            let (first, taken) = (start(of), &self.taken[of].0);
            let count = start(of + 1) - first;
            while taken.load(Ordering::Relaxed) < count
                && let i = taken.fetch_add(1, Ordering::Relaxed)
                && i < count
            {
                // SAFETY: `run` waits for all threads at the job before the closure is dropped.
                let call = unsafe { &*job.call };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| call(first + i))) {
                    self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                }
            }
        }
    }

    /// The loop of a thread of the pool.
    fn serve(&self, thread: usize) {
        // Work within work finds the pool busy, and is done where it is.
        CURRENT.set(Some(self));
        let mut own = Own::default();
        let mut seen = 0;
        let is_new = |turn: u64, seen: u64| turn % 2 == 1 && turn != seen;
        loop {
            self.spin(|| is_new(self.turn(), seen));
            if !is_new(self.turn(), seen) {
                let mut guard = self.lock();
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                // Who brings a job looks for sleepers after that.
                while !is_new(self.turn(), seen) {
                    guard = self.work.wait(guard).unwrap_or_else(PoisonError::into_inner);
                }
                self.sleeping.fetch_sub(1, Ordering::SeqCst);
            }
            self.running.0.fetch_add(1, Ordering::SeqCst);
            let turn = self.turn();
            if turn == STOP {
                return;
            }
            if is_new(turn, seen) {
                seen = turn;
                // SAFETY: it is this job's turn, which does not end before this thread has left `running`.
                if let Some(job) = unsafe { *self.turn.0.job.get() } {
                    own.lend(|| self.work(job, thread));
                }
            }
            self.running.0.fetch_sub(1, Ordering::SeqCst);
            // Who waits said so first, and counted the threads after that.
            if self.waiting.load(Ordering::SeqCst) {
                drop(self.lock());
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

    /// Wakes all threads that sleep.
    fn wake(&self) {
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            drop(self.lock());
            self.work.notify_all();
        }
    }

    /// Calls `f` for all numbers below `count`, and waits until that is done.
    fn run(&self, count: usize, f: &(dyn Fn(usize) + Sync)) {
        if self.busy.0.swap(true, Ordering::Acquire) {
            // Another thread's kernel has the others, or this is a part of one that is being shared.
            return (0..count).for_each(f);
        }
        // SAFETY: only the lifetime changes; no thread has the job any more when this returns.
        let call: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f) };
        let job = Job { call, count };
        // SAFETY: the turn is even, and no thread has been at a job since that was so: none reads this one.
        unsafe { *self.turn.0.job.get() = Some(job) };
        self.taken.iter().for_each(|t| t.0.store(0, Ordering::Relaxed));
        self.turn.0.number.fetch_add(1, Ordering::SeqCst);
        self.wake();
        self.work(job, 0);
        // No thread comes to the job from here on.
        self.turn.0.number.fetch_add(1, Ordering::SeqCst);
        let done = || self.running.0.load(Ordering::SeqCst) == 0;
        self.spin(done);
        if !done() {
            let mut guard = self.lock();
            self.waiting.store(true, Ordering::SeqCst);
            while !done() {
                guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            self.waiting.store(false, Ordering::SeqCst);
        }
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.busy.0.store(false, Ordering::Release);
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
