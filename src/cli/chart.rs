//! `pdawl chart`: draws runs whose traces were saved, one below the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pdawl_api::report::run::sheet;
use pdawl_api::trace::chrome::{self, Read};
use pdawl_api::trace::gantt::{Chart, Sheet};

use super::args::Format;
use super::failure::Failure;
use super::files::{ChartFile, chart_file};
use super::paths::Paths;
use super::saved_report::SavedReport;

/// Draws runs as Gantt charts on one time axis, with the bounds and the table of each
/// report.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl run stencil --machine k40 --strategy gpu --trace a.json\n  \
                  pdawl run stencil --machine k40 --adaptive --trace b.json\n  \
                  pdawl chart a.json b.json --out both.html"
)]
pub struct Args {
    /// Traces of runs, which `pdawl run --trace FILE` wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write the charts to a FILE that ends in .html, .svg, or .json for what a page draws
    #[arg(long, value_name = "FILE", value_parser = chart_file)]
    out: ChartFile,

    /// Format of what is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How to get a file that can be drawn.
const REMEDY: &str = "a file of `pdawl run ... --trace FILE`";

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut paths = Paths::reading(args.files.iter().map(PathBuf::as_path));
    let output = paths.output(&args.out.path)?;
    let runs: Vec<Read> = (args.files.iter())
        .map(|file| read(file))
        .collect::<Result<_, _>>()?;
    let charts = runs.iter().zip(&args.files);
    let charts: Vec<Chart> = charts.map(|(run, file)| of(run, file)).collect();
    args.out.write(output, &charts)?;
    let machines: BTreeSet<&str> = runs.iter().map(|run| &*run.about.machine).collect();
    let titles: Vec<String> = runs.iter().map(|run| run.about.title()).collect();
    let saved = SavedReport {
        kind: "chart",
        name: &titles.join("; "),
        machine: &machines.into_iter().collect::<Vec<_>>().join(", "),
        simulated: runs.iter().any(|run| run.about.simulated),
        file: &args.out.path,
    };
    let lines: String = titles.iter().map(|title| format!("{title}\n")).collect();
    saved.print(
        args.format,
        &format!("{lines}drawn in {}\n", args.out.path.display()),
    )
}

/// Reads a trace.
///
/// # Errors
/// What is none.
pub fn read(file: &Path) -> Result<Read, Failure> {
    let shown = file.display();
    let json =
        fs::read(file).map_err(|error| Failure::failed(format!("{shown}: {error}"), REMEDY))?;
    chrome::read(&json).map_err(|error| Failure::failed(format!("{shown}: {error}"), REMEDY))
}

/// The chart of a run that was read from a file.
pub fn of<'a>(run: &'a Read, file: &Path) -> Chart<'a> {
    Chart {
        trace: &run.trace,
        about: run.about.clone(),
        sheet: shown(run, file),
    }
}

/// What a run's report adds to its chart, or that there is none.
fn shown(run: &Read, file: &Path) -> Sheet {
    let missing = |why: &str| Sheet {
        notes: vec![format!("{}: {why}", file.display())],
        ..Sheet::default()
    };
    match &run.report {
        None => missing("the file has no report, so bounds and table are missing"),
        Some(report) => sheet::saved(report).unwrap_or_else(|| {
            missing("the report is of another version, so bounds and table are missing")
        }),
    }
}
