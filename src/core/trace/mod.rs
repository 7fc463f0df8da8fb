//! The trace of a run: one span for each command.
//!
//! Engines write spans; the exporters and reports read them. This folder
//! knows no balancer and only the kinds of commands of the runtime.
//!
//! * [`intervals`] has the set operations on the times of spans.
//! * [`nodes`] makes the trace of a run over nodes.
//! * [`chrome`], [`csv`] and [`gantt`] are the exporters, one for each format. An
//!   exporter is a pure function from a [`Trace`] and an [`About`] to a writer.

pub mod chrome;
#[cfg(feature = "csv")]
pub mod csv;
pub mod gantt;
pub mod intervals;
pub mod nodes;

use std::ops::Range;

use crate::codelet::Name;
use crate::runtime::{CommandKind, Workers};
use crate::time::Nanos;

/// A command, from when it was enqueued to its end. Times are nanoseconds on the
/// runtime's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index into [`Trace::devices`].
    pub device: usize,
    /// Index of the queue within the device.
    pub queue: usize,
    pub kind: CommandKind,
    /// The purpose of the command: `held`, `halo`, `chunk`, `move` ...
    pub label: Name,
    /// What a kernel of a graph computes: kernels that differ only in their data have
    /// one. `None` for other commands.
    pub codelet: Option<Name>,
    pub step: u32,
    pub units: Range<u64>,
    /// When all that it waited for had ended; not before `queued`.
    pub ready: Nanos,
    pub queued: Nanos,
    pub submitted: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
    /// Bytes moved between host and device.
    pub bytes: u64,
    /// For a kernel on a host pool that counts the time of its workers.
    pub workers: Option<Workers>,
}

/// All spans of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Device names, by index.
    pub devices: Vec<String>,
    pub spans: Vec<Span>,
    /// Begin and end of each step.
    pub steps: Vec<(Nanos, Nanos)>,
    /// Dependencies, as pairs of indices of spans: the first ended before the second
    /// started. Empty where the engine records none.
    pub flows: Vec<(usize, usize)>,
    /// Devices, times, and the bytes of their own memory that data have from then on. Empty where
    /// the engine records none.
    pub memory: Vec<(usize, Nanos, u64)>,
}

/// A device's name, or `?`: a trace is plain data, so an index may be out of range.
fn device_name(trace: &Trace, device: usize) -> &str {
    trace.devices.get(device).map_or("?", String::as_str)
}

/// The run that a trace is of. Every exporter writes it into its file, so that a
/// simulated run is not mistaken for a measured one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Such as `stencil 4096 x 4096 f64`.
    pub workload: String,
    pub strategy: String,
    pub machine: String,
    pub simulated: bool,
}

impl About {
    /// `simulated` or `measured`.
    pub fn origin(&self) -> &'static str {
        match self.simulated {
            true => "simulated",
            false => "measured",
        }
    }

    /// A heading of one line.
    pub fn title(&self) -> String {
        format!(
            "{}, {} on {} ({})",
            self.workload,
            self.strategy,
            self.machine,
            self.origin()
        )
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Traces for the tests of exporters.

    use super::{About, Trace};
    use crate::runtime::CommandKind;
    pub use crate::spans::span;

    /// One host kernel beside a write, a kernel and a read on a GPU.
    pub fn two_devices() -> Trace {
        Trace {
            devices: vec!["host".into(), "gpu <0> & \"co\"".into()],
            spans: vec![
                span(0, 0, CommandKind::Launch, 100, 900),
                span(1, 0, CommandKind::Write, 100, 300),
                span(1, 0, CommandKind::Launch, 300, 700),
                span(1, 1, CommandKind::Read, 600, 1000),
            ],
            steps: vec![(90, 1000)],
            flows: vec![],
            memory: vec![(1, 100, 64), (1, 600, 96)],
        }
    }

    pub fn about() -> About {
        About {
            workload: "stencil 8 x 8 f64".into(),
            strategy: "dawl".into(),
            machine: "k40".into(),
            simulated: true,
        }
    }
}
