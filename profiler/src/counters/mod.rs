//! Counters of threads, by the processor and the kernel.
//!
//! This folder owns the counters of perf events: which there are ([`Event`]),
//! opening them on threads that run already ([`Counters`]), turning counts
//! into a run's figures ([`Reading`]), and telling what a machine lacks and
//! how to get it ([`availability()`]).
//!
//! The processor's counters are missing in most virtual machines and
//! containers. Then the kernel's serve, and where not even those may be
//! opened a reading is empty: profiling goes on in any case, and
//! [`Reading::source`] says what a row of figures rests on.
//!
//! * [`Event`] is the list of events and their names as features;
//! * `session` opens and reads the counters of threads, as many as the limit of open
//!   files allows;
//! * [`Reading`] adds counts up, and scales those of events that took turns;
//! * `obstacle` says what is missing and why.
//!
//! # Example
//!
//! ```
//! use pdawl_profiler::counters::{Counters, threads_of_this_process};
//!
//! let mut counters = Counters::open(&threads_of_this_process());
//! counters.start();
//! let squares: u64 = (0..1_000_u64).map(|x| x * x).sum();
//! let reading = counters.stop();
//! println!("{squares}: {:?} from {}", reading.values, reading.source);
//! ```

mod obstacle;
mod session;

#[cfg(test)]
mod tests;

pub use obstacle::{Availability, Missing, availability};
pub use session::{Counters, threads_of_this_process};

use std::collections::BTreeMap;
use std::fmt;

use perf_event::Builder;
use perf_event::events::{Cache, CacheOp, CacheResult, Hardware, Software, WhichCache};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    TaskClock,
    PageFaults,
    ContextSwitches,
    CpuMigrations,
    Cycles,
    Instructions,
    CacheReferences,
    CacheMisses,
    Branches,
    BranchMisses,
    L1dReadMisses,
    LlcReadMisses,
}

/// What counts an event, and so which permission it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The processor, in user code only: what the kernel adds would depend on
    /// the user's rights, and make figures of two machines incomparable.
    Hardware,
    /// The kernel, for what user code causes.
    Software,
    /// The kernel, within itself. It takes the right to watch the kernel:
    /// opened without it, such a counter stays at 0 whatever happens.
    Scheduler,
}

impl Event {
    /// Every event, in the order in which they are worth their counters.
    pub const ALL: [Event; 12] = [
        Event::TaskClock,
        Event::PageFaults,
        Event::ContextSwitches,
        Event::CpuMigrations,
        Event::Cycles,
        Event::Instructions,
        Event::CacheReferences,
        Event::CacheMisses,
        Event::Branches,
        Event::BranchMisses,
        Event::L1dReadMisses,
        Event::LlcReadMisses,
    ];

    /// The feature's name.
    pub fn name(self) -> &'static str {
        match self {
            Event::TaskClock => "counter.task_clock_seconds",
            Event::PageFaults => "counter.page_faults_count",
            Event::ContextSwitches => "counter.context_switches_count",
            Event::CpuMigrations => "counter.cpu_migrations_count",
            Event::Cycles => "counter.cycles_count",
            Event::Instructions => "counter.instructions_count",
            Event::CacheReferences => "counter.cache_references_count",
            Event::CacheMisses => "counter.cache_misses_count",
            Event::Branches => "counter.branches_count",
            Event::BranchMisses => "counter.branch_misses_count",
            Event::L1dReadMisses => "counter.l1d_read_misses_count",
            Event::LlcReadMisses => "counter.llc_read_misses_count",
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Event::TaskClock | Event::PageFaults => Kind::Software,
            Event::ContextSwitches | Event::CpuMigrations => Kind::Scheduler,
            _ => Kind::Hardware,
        }
    }

    /// What a count of 1 is in the unit of the name: the task clock ticks
    /// in nanoseconds.
    fn unit(self) -> f64 {
        match self {
            Event::TaskClock => 1e-9,
            _ => 1.0,
        }
    }

    /// A counter of the event, on the calling thread unless told otherwise.
    fn builder<'a>(self) -> Builder<'a> {
        let read_misses = |which| Cache {
            which,
            operation: CacheOp::READ,
            result: CacheResult::MISS,
        };
        let builder = Builder::new();
        let mut builder = match self {
            Event::TaskClock => builder.kind(Software::TASK_CLOCK),
            Event::PageFaults => builder.kind(Software::PAGE_FAULTS),
            Event::ContextSwitches => builder.kind(Software::CONTEXT_SWITCHES),
            Event::CpuMigrations => builder.kind(Software::CPU_MIGRATIONS),
            Event::Cycles => builder.kind(Hardware::CPU_CYCLES),
            Event::Instructions => builder.kind(Hardware::INSTRUCTIONS),
            Event::CacheReferences => builder.kind(Hardware::CACHE_REFERENCES),
            Event::CacheMisses => builder.kind(Hardware::CACHE_MISSES),
            Event::Branches => builder.kind(Hardware::BRANCH_INSTRUCTIONS),
            Event::BranchMisses => builder.kind(Hardware::BRANCH_MISSES),
            Event::L1dReadMisses => builder.kind(read_misses(WhichCache::L1D)),
            Event::LlcReadMisses => builder.kind(read_misses(WhichCache::LL)),
        };
        if self.kind() == Kind::Scheduler {
            builder.include_kernel();
        }
        builder
    }

    /// Whether the calling thread may count it here and now.
    ///
    /// # Errors
    /// The system's error.
    fn probe(self) -> std::io::Result<()> {
        self.builder().build().map(drop)
    }
}

