//! The workers of all pools: how they find work, spin, sleep and are woken.
//!
//! One lock guards the [`Board`] and who sleeps. Workers take it when they
//! have no tile left to claim, and by trying for a while first, since it is
//! held for a fraction of a microsecond.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::board::Board;
use super::errand::Part;
use super::job::Job;
use crate::runtime::{BroadcastTask, Completion, EventId, Nanos};

/// For how long a worker without work spins before it sleeps. Waking a sleeper
/// takes a few to some tens of microseconds, which every step would pay.
pub const SPIN: Duration = Duration::from_micros(50);

/// Sleepers of a pool that one thread wakes; those wake others in turn, so that a large
/// pool is up after a logarithm of its size.
const WAKES: usize = 2;

/// What the workers and the backend share.
pub struct Crew {
    state: Mutex<State>,
    pools: Vec<PoolSignal>,
    seats: Vec<Seat>,
    closed: AtomicBool,
    /// Whether idle workers may spin: not when others need their cores.
    spin: AtomicBool,
    completions: Sender<Completion>,
    epoch: Instant,
}

struct State {
    board: Board,
    pools: Vec<PoolState>,
    /// What each seat is to do before its next tile.
    errands: Vec<Option<Part>>,
}

/// Who of a pool is idle.
#[derive(Default)]
struct PoolState {
    /// Seats that sleep and may be woken.
    asleep: Vec<usize>,
    spinning: usize,
    /// Woken, but not up yet.
    waking: usize,
}

/// Counts the changes that a spinning worker should look at.
#[derive(Default)]
struct PoolSignal {
    changes: AtomicU64,
}

/// A worker's place.
struct Seat {
    pool: usize,
    /// Its number within the pool.
    worker: usize,
    thread: OnceLock<Thread>,
    asleep: AtomicBool,
    /// Whether it may claim tiles; false while it has no core.
    active: AtomicBool,
}

