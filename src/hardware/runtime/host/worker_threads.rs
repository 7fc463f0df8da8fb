//! The worker threads of all pools: how they find work, spin, sleep and wake.
//!
//! One lock guards the [`RunQueue`] and the list of sleepers. Workers take it when
//! they have no tile left to claim. They try it for a while first, since it is held
//! for a fraction of a microsecond.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::job::Job;
use super::run_queue::RunQueue;
use crate::runtime::{Completion, EventId, Nanos};

/// For how long a worker without work spins before it sleeps. Waking a sleeper
/// takes a few to some tens of microseconds, which every step would pay.
pub const SPIN: Duration = Duration::from_micros(50);

/// Sleepers of a pool that one thread wakes. Those wake others in turn, so that a
/// pool of n workers is awake after about log n rounds.
const WAKES: usize = 2;

/// What the workers and the backend share.
pub struct WorkerThreads {
    state: Mutex<State>,
    /// For each pool a count of the changes that spinning workers react to.
    changes: Vec<AtomicU64>,
    workers: Vec<Worker>,
    closed: AtomicBool,
    /// Whether idle workers may spin: not when others need their cores.
    spin: AtomicBool,
    completions: Sender<Completion>,
    epoch: Instant,
}

struct State {
    queue: RunQueue,
    idle: Vec<IdleWorkers>,
}

/// The idle workers of a pool.
#[derive(Clone, Default)]
struct IdleWorkers {
    /// Workers that sleep and may be woken.
    asleep: Vec<usize>,
    spinning: usize,
    /// Workers that were woken but do not run yet.
    waking: usize,
}

struct Worker {
    pool: usize,
    /// Its number within the pool.
    number: usize,
    thread: OnceLock<Thread>,
    asleep: AtomicBool,
    /// Whether it may claim tiles; false while it has no core.
    active: AtomicBool,
}

impl WorkerThreads {
    /// Pools with this many workers each.
    pub fn new(sizes: &[usize], completions: Sender<Completion>, epoch: Instant) -> Self {
        let workers = sizes.iter().enumerate().flat_map(|(pool, size)| {
            (0..*size).map(move |number| Worker {
                pool,
                number,
                thread: OnceLock::new(),
                asleep: AtomicBool::new(false),
                active: AtomicBool::new(true),
            })
        });
        Self {
            state: Mutex::new(State {
                queue: RunQueue::new(sizes.len()),
                idle: vec![IdleWorkers::default(); sizes.len()],
            }),
            changes: sizes.iter().map(|_| AtomicU64::default()).collect(),
            workers: workers.collect(),
            closed: AtomicBool::new(false),
            spin: AtomicBool::new(false),
            completions,
            epoch,
        }
    }

    /// The present time on the runtime's clock.
    pub fn now(&self) -> Nanos {
        self.epoch.elapsed().as_nanos() as Nanos
    }

    /// Reads or changes the run queue.
    pub fn with_queue<T>(&self, act: impl FnOnce(&mut RunQueue) -> T) -> T {
        act(&mut self.lock().queue)
    }

    /// Submits a command; completes it at once if it can never run.
    pub fn submit(&self, job: Job, wait: &[EventId]) {
        let mut state = self.lock();
        let ready = |job: &Job| job.mark_submitted(self.now());
        if let Some(doomed) = state.queue.submit(job, wait, ready) {
            self.skip(&doomed);
        }
        self.rouse(state);
    }

    /// Sets for each worker whether it may claim tiles, and whether idle ones may
    /// spin. All workers look for work afterwards.
    pub fn arrange(&self, active: &[bool], spin: bool) {
        let mut state = self.lock();
        self.spin.store(spin, Ordering::Relaxed);
        for (worker, active) in self.workers.iter().zip(active) {
            worker.active.store(*active, Ordering::Relaxed);
        }
        self.wake_all(&mut state);
    }

    /// Ends every worker as soon as its tile has ended.
    pub fn close(&self) {
        let mut state = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        self.wake_all(&mut state);
    }

    /// The body of a worker thread.
    pub fn work(self: &Arc<Self>, index: usize) {
        // Set once: each worker has one thread.
        let _ = self.workers[index].thread.set(std::thread::current());
        while let Some((job, parts)) = self.next(index) {
            self.run(&self.workers[index], &job, parts);
        }
    }

