//! A stencil over several nodes.

use std::path::Path;

use pdawl::codelet::Precision;
use pdawl::matrix::npy::ElementType;
use pdawl::workload::Supersteps;
use pdawl::workload::cluster::BandsWorkload;
use pdawl::workload::stencil::{FirstVersion, Stencil};

use super::files::{ResultArray, ResultFile};
use super::prepared::PreparedWorkload;
use crate::cli::failure::Failure;
use crate::cli::paths::Paths;

/// What has its own placement, and no subtasks that a policy spreads.
pub const BANDS: &str = "a stencil, whose nodes share its rows or planes in one co-run";

/// So many steps of a stencil.
pub fn prepare(stencil: Stencil, supersteps: Supersteps) -> PreparedWorkload {
    let steps = supersteps.steps;
    let (nx, ny, nz) = stencil.shape();
    let third = nz.map_or(String::new(), |nz| format!(" x {nz}"));
    let rule = stencil.coefficients().map_or(String::new(), |numbers| {
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        format!(", coefficients {}", numbers.join(","))
    });
    let first = match stencil.first() {
        FirstVersion::Random { seed } => format!("seed {seed}"),
        FirstVersion::File(file) => format!("from {}", file.path().display()),
    };
    let together = match supersteps.size {
        1 => String::new(),
        size => format!(", supersteps of {size}"),
    };
    let size = format!("{nx} x {ny}{third}{rule}, {steps} steps, {first}{together}");
    PreparedWorkload::of_bands(
        BandsWorkload::stencil(stencil, steps).with_superstep(supersteps.size),
        size,
    )
}

/// The file of the last version, an array of this shape.
///
/// # Errors
/// When it cannot be written.
pub fn result_file(
    output: Option<&Path>,
    paths: &mut Paths,
    workload: &PreparedWorkload,
    (shape, precision): (&[u64], Precision),
) -> Result<Option<ResultFile>, Failure> {
    let array = ResultArray {
        space: workload.workload.result(),
        shape,
        element: ElementType::Real(precision),
    };
    ResultFile::prepare(output, paths, &array)
}
