//! A command prepared for workers: parts of tiles, counters to claim them from,
//! and a counter that identifies the worker that finishes last.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::codelet::{HostCode, HostValue};
use crate::runtime::tiles::Tiles;
use crate::runtime::{Completion, EventId, Nanos, QueueId, Status, Workers};

/// For how long a worker waits for pieces of shared work before it yields its core to other
/// threads: longer than the parts of a factorisation that one thread computes.
const ATTENTIVE: Duration = Duration::from_micros(200);

/// What a command's tiles do.
pub enum Work {
    /// Computes units.
    Kernel {
        code: HostCode,
        args: Vec<HostValue>,
        units: Range<u64>,
    },
    /// Computes all units at once, on as many workers as there are parts of tiles.
    Shared {
        code: HostCode,
        args: Vec<HostValue>,
        units: Range<u64>,
    },
    /// Copies bytes, the tiles' units; the two ranges do not overlap.
    Copy { from: *const u8, to: *mut u8 },
}

// SAFETY: the pointers lead into mappings that the job's `keep` holds. Queues and
// events order the writes of different commands (the contracts of `Runtime` and
// `HostCode::run`), and tiles of one command do not overlap.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

/// A command, checked and resolved to addresses.
pub struct Prepared {
    pub work: Work,
    pub tiles: Tiles,
    /// Keeps the memory that the work uses mapped.
    pub keep: Vec<Arc<dyn Send + Sync>>,
}

/// A command that workers run tile by tile.
pub struct Job {
    /// The completion, whose times and status are still to be set.
    completion: Completion,
    work: Work,
    tiles: Tiles,
    /// For each worker a run of neighbouring tiles.
    runs: Vec<Run>,
    /// Parts of tiles that have ended.
    ended: AtomicU64,
    submitted: AtomicU64,
    /// When the first tile began; `u64::MAX` before that.
    started: AtomicU64,
    /// Whether a worker has begun, and ended, to compute shared work.
    begun: AtomicBool,
    done: AtomicBool,
    /// Why a tile failed. The remaining tiles are then claimed but not run.
    failure: OnceLock<String>,
    /// Keeps the memory that the work uses mapped.
    _keep: Vec<Arc<dyn Send + Sync>>,
}

/// Parts of neighbouring tiles with a counter, on cache lines of its own.
#[repr(align(128))]
struct Run {
    /// The next unclaimed part.
    next: AtomicU64,
    end: u64,
    /// Nanoseconds that its worker has worked, on tiles of any run.
    busy: AtomicU64,
}

impl Run {
    fn left(&self) -> u64 {
        self.end.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    fn claim(&self, tiles: &Tiles) -> Option<Range<u64>> {
        let after = |next: u64| next + tiles.at_once(self.end - next);
        let claimed = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < self.end).then(|| after(next))
            });
        claimed.ok().map(|next| next..after(next))
    }
}

impl Job {
    /// A job for a pool of this many workers, which ends with this completion.
    pub fn new(completion: Completion, prepared: Prepared, workers: usize) -> Self {
        let Prepared { work, tiles, keep } = prepared;
        let workers = workers.max(1);
        let run = |worker: usize| {
            let parts = tiles.run(worker, workers);
            Run {
                next: AtomicU64::new(parts.start),
                end: parts.end,
                busy: AtomicU64::new(0),
            }
        };
        let runs = (0..workers).map(run);
        Self {
            runs: runs.collect(),
            completion,
            work,
            tiles,
            ended: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            done: AtomicBool::new(false),
            submitted: AtomicU64::new(0),
            started: AtomicU64::new(u64::MAX),
            failure: OnceLock::new(),
            _keep: keep,
        }
    }

    pub fn event(&self) -> EventId {
        self.completion.event
    }

    pub fn queue(&self) -> QueueId {
        self.completion.queue
    }

    /// Notes that everything it waited for has ended.
    pub fn mark_submitted(&self, now: Nanos) {
        self.submitted.store(now, Ordering::Relaxed);
    }

    /// The number of unclaimed parts of each run.
    pub fn unclaimed(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().map(Run::left)
    }

    /// Claims a tile for a worker, or a part of the last tile of a run. The worker's
    /// own run comes first, so that from one step to the next it finds its data in
    /// its caches and on its memory node. Then follows the run with the most parts
    /// left, so that a slow worker delays nobody.
    pub fn claim(&self, worker: usize) -> Option<Range<u64>> {
        let own = self.runs.get(worker).and_then(|run| run.claim(&self.tiles));
        if own.is_some() {
            return own;
        }
        loop {
            let longest = self.runs.iter().max_by_key(|run| run.left())?;
            if longest.left() == 0 {
                return None;
            }
            let claimed = longest.claim(&self.tiles);
            if claimed.is_some() {
                return claimed;
            }
        }
    }

