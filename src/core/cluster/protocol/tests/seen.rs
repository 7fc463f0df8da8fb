//! What goes wrong in runs, and what was seen in them.

use crate::time::Nanos;

/// What goes wrong. Probabilities are of a node, or of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A node other than the first is killed after all have joined.
    pub nodes: f64,
    /// A device fails.
    pub devices: f64,
    /// So many times, something befalls any node, the first one included, at any message or
    /// event of it.
    pub any: u32,
}

/// What befalls a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is gone.
    Kill,
    /// It does nothing for so long, and then goes on.
    Stop(Nanos),
}

/// How often runs had what tests are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Runs that ended with the right result, and those that all nodes ended without one.
    pub right: u64,
    pub ended: u64,
    pub restarts: u64,
    /// Losses without a restart, at each survivor.
    pub losses: u64,
    /// Nodes that ended since others took them for lost.
    pub excluded: u64,
    /// Results of copied subtasks that were forgotten.
    pub discards: u64,
    /// Subtasks that were given back.
    pub revoked: u64,
    pub fetches: u64,
    /// Requests that another node than the holder was to answer, and those that it did not.
    pub relays: u64,
    pub not_here: u64,
    pub combined: u64,
    /// Subtasks that began before the tasks before theirs had ended.
    pub ahead: u64,
    /// Requests for what was overwritten, which nobody waits for any longer.
    pub unserved: u64,
}

impl Seen {
    /// The sums of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            right: self.right + other.right,
            ended: self.ended + other.ended,
            restarts: self.restarts + other.restarts,
            losses: self.losses + other.losses,
            excluded: self.excluded + other.excluded,
            discards: self.discards + other.discards,
            revoked: self.revoked + other.revoked,
            fetches: self.fetches + other.fetches,
            relays: self.relays + other.relays,
            not_here: self.not_here + other.not_here,
            combined: self.combined + other.combined,
            ahead: self.ahead + other.ahead,
            unserved: self.unserved + other.unserved,
        }
    }
}
