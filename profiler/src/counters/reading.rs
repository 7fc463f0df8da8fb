//! A reading of counters: counts that are added up over threads and scaled.
//!
//! A processor has few counters; where there are more events, the kernel lets
//! them take turns, and says for how long each was wanted and for how long it
//! really counted. A count is then taken to have gone on at its rate while
//! the counter did not run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Event, Kind};

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
pub fn reading(ticks: impl IntoIterator<Item = (Event, Option<Tick>)>) -> Reading {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(count: u64, enabled: u64, running: u64) -> Option<Tick> {
        Some(Tick {
            count,
            enabled,
            running,
        })
    }

    #[test]
    fn counts_of_threads_are_added_and_the_clock_is_in_seconds() {
        let reading = reading([
            (Event::PageFaults, tick(3, 100, 100)),
            (Event::PageFaults, tick(4, 50, 50)),
            (Event::TaskClock, tick(1_500_000_000, 100, 100)),
        ]);
        assert_eq!(reading.source, Source::Software);
        assert_eq!(reading.values["counter.page_faults_count"], 7.0);
        assert_eq!(reading.values["counter.task_clock_seconds"], 1.5);
        assert_eq!(reading.values[SCALED_RATIO], 1.0);
    }

    #[test]
    fn a_counter_that_ran_half_of_the_time_counts_twice() {
        let reading = reading([
            (Event::Cycles, tick(1000, 100, 50)),
            (Event::Cycles, tick(10, 20, 20)),
            (Event::Instructions, tick(600, 120, 100)),
        ]);
        assert_eq!(reading.source, Source::Hardware);
        assert_eq!(reading.values["counter.cycles_count"], 2010.0);
        assert_eq!(reading.values["counter.instructions_count"], 720.0);
        assert_eq!(reading.values[SCALED_RATIO], 70.0 / 120.0);
    }

    /// Two threads, whose events took turns with others for different parts of
    /// the time: what was counted stays in proportion.
    #[test]
    fn threads_are_scaled_each_by_their_own_times() {
        let reading = reading([
            (Event::Cycles, tick(300, 100, 25)),
            (Event::Instructions, tick(600, 100, 25)),
            (Event::Cycles, tick(1000, 200, 100)),
            (Event::Instructions, tick(2000, 200, 100)),
        ]);
        assert_eq!(reading.values["counter.cycles_count"], 3200.0);
        assert_eq!(reading.values["counter.instructions_count"], 6400.0);
        assert_eq!(reading.values[SCALED_RATIO], 125.0 / 300.0);
    }

    #[test]
    fn a_thread_for_which_no_counter_was_free_is_filled_in_by_the_others() {
        let reading = reading([
            (Event::Branches, tick(90, 90, 90)),
            (Event::Branches, tick(0, 10, 0)),
        ]);
        assert_eq!(reading.values["counter.branches_count"], 100.0);
        assert_eq!(reading.values[SCALED_RATIO], 0.9);
    }

    #[test]
    fn what_was_never_counted_is_absent_and_does_not_pass_for_0() {
        let reading = reading([
            (Event::Cycles, tick(0, 100, 0)),
            (Event::PageFaults, tick(1, 1, 1)),
        ]);
        assert!(!reading.values.contains_key("counter.cycles_count"));
        assert_eq!(reading.source, Source::Software);
        assert_eq!(reading.values[SCALED_RATIO], 1.0);
    }

    #[test]
    fn a_thread_that_never_ran_did_nothing() {
        let reading = reading([(Event::Cycles, tick(0, 0, 0))]);
        assert_eq!(reading.values["counter.cycles_count"], 0.0);
        assert_eq!(reading.values[SCALED_RATIO], 1.0);
    }

    #[test]
    fn a_sum_that_lacks_a_thread_is_not_given() {
        let reading = reading([
            (Event::Cycles, tick(5, 1, 1)),
            (Event::Cycles, None),
            (Event::Cycles, tick(5, 1, 1)),
        ]);
        assert_eq!(reading, Reading::default());
    }

    #[test]
    fn only_what_was_added_since_the_start_matters() {
        let earlier = Tick {
            count: 10,
            enabled: 20,
            running: 5,
        };
        let later = Tick {
            count: 14,
            enabled: 30,
            running: 10,
        };
        let span = later.since(earlier);
        assert_eq!((span.count, span.enabled, span.running), (4, 10, 5));
        assert_eq!(earlier.since(later), Tick::default());
    }
}
