//! What ranks tell each other while a cluster is measured.

use serde::{Deserialize, Serialize};

use crate::machine::MachineFile;

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Talk {
    /// To rank 0: a rank, and the file that its user has of its machine.
    Here {
        host: String,
        fingerprint: String,
        file: Option<Box<MachineFile>>,
    },
    /// To rank 0: a machine that was measured, or why it was not.
    Machine {
        file: Box<MachineFile>,
    },
    NoMachine {
        why: String,
    },
    /// To rank 0: how long what it ordered took.
    Took {
        ns: u64,
    },

    /// To rank 0: the median round trip, and the median of half of what is left of it
    /// without the times in which a rank sends or takes a message.
    Tripped {
        round_trip: u64,
        latency: u64,
    },

    /// An order of rank 0, as the next three: measure your machine.
    MeasureMachine,
    /// Round trips of small messages to a rank and back.
    PingPong {
        to: usize,
    },
    /// Small messages one after the other. The receiver tells how long one took.
    Flood {
        to: usize,
    },
    /// A message of so many bytes, and its receipt.
    Send {
        to: usize,
        bytes: u64,
    },
    /// The measurement ends: all is measured, or a rank says why it cannot go on.
    End {
        why: Option<String>,
    },

    Ping,
    /// How long the rank took for the ping before, to take it and to send the answer.
    Pong {
        before: u64,
    },
    /// A message of a flood, of which so many follow.
    Drop {
        left: u32,
    },
    /// A message with data.
    Bulk,
    /// All data of [`Talk::Bulk`] have arrived.
    Taken,
}
