//! The reports on models: the list, one model, its accuracy on other runs, and its
//! adaptation to a machine.

pub mod adapted;
pub mod check;
pub mod list;
pub mod show;
mod validation;

pub use adapted::AdaptReport;
pub use check::CheckReport;
pub use list::ListReport;
pub(super) use validation::{Subject, write as write_validation};

use std::fmt::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use super::style::{STRONG, origin, styled};

/// The heading of a text about a model.
pub(super) fn heading(
    out: &mut String,
    model: &str,
    machine: &str,
    simulated: bool,
) -> fmt::Result {
    writeln!(
        out,
        "model {} of {}{}\n",
        styled(STRONG, model),
        styled(STRONG, machine),
        origin(simulated)
    )
}

/// A time as people read it: `2026-11-20T10:27:08Z`.
fn date(seconds: u64) -> String {
    // Later than this is no time that can be written, and no time of training.
    const LAST: u64 = 253_402_300_799;
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST)))
        .to_string()
}

/// An error as people compare them: `1.68 %`.
fn percent(fraction: f64) -> String {
    format!("{:.2} %", 100.0 * fraction)
}
