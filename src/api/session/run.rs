//! What a run returns.

use std::io;
use std::ops::Deref;

use crate::report::run::Details;
use crate::report::{Printed, Report};
use crate::trace::gantt::{Chart, write_html, write_svg};
use crate::trace::{Trace, chrome};

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

    /// The same on arrays of a GPU, by CUDA's number: what devices read of the host's memory and
    /// write there is on that GPU.
    pub(super) fn on_gpu(mut self, arrays_on: Option<usize>) -> Self {
        for part in self
            .report
            .devices
            .iter_mut()
            .filter(|_| arrays_on.is_some())
        {
            let moved = [&mut part.bytes_h2d, &mut part.bytes_d2h].map(|bytes| bytes.replace(0));
            let moved: u64 = moved.into_iter().flatten().sum();
            part.bytes_peer = Some(part.bytes_peer.unwrap_or(0) + moved);
        }
        self
    }

    /// The same with these notes in its report, too.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.report.notes.extend(notes);
        self
    }

    /// The same, as these words after `pdawl run` give it.
    #[must_use]
    pub fn with_command(mut self, words: Option<Vec<String>>) -> Self {
        self.report.command = words;
        self
    }

    /// What runs of its kind have.
    pub(super) fn details_mut(&mut self) -> &mut Details {
        &mut self.report.details
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

    /// Writes the commands of a traced run as a Chrome trace, with the report, as
    /// `pdawl run --trace` does.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn chrome_trace(&self, out: impl io::Write) -> io::Result<()> {
        let report = serde_json::to_value(Printed::from(&self.report))?;
        chrome::write(&self.trace, &self.report.about(), Some(&report), out)
    }

    /// The run as `trace::gantt` draws it, beside others or alone.
    pub fn chart(&self) -> Chart<'_> {
        self.report.chart(&self.trace)
    }

    /// Writes the Gantt chart of a traced run as a page that zooms.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn gantt_html(&self, out: impl io::Write) -> io::Result<()> {
        write_html(&[self.chart()], out)
    }

    /// Writes the Gantt chart of a traced run as a drawing.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn gantt_svg(&self, out: impl io::Write) -> io::Result<()> {
        write_svg(&[self.chart()], out)
    }
}

impl Deref for Run {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}