    /// Runs the parts that a worker has claimed. True for the parts that end the
    /// job: the caller then sees all workers' writes.
    pub fn run(&self, worker: usize, parts: Range<u64>, now: impl Fn() -> Nanos) -> bool {
        let began = now();
        if self.started.load(Ordering::Relaxed) == u64::MAX {
            self.started.fetch_min(began, Ordering::Relaxed);
        }
        if self.failure.get().is_none() {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.work_on(&parts)));
            if let Err(panic) = outcome {
                // When several tiles panic, the first reason is kept.
                let _ = self.failure.set(reason(panic.as_ref()));
            }
        }
        if let Some(run) = self.runs.get(worker) {
            let took = now().saturating_sub(began);
            run.busy.fetch_add(took, Ordering::Relaxed);
        }
        let count = parts.end - parts.start;
        self.ended.fetch_add(count, Ordering::AcqRel) + count == self.tiles.all_parts()
    }

    fn work_on(&self, parts: &Range<u64>) {
        let tile = self.tiles.units(parts);
        match &self.work {
            Work::Kernel { code, args, units } => {
                let first = units.start;
                let part = first + tile.start..first + tile.end;
                if part.is_empty() {
                    return;
                }
                // SAFETY: the submitter of the launch guarantees its arguments and
                // the order of commands on the same memory; tiles are disjoint
                // parts of the launch's units.
                unsafe { code.run(args, first, part) }
            }
            Work::Shared { code, args, units } => self.share(code, args, units),
            Work::Copy { from, to } => {
                let length = tile.end - tile.start;
                // SAFETY: both ranges were checked against their memory when
                // the command was submitted, are kept mapped by the job and do
                // not overlap; the tile lies within them.
                unsafe {
                    let from = from.add(tile.start as usize);
                    let to = to.add(tile.start as usize);
                    std::ptr::copy_nonoverlapping(from, to, length as usize);
                }
            }
        }
    }

    /// Computes shared work on the first worker that comes; the others compute the pieces
    /// that it leaves to them, until it is done. Then it claims the parts of workers that
    /// never came.
    fn share(&self, code: &HostCode, args: &[HostValue], units: &Range<u64>) {
        if self.begun.swap(true, Ordering::AcqRel) {
            let mut idle_since = Instant::now();
            while !self.done.load(Ordering::Acquire) {
                match rayon::yield_now() {
                    Some(rayon::Yield::Executed) => idle_since = Instant::now(),
                    _ if idle_since.elapsed() < ATTENTIVE => std::hint::spin_loop(),
                    _ => std::thread::yield_now(),
                }
            }
            return;
        }
        let _done = Done(&self.done);
        let threads = self.tiles.all_parts() as usize;
        // SAFETY: the submitter of the launch guarantees its arguments and the order of
        // commands on the same memory; only this call computes its units.
        unsafe { code.run_with(args, units.start, units.clone(), threads) }
    }

    /// Whether a tile failed; settled once the job has ended.
    pub fn failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// The completion of a job whose tiles have all ended.
    pub fn completion(&self, ended: Nanos) -> Completion {
        Completion {
            submitted: self.submitted.load(Ordering::Relaxed),
            started: self.started.load(Ordering::Relaxed),
            ended,
            workers: match self.work {
                Work::Kernel { .. } | Work::Shared { .. } => Some(self.busy()),
                Work::Copy { .. } => None,
            },
            status: match self.failure.get() {
                None => Status::Done,
                Some(why) => Status::Failed(why.clone()),
            },
            ..self.completion.clone()
        }
    }

    /// The completion of a job that never ran.
    pub fn skipped(&self, now: Nanos) -> Completion {
        self.completion.clone().not_run(now, Status::Skipped)
    }

    /// How long the workers have worked.
    fn busy(&self) -> Workers {
        let busy = || self.runs.iter().map(|run| run.busy.load(Ordering::Relaxed));
        Workers {
            mean: busy().sum::<u64>() / self.runs.len().max(1) as u64,
            most: busy().max().unwrap_or(0),
        }
    }
}

/// Tells that shared work is done, also when it panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The message of a panic.
fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!("the codelet panicked: {text}")
}
