//! Handles Ctrl-C: the first ends the run at its next barrier, the second at once.

use std::sync::atomic::{AtomicBool, Ordering};

use super::failure::Failure;
use super::terminal;

static STOP: AtomicBool = AtomicBool::new(false);
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Installs the handler, at the first call, and returns the flag that it sets.
///
/// # Errors
/// When the system refuses a handler.
pub fn listen() -> Result<&'static AtomicBool, Failure> {
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(&STOP);
    }
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        terminal::message("stopping; Ctrl-C again ends at once");
    })
    .map_err(|e| {
        Failure::failed(
            format!("cannot listen for Ctrl-C: {e}"),
            "run it where signals are allowed",
        )
    })?;
    Ok(&STOP)
}
