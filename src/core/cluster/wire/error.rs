//! What goes wrong with a wire as a whole. A rank that is lost is no error of the wire.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::installed::NotInstalled;

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
    /// A test ended this rank ([`super::local::Faults::kill`]).
    #[error("rank {rank} was ended on purpose")]
    Killed { rank: usize },
}
