//! Wires carry messages between the ranks of a cluster run. A *rank* is the process of
//! one node; all ranks run the same program. A wire knows nothing of what it carries.
//!
//! * [`Wire`] is what the rest of the library uses.
//! * `transport` is what carries bytes: threads of one process ([`local`]), or a shared
//!   library with a C interface ([`plugin`]), such as the one that uses MPI.
//! * [`Link`] makes a wire of a transport. It adds what all transports need: `control`
//!   messages, the detection of lost ranks ([`heartbeat`]), the comparison of the clocks
//!   (`clock`), and an end at which all leave together.
//! * [`Attended`] keeps a wire moving whatever its user does.
//! * [`memory`] is that of large messages, used again and again.
//! * [`environment`] tells whether a launcher such as `mpirun` started this process,
//!   [`join()`] joins the others, and [`agree()`] compares what all must have alike, their
//!   [`agreement`].

mod agree;
pub mod agreement;
mod attended;
mod clock;
mod control;
pub mod environment;
mod error;
pub mod heartbeat;
mod join;
mod link;
pub mod local;
pub mod memory;
pub mod plugin;
mod transport;

use std::time::{Duration, Instant};

pub use agree::agree;
pub use attended::Attended;
pub use error::WireError;
pub use join::join;
pub use link::Link;
pub use local::LocalWire;
pub use plugin::PluginWire;
pub use transport::{Channel, Event, Transport};

#[cfg(test)]
mod tests;

/// What a wire delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A message, whole.
    Message { from: usize, bytes: Vec<u8> },
    /// The rank takes part no more. This is reported once; no message of it follows.
    Lost { rank: usize, why: String },
    /// The rank takes this one for lost. This is reported once; no message of it follows.
    Excluded { by: usize },
}

/// Carries messages between ranks. Messages from one rank to another arrive in order,
/// each once. Nothing is said about the order of messages of different ranks.
///
/// An [`Attended`] wire moves by itself. Any other one moves while it is called, so a rank that
/// waits calls [`Wire::poll`] again and again, and a rank that works calls it often.
pub trait Wire: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks the run began with.
    fn size(&self) -> usize;

    /// The name of the machine that this rank runs on.
    fn host_name(&self) -> &str;

    /// Sends a message and returns at once. A rank may send to itself. What is sent to a
    /// lost rank is dropped.
    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<(), WireError>;

    /// The next arrival, if there is one. It never waits.
    fn poll(&mut self) -> Result<Option<Arrived>, WireError>;

    /// Waits until something may have arrived, at most so long: less where the transport
    /// notices an arrival.
    fn rest(&mut self, at_most: Duration) -> Result<(), WireError>;

    /// Waits until everything that was sent to ranks that are not lost has left this rank.
    /// What arrives meanwhile is kept for [`Wire::poll`].
    fn flush(&mut self, timeout: Duration) -> Result<(), WireError>;

    /// The instant from which this rank's clock counts.
    fn epoch(&self) -> Instant;

    /// Nanoseconds to add to a time on `rank`'s clock, which counts from [`Wire::epoch`]
    /// there, to get the time on rank 0's. Clocks were compared at the start of the run.
    fn clock_offset(&self, rank: usize) -> i64;

    /// Nothing is left to be said. It waits until every rank that is not lost has come to
    /// this point or to [`Wire::finish`]. Messages that nobody polled are dropped.
    ///
    /// Rank 0 speaks for the run: what it writes, it writes between this and
    /// [`Wire::finish`], and the others wait for it there. Whoever is late from now on delays
    /// only the end, so the others wait longer for it than in the run.
    ///
    /// # Errors
    /// When rank 0 is lost, and when rank 0 and this rank take each other for lost.
    fn settle(&mut self) -> Result<(), WireError>;

    /// Ends the run on this rank, as [`Wire::settle`], and waits until every rank that is not
    /// lost does the same, so that no rank takes one for lost that is done.
    ///
    /// # Errors
    /// As [`Wire::settle`].
    fn finish(self: Box<Self>) -> Result<(), WireError>;
}
