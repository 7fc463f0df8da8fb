//! A stencil over several nodes.

use pdawl::report::run::nodes::Tolerance;
use pdawl::workload::Supersteps;
use pdawl::workload::cluster::BandsWorkload;
use pdawl::workload::stencil::{FirstVersion, Stencil};

use super::prepared::PreparedWorkload;

/// So many steps of a stencil, or until one changes no more than the tolerance.
pub fn prepare(
    stencil: Stencil,
    supersteps: Supersteps,
    tolerance: Option<f64>,
) -> PreparedWorkload {
    let steps = supersteps.steps();
    let (nx, ny, nz) = stencil.shape();
    let third = nz.map_or(String::new(), |nz| format!(" x {nz}"));
    let rule = stencil.coefficients().map_or(String::new(), |numbers| {
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        format!(", coefficients {}", numbers.join(","))
    });
    let first = match stencil.first() {
        FirstVersion::Random { seed } => format!("seed {seed}"),
        FirstVersion::File(file) => format!("from {}", file.path().display()),
        FirstVersion::Given(_) => "from memory".to_owned(),
    };
    let together = match supersteps.size() {
        1 => String::new(),
        size => format!(", supersteps of {size}"),
    };
    let until = tolerance.map_or(String::new(), |change| {
        format!(", until {change:e} after each {}", supersteps.period())
    });
    let size = format!("{nx} x {ny}{third}{rule}, {steps} steps{until}, {first}{together}");
    let workload = BandsWorkload::stencil(stencil, supersteps).until(tolerance);
    PreparedWorkload {
        tolerance: tolerance.map(|tolerance| Tolerance {
            tolerance,
            steps: steps.into(),
            tasks: steps.into(),
        }),
        ..PreparedWorkload::of_bands(workload, size)
    }
}