impl Crew {
    /// A crew of pools with this many workers each.
    pub fn new(sizes: &[usize], completions: Sender<Completion>, epoch: Instant) -> Self {
        let seats = sizes.iter().enumerate().flat_map(|(pool, size)| {
            (0..*size).map(move |worker| Seat {
                pool,
                worker,
                thread: OnceLock::new(),
                asleep: AtomicBool::new(false),
                active: AtomicBool::new(true),
            })
        });
        Self {
            state: Mutex::new(State {
                board: Board::new(sizes.len()),
                pools: sizes.iter().map(|_| PoolState::default()).collect(),
                errands: Vec::new(),
            }),
            pools: sizes.iter().map(|_| PoolSignal::default()).collect(),
            seats: seats.collect(),
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

    /// Reads or changes the board.
    pub fn with_board<T>(&self, act: impl FnOnce(&mut Board) -> T) -> T {
        act(&mut self.lock().board)
    }

    /// Hands over a command; completes it at once if it can never run.
    pub fn submit(&self, job: Job, wait: &[EventId]) {
        let mut state = self.lock();
        let ready = |job: &Job| job.mark_submitted(self.now());
        if let Some(casualty) = state.board.submit(job, wait, ready) {
            self.refuse(&casualty);
        }
        self.rouse(state);
    }

    /// Says for each seat whether it may claim tiles, and whether idle ones
    /// may spin. Everyone looks around afterwards.
    pub fn arrange(&self, active: &[bool], spin: bool) {
        let mut state = self.lock();
        self.spin.store(spin, Ordering::Relaxed);
        for (seat, active) in self.seats.iter().zip(active) {
            seat.active.store(*active, Ordering::Relaxed);
        }
        self.wake_all(&mut state);
    }

    /// Has every worker do something once, also one that rests, and waits until
    /// all have.
    pub fn on_each_worker(&self, errand: &BroadcastTask) {
        let (parts, over) = Part::of(errand, self.seats.len());
        let mut state = self.lock();
        state.errands = parts.into_iter().map(Some).collect();
        self.wake_all(&mut state);
        drop(state);
        over.wait();
    }

    /// Lets every worker go home as soon as its tile has ended.
    pub fn close(&self) {
        let mut state = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        self.wake_all(&mut state);
    }

    /// A worker's life.
    pub fn work(self: &Arc<Self>, seat: usize) {
        // A seat is taken once; a second thread would find its place taken.
        let _ = self.seats[seat].thread.set(std::thread::current());
        while let Some((job, parts)) = self.next(seat) {
            self.run(seat, &job, parts);
        }
    }

    /// Runs what was claimed, and more of the same job.
    fn run(&self, seat: usize, job: &Arc<Job>, parts: Range<u64>) {
        let seat = &self.seats[seat];
        let mut claimed = Some(parts);
        while let Some(parts) = claimed {
            if job.run(seat.worker, parts, || self.now()) {
                self.end(job);
            }
            let stay = seat.active.load(Ordering::Relaxed) && !self.closed.load(Ordering::Relaxed);
            claimed = if stay { job.claim(seat.worker) } else { None };
        }
    }

    /// Completes a job, and makes runnable what waited for it.
    fn end(&self, job: &Job) {
        // Told before the board knows, as no later command of the queue can
        // end before that: who waits for completions is woken the earlier.
        self.tell(job.completion(self.now()));
        let mut state = self.lock();
        let ready = |job: &Job| job.mark_submitted(self.now());
        for casualty in state.board.end(job.label.event, job.failed(), ready) {
            self.refuse(&casualty);
        }
        self.rouse(state);
    }

    fn refuse(&self, job: &Job) {
        self.tell(job.refusal(self.now()));
    }

    fn tell(&self, completion: Completion) {
        // Nobody listens any more only when the runtime is being dropped.
        let _ = self.completions.send(completion);
    }

    /// A tile for a worker, or `None` when it is time to go. Errands come first.
    fn next(&self, seat: usize) -> Option<(Arc<Job>, Range<u64>)> {
        let place = &self.seats[seat];
        let mut spun = false;
        loop {
            let mut state = self.lock();
            if self.closed.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(part) = state.errands.get_mut(seat).and_then(Option::take) {
                drop(state);
                part.run();
                continue;
            }
            if place.active.load(Ordering::Relaxed) {
                if let Some(found) = state.board.claim(place.pool, place.worker) {
                    self.rouse(state);
                    return Some(found);
                }
                if !spun && self.spin.load(Ordering::Relaxed) {
                    spun = self.spin(state, place.pool);
                    continue;
                }
                state.pools[place.pool].asleep.push(seat);
            }
            place.asleep.store(true, Ordering::Relaxed);
            drop(state);
            while place.asleep.load(Ordering::Acquire) {
                std::thread::park();
            }
            let waking = &mut self.lock().pools[place.pool].waking;
            *waking = waking.saturating_sub(1);
            spun = false;
        }
    }

    /// Spins until something changed in the pool; true when nothing did.
    fn spin(&self, mut state: MutexGuard<'_, State>, pool: usize) -> bool {
        let signal = &self.pools[pool].changes;
        let seen = signal.load(Ordering::Relaxed);
        state.pools[pool].spinning += 1;
        drop(state);
        let begin = Instant::now();
        let quiet = loop {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            if signal.load(Ordering::Relaxed) != seen {
                break false;
            }
            if begin.elapsed() >= SPIN {
                break true;
            }
            // Lets in who else wants the core, the engine's thread above all.
            std::thread::yield_now();
        };
        self.lock().pools[pool].spinning -= 1;
        quiet
    }

    /// Signals spinners and wakes as many sleepers as there is work for.
    fn rouse(&self, mut state: MutexGuard<'_, State>) {
        let mut wake = Vec::new();
        let State { board, pools, .. } = &mut *state;
        for (index, pool) in pools.iter_mut().enumerate() {
            if pool.spinning > 0 && board.has_more_than(index, 0) {
                self.pools[index].changes.fetch_add(1, Ordering::Relaxed);
            }
            for _ in 0..WAKES {
                let coming = (pool.spinning + pool.waking) as u64;
                if pool.asleep.is_empty() || !board.has_more_than(index, coming) {
                    break;
                }
                pool.waking += 1;
                wake.extend(pool.asleep.pop());
            }
        }
        drop(state);
        for seat in wake {
            self.wake(seat);
        }
    }

    fn wake_all(&self, state: &mut State) {
        for (pool, signal) in state.pools.iter_mut().zip(&self.pools) {
            pool.waking += std::mem::take(&mut pool.asleep).len();
            signal.changes.fetch_add(1, Ordering::Relaxed);
        }
        for seat in 0..self.seats.len() {
            self.wake(seat);
        }
    }

    fn wake(&self, seat: usize) {
        let seat = &self.seats[seat];
        seat.asleep.store(false, Ordering::Release);
        if let Some(thread) = seat.thread.get() {
            thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        for _ in 0..64 {
            if let Ok(state) = self.state.try_lock() {
                return state;
            }
            std::hint::spin_loop();
        }
        // Kernels run outside of the lock and their panics are caught, so the
        // state is whole even if someone panicked with it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
