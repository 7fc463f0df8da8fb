//! Wires carry messages between the ranks of a cluster run. A *rank* is the process of
//! one node; all ranks run the same program. A wire knows nothing of what it carries.
//!
//! * [`Wire`] is what the rest of the library uses.
//! * [`Transport`] is what carries bytes: threads of one process ([`local`]), or a shared
//!   library with a C interface ([`plugin`]), such as the one that uses MPI.
//! * [`Link`] makes a wire of a transport. It adds what all transports need: control
//!   messages, the detection of lost ranks ([`heartbeat`]), the comparison of the clocks,
//!   and an end at which all leave together.
//! * [`Attended`] keeps a wire moving whatever its user does.
//! * [`memory`] is that of large messages, used again and again.
//! * [`environment`] tells whether a launcher such as `mpirun` started this process,
//!   [`join()`] joins the others, and [`agree()`] compares what all must have alike, their
//!   [`agreement`].

pub mod agreement;
mod attended;
pub mod environment;
pub mod heartbeat;
mod link;
pub mod local;
pub mod memory;
pub mod plugin;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::installed::NotInstalled;

pub use agreement::agree;
pub use attended::Attended;
pub use environment::join;
pub use link::Link;
pub use local::LocalWire;
pub use plugin::PluginWire;

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

/// Two independent sequences of messages. Order is kept within each, so a short control
/// message may overtake data that take a second to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Messages of the user of the wire.
    Data,
    /// Messages of [`Link`].
    Control,
}

/// What a transport delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message, whole.
    Message {
        from: usize,
        channel: Channel,
        bytes: Vec<u8>,
    },
    /// The rank cannot be reached. Many transports never notice.
    Lost { rank: usize, why: String },
}

/// Carries messages to other ranks. Messages of one channel from one rank to another
/// arrive in order, each once.
pub trait Transport: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// The name of the machine that this rank runs on.
    fn host_name(&self) -> &str;

    /// Sends to another rank and returns at once. A rank that cannot be reached is no error
    /// but an event.
    fn send(&mut self, to: usize, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError>;

    /// The next event, if there is one. It never waits.
    fn poll(&mut self) -> Result<Option<Event>, WireError>;

    /// Waits until there may be an event, at most so long. A transport that nothing wakes
    /// sleeps.
    fn rest(&mut self, at_most: Duration) {
        thread::sleep(at_most);
    }

    /// How many messages have not left, without those to ranks that are lost. It changes
    /// only in [`Transport::poll`].
    fn unsent(&self) -> usize;

    /// Whether a message has arrived in part: the rest comes while [`Transport::poll`] is
    /// called. No message of a transport that delivers them whole has.
    fn is_receiving(&self) -> bool {
        false
    }

    /// The rank is lost, by the judgement of those above: nothing waits for it any more.
    fn lose(&mut self, rank: usize);

    /// Ends. `complete` says that no rank is lost and that all ranks do the same now.
    fn close(&mut self, complete: bool) -> Result<(), WireError>;
}

/// Why a wire does not work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A message to a rank that does not exist.
    #[error("there is no rank {rank}; the ranks of this run are 0 to {}", size - 1)]
    NoRank { rank: usize, size: usize },
    /// The run cannot begin.
    #[error(
        "rank {rank} was lost before the run began: {why}; look at its output, and start the run \
         again"
    )]
    LostAtStart { rank: usize, why: String },
    /// Another rank takes this one for lost.
    #[error(
        "rank {by} takes rank {rank} (this one) for lost, as it was not heard for too long; start \
         the run again if the others have ended without a result, too"
    )]
    Excluded { rank: usize, by: usize },
    /// The ranks were not started alike.
    #[error("{why}; start the same program with the same options on all nodes")]
    Unlike { why: String },
    /// A signal ended the wait for other ranks.
    #[error("interrupted before all ranks had joined")]
    Interrupted,
    /// The run cannot end in good order.
    #[error(
        "rank {rank} was lost before it had written what the run computed; look at its output, \
         and start the run again"
    )]
    LostAtEnd { rank: usize },
    /// The network does not take what was sent.
    #[error(
        "{count} messages of rank {rank} have not left within {timeout:?}; look whether the other \
         ranks still run"
    )]
    Unsent {
        rank: usize,
        count: usize,
        timeout: Duration,
    },
    /// The ranks do not run the same program.
    #[error(
        "rank {from} sent a control message that this version of pdawl does not know; install the \
         same version on all machines"
    )]
    Unknown { from: usize },
    /// No library is installed that joins a run.
    #[error(
        "{0}, so this program cannot join a run of several processes; `{command}` builds it, or \
         --wire (or $PDAWL_WIRE, for a program over the library) names another file",
        command = .0.command()
    )]
    Absent(NotInstalled),
    /// The file that the user names is none.
    #[error("--wire: no file {} can be read; name the file of a wire's library", file.display())]
    Unreadable { file: PathBuf },
    /// The system cannot load the library.
    #[error(
        "the wire {} cannot be loaded: {why}; build it on this machine (`cargo build --release -p \
         pdawl-wire-mpi`) and install what it needs",
        file.display()
    )]
    Load { file: PathBuf, why: String },
    /// The library is something else.
    #[error(
        "{} is no wire, as it has no function pdawl_wire_open; name the library of a wire",
        file.display()
    )]
    NoWire { file: PathBuf },
    /// The library is too old or too new.
    #[error(
        "the wire {} was built for another version of pdawl; build it again (`cargo build \
         --release -p pdawl-wire-mpi`)",
        file.display()
    )]
    Version { file: PathBuf },
    /// The library does not join the run. The reason names the remedy.
    #[error("the wire {} cannot join the run: {why}", file.display())]
    Refused { file: PathBuf, why: String },
    /// The library and the launcher are of different kinds.
    #[error(
        "{ranks} processes were started, but the wire {} has joined a run of {joined}; start them \
         with the mpirun of the MPI that the wire was built with",
        file.display()
    )]
    OtherLauncher {
        file: PathBuf,
        ranks: usize,
        joined: usize,
    },
    /// The library cannot carry messages any more.
    #[error(
        "the wire {} has failed on rank {rank}: {why}; start the run again",
        file.display()
    )]
    Failed {
        file: PathBuf,
        rank: usize,
        why: String,
    },
    /// The library breaks the rules of the interface.
    #[error(
        "the wire {} is faulty: {what}; report this to its authors",
        file.display()
    )]
    Misbehaved { file: PathBuf, what: String },
    /// The thread that attends to the wire cannot start.
    #[error(
        "the system cannot start a thread for the wire: {why}; raise the limit of processes \
         (`ulimit -u`), or end some"
    )]
    NoThread { why: String },
    /// A call after the end.
    #[error("the wire of rank {rank} has ended; join before the run and finish after it")]
    Ended { rank: usize },
    /// A test ended this rank ([`local::Faults::kill`]).
    #[error("rank {rank} was ended on purpose")]
    Killed { rank: usize },
}
