//! Handles Ctrl-C, SIGTERM and SIGHUP: the first ends the run at its next barrier, or at once
//! where a pipe has no other end yet, and the second at once. A write beyond the limit of a file's size is made an error.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use pdawl_api::cluster::wire::environment::Launched;
use pdawl_profiler::file::is_waiting;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::failure::Failure;
use super::{output, terminal};

static STOP: AtomicBool = AtomicBool::new(false);
static LISTENS: AtomicBool = AtomicBool::new(false);
/// Whether the first signal ends the process.
static AT_ONCE: AtomicBool = AtomicBool::new(false);
/// The first signal; 0 before it.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Installs the handler, at the first call, and returns the flag that it sets.
///
/// It must be called before an OpenCL driver is opened: PoCL's compiler has a handler that ends
/// the process, unless it finds another one that it gives the signal to.
///
/// # Errors
/// When the system refuses a handler or a thread.
pub fn listen() -> Result<&'static AtomicBool, Failure> {
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(&STOP);
    }
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter();
    // As `nohup` wants it, and shells for commands in the background.
    let wanted = wanted.filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let listening = Signals::new(wanted).and_then(|mut signals| {
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || signals.forever().for_each(came))
    });
    match listening {
        Ok(_) => Ok(&STOP),
        Err(error) => Err(Failure::failed(
            format!("cannot listen for signals: {error}"),
            "run it where signals are allowed",
        )),
    }
}

/// Makes a write beyond the limit of a file's size (`ulimit -f`) fail, as one to a full
/// disk does: the signal would end the process without a word.
pub fn survive_file_limit() {
    // Where no handler is allowed, the signal does what it always does.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// From now on the first signal ends the process, which has nothing to bring to an end.
pub fn end_at_once() {
    AT_ONCE.store(true, Ordering::Relaxed);
}

/// The exit status of a run that a signal has ended, as shells have it.
pub fn status() -> u8 {
    let signal = match FIRST.load(Ordering::Relaxed) {
        0 => SIGINT,
        signal => signal,
    };
    u8::try_from(128 + signal).unwrap_or(1)
}

/// Takes back what was set for another reason than a signal.
pub fn go_on() {
    if FIRST.load(Ordering::Relaxed) == 0 {
        STOP.store(false, Ordering::Relaxed);
    }
}

fn came(signal: i32) {
    let again = FIRST
        .compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed)
        .is_err();
    if again || is_waiting() || AT_ONCE.load(Ordering::Relaxed) {
        output::remove_temporary();
        std::process::exit(128 + signal);
    }
    if Launched::detect().is_some_and(|launched| launched.size > 1) {
        // A launcher kills its processes soon, and what is interrupted writes no result.
        output::remove_temporary();
    }
    STOP.store(true, Ordering::Relaxed);
    terminal::message(match signal {
        SIGTERM => "stopping after SIGTERM; another one ends at once",
        SIGHUP => "stopping after SIGHUP; another one ends at once",
        _ => "stopping; Ctrl-C again ends at once",
    });
}

/// The signals that this process ignores, a bit each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
