//! What goes wrong with a wire as a whole. A rank that is lost is no error of the wire.

use std::time::Duration;

use thiserror::Error;

/// Why a wire does not work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A message to a rank that does not exist.
    #[error("there is no rank {rank}; the ranks of this run are 0 to {}", size - 1)]
    NoRank { rank: usize, size: usize },
    /// The run cannot begin.
    #[error(
        "rank {rank} was lost while the ranks compared their clocks: {why}; look at its output, \
         and start the run again"
    )]
    LostAtStart { rank: usize, why: String },
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
    /// A test ended this rank ([`super::local::Faults::kill`]).
    #[error("rank {rank} was ended on purpose")]
    Killed { rank: usize },
}
