//! What a run returns.

use std::io;
use std::ops::Deref;

use crate::report::Report;
use crate::trace::Trace;
use crate::trace::gantt::{write_html, write_svg};

/// A run: its report, to which it dereferences, and its trace.
#[derive(Clone, Debug)]
pub struct Run {
    report: Report,
    trace: Trace,
}

impl Run {
    pub(super) fn new(report: Report, trace: Trace) -> Self {
        Self { report, trace }
    }

    /// The report, as `pdawl run --format json` prints it.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Every command with its times; empty unless the run was traced.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Each device's fraction of the work, in the order of [`Session::devices`].
    ///
    /// [`Session::devices`]: super::Session::devices
    pub fn shares(&self) -> Vec<f64> {
        self.report.devices.iter().map(|part| part.share).collect()
    }

    /// Writes the Gantt chart of a traced run as a page that zooms.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn gantt_html(&self, out: impl io::Write) -> io::Result<()> {
        write_html(&self.trace, &self.report.about(), out)
    }

    /// Writes the Gantt chart of a traced run as a drawing.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn gantt_svg(&self, out: impl io::Write) -> io::Result<()> {
        write_svg(&self.trace, &self.report.about(), out)
    }
}

impl Deref for Run {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}
