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
//! * `reading` adds counts up, and scales those of events that took turns;
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
mod reading;
mod session;

#[cfg(test)]
mod tests;

pub use obstacle::{Availability, Missing, availability};
pub use reading::{Reading, SCALED_RATIO, Source};
pub use session::{Counters, threads_of_this_process};

use perf_event::Builder;
use perf_event::events::{Cache, CacheOp, CacheResult, Hardware, Software, WhichCache};

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
