//! Charts of a training, in a directory.

use std::path::{Path, PathBuf};

use pdawl::model::training::{Chart, GroupModel, charts};

use crate::cli::failure::Failure;
use crate::cli::output::Output;

/// Makes the directory, before the long work.
///
/// # Errors
/// When it cannot be made.
pub fn prepare(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::failed(
            format!("{} cannot be made: {error}", directory.display()),
            "--plots with a directory that can be written",
        )
    })
}

/// The charts of all groups.
///
/// # Errors
/// When one cannot be drawn.
pub fn draw(groups: &[GroupModel], machine: &str, simulated: bool) -> Result<Vec<Chart>, Failure> {
    let mut all = Vec::new();
    for group in groups {
        all.extend(charts(group, machine, simulated).map_err(Failure::of)?);
    }
    Ok(all)
}

/// Writes the charts, and returns their paths.
///
/// # Errors
/// When one cannot be written.
pub fn write(charts: &[Chart], directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    (charts.iter())
        .map(|chart| {
            let path = directory.join(&chart.file);
            Output::prepare(&path)?.write(|out| out.write_all(chart.svg.as_bytes()))?;
            Ok(path)
        })
        .collect()
}
