//! What goes wrong in runs, and what was seen in them.

/// The probability that a node, and a device, is lost during the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub nodes: f64,
    pub devices: f64,
}

/// How often a run had what tests are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub restarts: u64,
    /// Losses without a restart, at each survivor.
    pub losses: u64,
    /// Results of copied subtasks that were forgotten.
    pub discards: u64,
    /// Subtasks that were given back.
    pub revoked: u64,
    pub fetches: u64,
    pub combined: u64,
}

impl Seen {
    /// The sums of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            restarts: self.restarts + other.restarts,
            losses: self.losses + other.losses,
            discards: self.discards + other.discards,
            revoked: self.revoked + other.revoked,
            fetches: self.fetches + other.fetches,
            combined: self.combined + other.combined,
        }
    }
}
