//! What happened: one span a command.
//!
//! Engines write spans; the exporters and the summary read them. This folder
//! knows neither balancers nor runtimes' insides.

pub mod intervals;

use std::ops::Range;

use crate::runtime::CommandKind;
use crate::time::Nanos;

/// A command from being enqueued to its end. Times are nanoseconds on the
/// runtime's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index into [`Trace::devices`].
    pub device: usize,
    /// Index of the queue within the device.
    pub queue: usize,
    pub kind: CommandKind,
    /// What it was for: `held`, `halo`, `chunk`, `move` ...
    pub label: &'static str,
    pub step: u32,
    pub units: Range<u64>,
    /// When everything that it waited for had ended (at least `queued`).
    pub ready: Nanos,
    pub queued: Nanos,
    pub submitted: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
    /// Bytes moved between host and device.
    pub bytes: u64,
}

/// All spans of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Device names, by index.
    pub devices: Vec<String>,
    pub spans: Vec<Span>,
    /// Begin and end of each step.
    pub steps: Vec<(Nanos, Nanos)>,
}
