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
//! * `event` is the list of events and their names as features;
//! * `session` opens and reads the counters of threads, as many as the limit of open
//!   files allows; `threads` finds their ids;
//! * `reading` adds counts up, and scales those of events that took turns;
//! * `obstacle` and `availability` say what is missing and why.
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

mod availability;
mod event;
mod obstacle;
mod reading;
mod session;
mod threads;

#[cfg(test)]
mod tests;

pub use availability::{Availability, Missing, availability};
pub use event::{Event, Kind};
pub use reading::{Reading, SCALED_RATIO, Source};
pub use session::Counters;
pub use threads::threads_of_this_process;
