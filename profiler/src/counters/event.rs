//! The events that are counted, and their names.

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
    pub(super) fn unit(self) -> f64 {
        match self {
            Event::TaskClock => 1e-9,
            _ => 1.0,
        }
    }

    /// A counter of the event, on the calling thread unless told otherwise.
    pub(super) fn builder<'a>(self) -> Builder<'a> {
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
    pub(super) fn probe(self) -> std::io::Result<()> {
        self.builder().build().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_group_and_unit_and_are_unlike() {
        let mut names: Vec<&str> = Event::ALL.iter().map(|event| event.name()).collect();
        for name in &names {
            assert!(name.starts_with("counter."), "{name}");
            let seconds = *name == "counter.task_clock_seconds";
            assert!(seconds || name.ends_with("_count"), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Event::ALL.len());
    }
}
