//! What happened: one span a command.
//!
//! Engines write spans; the exporters and the summary read them. This folder
//! knows neither balancers nor runtimes' insides.
//!
//! * [`summary`] reduces the spans to figures, by way of [`intervals`].
//! * [`chrome`], [`csv`] and [`gantt`] are the exporters, one a format. They
//!   are pure: from a [`Trace`] and an [`About`] to an `impl Write`.

pub mod chrome;
pub mod csv;
pub(crate) mod escape;
pub mod gantt;
pub mod intervals;
pub mod summary;

use std::ops::Range;

use crate::codelet::Name;
use crate::runtime::{CommandKind, Workers};
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
    pub label: Name,
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
    /// Of a kernel on a pool that counts its workers' time.
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
    /// Which span waited for which, as indices of spans: the first ended before
    /// the second started. Empty where nobody noted it.
    pub flows: Vec<(usize, usize)>,
}

/// A device's name; traces are plain data, so an index may be out of range.
fn device_name(trace: &Trace, device: usize) -> &str {
    trace.devices.get(device).map_or("?", String::as_str)
}

/// What a trace is of. Every exporter writes it into its file, so that a
/// simulated run can never be taken for a measured one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `stencil 4096 x 4096 f64`, say.
    pub workload: String,
    pub strategy: String,
    pub machine: String,
    pub simulated: bool,
}

impl About {
    /// `simulated` or `measured`.
    pub fn origin(&self) -> &'static str {
        if self.simulated {
            "simulated"
        } else {
            "measured"
        }
    }

    /// One line for a heading.
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
pub(crate) mod samples {
    //! Hand-made traces for the exporters' tests.

    use super::{About, Span, Trace};
    use crate::runtime::CommandKind;
    use crate::time::Nanos;

    /// A span that was ready 10 ns before it started.
    pub fn span(
        device: usize,
        queue: usize,
        kind: CommandKind,
        started: Nanos,
        ended: Nanos,
    ) -> Span {
        Span {
            device,
            queue,
            kind,
            label: "chunk".into(),
            step: 0,
            units: 0..8,
            ready: started.saturating_sub(10),
            queued: started.saturating_sub(20),
            submitted: started.saturating_sub(5),
            started,
            ended,
            bytes: match kind {
                CommandKind::Launch => 0,
                CommandKind::Write | CommandKind::Read => 4096,
            },
            workers: None,
        }
    }

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
