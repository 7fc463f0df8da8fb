//! Trace files that a run writes beside its report: Chrome trace, Gantt chart, CSV.

use std::io::Write;
use std::path::{Path, PathBuf};

use pdawl_api::report::{Printed, Report};
use pdawl_api::trace::gantt::{self, Chart};
use pdawl_api::trace::{Trace, chrome, csv};

use super::failure::Failure;
use super::output::Output;
use super::paths::Paths;
use super::terminal;
use super::ui::watch;

/// Trace files to write.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct TraceFiles {
    /// Write a Chrome trace, for ui.perfetto.dev and `pdawl chart`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write a Gantt chart to a FILE that ends in .html, .svg, or .json for what a page draws
    #[arg(long, value_name = "FILE", value_parser = chart_file)]
    gantt: Option<ChartFile>,

    /// Write a table with one row for each command
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Show the run in a page of the browser while it goes on, and then until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

/// How a chart is written, which the ending of its file says.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChartFormat {
    Page,
    Drawing,
    /// What a page draws.
    Data,
}

impl ChartFormat {
    fn of(path: &Path) -> Option<Self> {
        match &*path.extension()?.to_str()?.to_ascii_lowercase() {
            "html" | "htm" => Some(Self::Page),
            "svg" => Some(Self::Drawing),
            "json" => Some(Self::Data),
            _ => None,
        }
    }

    fn write(self, charts: &[Chart], out: &mut dyn Write) -> std::io::Result<()> {
        match self {
            Self::Page => gantt::write_html(charts, out),
            Self::Drawing => gantt::write_svg(charts, out),
            Self::Data => gantt::write_data(charts, out),
        }
    }
}

/// Parses the path of a chart.
pub(super) fn chart_file(text: &str) -> Result<ChartFile, String> {
    let path = PathBuf::from(text);
    match ChartFormat::of(&path) {
        Some(format) => Ok(ChartFile { path, format }),
        None => Err("a chart's FILE must end in .html, .svg or .json".to_owned()),
    }
}

/// A file for a chart.
#[derive(Clone, Debug)]
pub(super) struct ChartFile {
    pub path: PathBuf,
    format: ChartFormat,
}

impl ChartFile {
    /// Writes charts to the file, whose path was tried.
    pub fn write(&self, output: Output, charts: &[Chart]) -> Result<(), Failure> {
        output.write(|out| self.format.write(charts, out))
    }
}

/// Trace files whose paths were tried.
pub struct PreparedFiles {
    trace: Option<Output>,
    csv: Option<Output>,
    chart: Option<(ChartFile, Output)>,
}

impl TraceFiles {
    /// Whether any file is asked for.
    pub fn wanted(&self) -> bool {
        self.trace.is_some() || self.gantt.is_some() || self.csv.is_some()
    }

    /// Tries every path, and begins to show the run if it is watched.
    ///
    /// # Errors
    /// As [`Paths::output`], and when the run cannot be watched.
    pub fn prepare(&self, paths: &mut Paths) -> Result<PreparedFiles, Failure> {
        if self.watch {
            watch::start()?;
        }
        let mut open = |path: Option<&PathBuf>| path.map(|path| paths.output(path)).transpose();
        let chart = open(self.gantt.as_ref().map(|chart| &chart.path))?;
        Ok(PreparedFiles {
            trace: open(self.trace.as_ref())?,
            csv: open(self.csv.as_ref())?,
            chart: self.gantt.clone().zip(chart),
        })
    }
}

impl PreparedFiles {
    /// Leaves the files as they were, and warns that `what` was interrupted.
    pub fn discard(self, what: &str) {
        if self.trace.is_some() || self.csv.is_some() || self.chart.is_some() {
            terminal::warn(&format!("interrupted before {what}: no trace was written"));
        }
    }

    /// Writes every file.
    ///
    /// # Errors
    /// When a file cannot be written, as on a full disk.
    pub fn write(self, trace: &Trace, report: &Report) -> Result<(), Failure> {
        watch::ended(report, trace);
        let about = report.about();
        if let Some(output) = self.trace {
            output.write(|out| {
                let report = serde_json::to_value(Printed::from(report))?;
                chrome::write(trace, &about, Some(&report), out)
            })?;
        }
        if let Some(output) = self.csv {
            output.write(|out| csv::write(trace, &about, out))?;
        }
        if let Some((file, output)) = self.chart {
            file.write(output, &[report.chart(trace)])?;
        }
        Ok(())
    }
}
