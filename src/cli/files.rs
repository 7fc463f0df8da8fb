//! Trace files that a run writes beside its report: Chrome trace, Gantt chart, CSV.

use std::path::{Path, PathBuf};

use pdawl_api::report::{Printed, Report};
use pdawl_api::trace::{Trace, chrome, csv, gantt};

use super::failure::Failure;
use super::output::Output;
use super::paths::Paths;
use super::terminal;

/// Trace files to write.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct TraceFiles {
    /// Write a Chrome trace, for ui.perfetto.dev and `pdawl chart`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write a Gantt chart to a FILE that ends in .html or .svg
    #[arg(long, value_name = "FILE", value_parser = gantt_path)]
    gantt: Option<PathBuf>,

    /// Write a table with one row for each command
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Parses the path of a chart, whose ending is its format.
pub(super) fn gantt_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match is_page(&path).is_some() {
        true => Ok(path),
        false => Err("a chart is HTML or SVG: FILE must end in .html or .svg".to_owned()),
    }
}

/// Whether the ending means an HTML page, rather than SVG; `None` for others.
pub(super) fn is_page(path: &Path) -> Option<bool> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "html" | "htm" => Some(true),
        "svg" => Some(false),
        _ => None,
    }
}

/// Trace files whose paths were tried.
pub struct PreparedFiles {
    trace: Option<Output>,
    csv: Option<Output>,
    page: Option<Output>,
    svg: Option<Output>,
}

impl TraceFiles {
    /// Whether any file is asked for.
    pub fn wanted(&self) -> bool {
        self.trace.is_some() || self.gantt.is_some() || self.csv.is_some()
    }

    /// Tries every path.
    ///
    /// # Errors
    /// As [`Paths::output`].
    pub fn prepare(&self, paths: &mut Paths) -> Result<PreparedFiles, Failure> {
        let gantt = |page| {
            let path = self.gantt.as_ref();
            path.filter(|path| is_page(path) == Some(page))
        };
        let mut open = |path: Option<&PathBuf>| path.map(|path| paths.output(path)).transpose();
        Ok(PreparedFiles {
            trace: open(self.trace.as_ref())?,
            csv: open(self.csv.as_ref())?,
            page: open(gantt(true))?,
            svg: open(gantt(false))?,
        })
    }
}

impl PreparedFiles {
    /// Leaves the files as they were, and warns that `what` was interrupted.
    pub fn discard(self, what: &str) {
        if [&self.trace, &self.csv, &self.page, &self.svg]
            .into_iter()
            .any(Option::is_some)
        {
            terminal::warn(&format!("interrupted before {what}: no trace was written"));
        }
    }

    /// Writes every file.
    ///
    /// # Errors
    /// When a file cannot be written, as on a full disk.
    pub fn write(self, trace: &Trace, report: &Report) -> Result<(), Failure> {
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
        let charts = [report.chart(trace)];
        if let Some(output) = self.page {
            output.write(|out| gantt::write_html(&charts, out))?;
        }
        if let Some(output) = self.svg {
            output.write(|out| gantt::write_svg(&charts, out))?;
        }
        Ok(())
    }
}
