//! The result of a run in host memory: checked, and written to a file.

use std::sync::atomic::AtomicBool;

use pdawl::experiment::dense::Finished;
use pdawl::matrix::npy::write_header;
use pdawl::verify::product::Verification;

use crate::failure::{Failure, refused};
use crate::output::Output;

/// Checks that a factored matrix has a factor.
///
/// # Errors
/// Why it has none.
pub fn check_pivots(finished: &mut Finished) -> Result<(), Failure> {
    match finished.no_factor().map_err(refused)? {
        Some(why) => Err(Failure::of(why)),
        None => Ok(()),
    }
}

/// Checks the result. `None` if the flag was set meanwhile.
///
/// # Errors
/// When it cannot be read.
pub fn verify(finished: &mut Finished, stop: &AtomicBool) -> Result<Option<Verification>, Failure> {
    finished.verify(stop).map_err(refused)
}

/// Writes the result.
///
/// # Errors
/// When it cannot be read or written.
pub fn write(finished: &mut Finished, output: Output) -> Result<(), Failure> {
    let (rows, columns) = finished.task.operation.result_size();
    let precision = finished.task.precision.sums();
    output.write(|out| {
        write_header(out, (rows.into(), columns.into()), precision)?;
        finished.write_rows(out)
    })
}