// A reading of counters: counts that are added up over threads and scaled.
//
// A processor has few counters; where there are more events, the kernel lets
// them take turns, and says for how long each was wanted and for how long it
// really counted. A count is then taken to have gone on at its rate while
// the counter did not run.

/// The name of the least fraction of time for which a counter ran: 1 unless
/// there were more events than the processor has counters.
pub const SCALED_RATIO: &str = "counter.scaled_ratio";

/// The best that figures of counters rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The processor's counters, and the kernel's.
    Hardware,
    /// The kernel's counters.
    Software,
    /// Nothing could be counted.
    #[default]
    None,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Hardware => "hardware",
            Source::Software => "software",
            Source::None => "none",
        })
    }
}

/// The counters of all watched threads between a start and a stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub source: Source,
    /// Sums over the threads, by feature name ([`Event::name`]), and
    /// [`SCALED_RATIO`]. What could not be counted is absent.
    pub values: BTreeMap<String, f64>,
}

/// What one counter of one thread has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    pub count: u64,
    /// Nanoseconds of the thread's running for which it was wanted.
    pub enabled: u64,
    /// Nanoseconds of these for which it counted.
    pub running: u64,
}

impl Tick {
    /// What was added since an earlier one. Counters only grow.
    pub fn since(self, earlier: Tick) -> Tick {
        Tick {
            count: self.count.saturating_sub(earlier.count),
            enabled: self.enabled.saturating_sub(earlier.enabled),
            running: self.running.saturating_sub(earlier.running),
        }
    }
}

/// One event over all threads.
#[derive(Default)]
struct Total {
    /// The counts, each scaled to its thread's enabled time.
    scaled: f64,
    enabled: f64,
    /// Of that, the time of threads of which something was counted.
    seen: f64,
    running: f64,
    /// A counter of it could not be read: the sum would lack a thread.
    broken: bool,
}

impl Total {
    fn add(&mut self, tick: Option<Tick>) {
        let Some(tick) = tick else {
            self.broken = true;
            return;
        };
        let (enabled, running) = (tick.enabled as f64, tick.running as f64);
        self.enabled += enabled;
        self.running += running;
        if tick.running > 0 {
            self.seen += enabled;
            self.scaled += tick.count as f64 * (enabled / running).max(1.0);
        }
    }

    /// The count, those threads filled in during whose time no counter was
    /// free; `None` if there was never one.
    fn count(&self) -> Option<f64> {
        if self.broken || (self.enabled > 0.0 && self.seen <= 0.0) {
            return None;
        }
        // A thread that never ran has done nothing, and was not missed.
        let missed = if self.seen > 0.0 {
            self.enabled / self.seen
        } else {
            1.0
        };
        Some(self.scaled * missed)
    }

    fn fraction(&self) -> f64 {
        match self.enabled > 0.0 {
            true => (self.running / self.enabled).min(1.0),
            false => 1.0,
        }
    }
}

/// Adds up what every counter of every thread has seen; `None` for one that
/// could not be read.
fn reading(ticks: impl IntoIterator<Item = (Event, Option<Tick>)>) -> Reading {
    let mut totals: BTreeMap<Event, Total> = BTreeMap::new();
    for (event, tick) in ticks {
        totals.entry(event).or_default().add(tick);
    }
    let mut reading = Reading::default();
    let mut least = f64::INFINITY;
    for (event, total) in &totals {
        let Some(count) = total.count() else {
            continue;
        };
        reading
            .values
            .insert(event.name().to_owned(), count * event.unit());
        least = least.min(total.fraction());
        if event.kind() == Kind::Hardware {
            reading.source = Source::Hardware;
        } else if reading.source == Source::None {
            reading.source = Source::Software;
        }
    }
    if least.is_finite() {
        reading.values.insert(SCALED_RATIO.to_owned(), least);
    }
    reading
}