    /// Runs the claimed parts, and more of the same job.
    fn run(&self, worker: &Worker, job: &Arc<Job>, parts: Range<u64>) {
        let mut claimed = Some(parts);
        while let Some(parts) = claimed {
            if job.run(worker.number, parts, || self.now()) {
                self.end(job);
            }
            let stays =
                worker.active.load(Ordering::Relaxed) && !self.closed.load(Ordering::Relaxed);
            claimed = if stays {
                job.claim(worker.number)
            } else {
                None
            };
        }
    }

    /// Completes a job, and makes runnable what waited for it.
    fn end(&self, job: &Job) {
        // Sent before the run queue is updated, so that the driver thread wakes
        // earlier. No later command of the queue can end before that.
        self.send(job.completion(self.now()));
        let mut state = self.lock();
        let ready = |job: &Job| job.mark_submitted(self.now());
        for doomed in state.queue.end(job.event(), job.failed(), ready) {
            self.skip(&doomed);
        }
        self.rouse(state);
    }

    /// Completes a job that never runs.
    fn skip(&self, job: &Job) {
        self.send(job.skipped(self.now()));
    }

    fn send(&self, completion: Completion) {
        // The receiver is gone only when the runtime is being dropped.
        let _ = self.completions.send(completion);
    }

    /// A tile for a worker, or `None` when it is to end.
    fn next(&self, index: usize) -> Option<(Arc<Job>, Range<u64>)> {
        let worker = &self.workers[index];
        let mut spun = false;
        loop {
            let mut state = self.lock();
            if self.closed.load(Ordering::Relaxed) {
                return None;
            }
            if worker.active.load(Ordering::Relaxed) {
                if let Some(found) = state.queue.claim(worker.pool, worker.number) {
                    self.rouse(state);
                    return Some(found);
                }
                if !spun && self.spin.load(Ordering::Relaxed) {
                    spun = self.spin(state, worker.pool);
                    continue;
                }
                state.idle[worker.pool].asleep.push(index);
            }
            worker.asleep.store(true, Ordering::Relaxed);
            drop(state);
            while worker.asleep.load(Ordering::Acquire) {
                std::thread::park();
            }
            let waking = &mut self.lock().idle[worker.pool].waking;
            *waking = waking.saturating_sub(1);
            spun = false;
        }
    }

    /// Spins until something changes in the pool; true when nothing did.
    fn spin(&self, mut state: MutexGuard<'_, State>, pool: usize) -> bool {
        let changes = &self.changes[pool];
        let seen = changes.load(Ordering::Relaxed);
        state.idle[pool].spinning += 1;
        drop(state);
        let begin = Instant::now();
        let unchanged = loop {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            if changes.load(Ordering::Relaxed) != seen {
                break false;
            }
            if begin.elapsed() >= SPIN {
                break true;
            }
            // Yields the core to other threads, above all to the driver thread.
            std::thread::yield_now();
        };
        self.lock().idle[pool].spinning -= 1;
        unchanged
    }

    /// Signals spinners and wakes as many sleepers as there is work for.
    fn rouse(&self, mut state: MutexGuard<'_, State>) {
        let mut wake = Vec::new();
        let State { queue, idle, .. } = &mut *state;
        for (index, pool) in idle.iter_mut().enumerate() {
            if pool.spinning > 0 && queue.has_more_than(index, 0) {
                self.changes[index].fetch_add(1, Ordering::Relaxed);
            }
            for _ in 0..WAKES {
                let coming = (pool.spinning + pool.waking) as u64;
                if pool.asleep.is_empty() || !queue.has_more_than(index, coming) {
                    break;
                }
                pool.waking += 1;
                wake.extend(pool.asleep.pop());
            }
        }
        drop(state);
        for index in wake {
            self.workers[index].wake();
        }
    }

    fn wake_all(&self, state: &mut State) {
        for (pool, changes) in state.idle.iter_mut().zip(&self.changes) {
            pool.waking += std::mem::take(&mut pool.asleep).len();
            changes.fetch_add(1, Ordering::Relaxed);
        }
        self.workers.iter().for_each(Worker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        for _ in 0..64 {
            if let Ok(state) = self.state.try_lock() {
                return state;
            }
            std::hint::spin_loop();
        }
        // Kernels run outside of the lock and their panics are caught, so the
        // state is whole even if a thread panicked while it held the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    fn wake(&self) {
        self.asleep.store(false, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
