//! Starts the program, forwards signals to it, and waits until it has ended.
//!
//! Ctrl-C at a terminal reaches the program and this process alike, so it is not
//! forwarded there. This process stays until the program has ended; a signal that comes later
//! ends it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, pidfd_open, pidfd_send_signal};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use super::environment::Environment;
use crate::failure::Failure;
use crate::terminal;

/// Whether no program runs that signals are forwarded to.
static ALONE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// How the program ended.
pub struct Ended {
    pub pid: u32,
    pub status: Option<i32>,
    pub signal: Option<i32>,
    pub seconds: f64,
}

impl Ended {
    fn of((pid, status): (u32, ExitStatus), began: Instant) -> Self {
        Self {
            pid,
            status: status.code(),
            signal: status.signal(),
            seconds: began.elapsed().as_secs_f64(),
        }
    }

    /// What ended it, if it was a signal: `SIGSEGV, signal 11`.
    pub fn killed_by(&self) -> Option<String> {
        let number = self.signal?;
        Some(match signal_hook::low_level::signal_name(number) {
            Some(name) => format!("{name}, signal {number}"),
            None => format!("signal {number}"),
        })
    }

    /// The exit status as shells report it.
    pub fn shell_status(&self) -> u8 {
        let status = match self.signal {
            Some(signal) => 128 + signal,
            None => self.status.unwrap_or(1),
        };
        u8::try_from(status).unwrap_or(1)
    }
}

/// Runs the program.
pub fn run(command: &[OsString], environment: &Environment) -> Result<Ended, Failure> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| Failure::usage("the program is missing", "pdawl exec PROGRAM"))?;
    let mut process = Command::new(program);
    process.args(arguments);
    environment.give(&mut process);
    let began = Instant::now();
    let ended = watched(&mut process, |error| not_started(program, error))?;
    Ok(Ended::of(ended, began))
}

/// As [`attended`], for a process without which this one has nothing to do: what comes before
/// or after it ends this process. Returns its number and status. `refused` makes a failure of why
/// it does not start.
pub fn watched(
    process: &mut Command,
    refused: impl FnOnce(&io::Error) -> Failure,
) -> Result<(u32, ExitStatus), Failure> {
    // Before the start, so that no signal ends this process and leaves the other alone.
    ALONE.store(false, Ordering::Relaxed);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ALONE)).map_err(unable)?;
    }
    let ended = attended(process);
    ALONE.store(true, Ordering::Relaxed);
    let (pid, output) = ended.map_err(|error| refused(&error))?;
    Ok((pid, output.status))
}

/// Starts a process, forwards signals to it, and waits until it has ended. Returns its number,
/// its status, and what it wrote to pipes.
///
/// # Errors
/// When it cannot be started, or not be waited for.
pub fn attended(process: &mut Command) -> io::Result<(u32, Output)> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])?;
    let child = process.spawn()?;
    let (pid, handle, forwarding) = (child.id(), signals.handle(), forward_to(&child));
    let thread = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            signals.forever().for_each(forwarding);
        });
    let output = child.wait_with_output();
    handle.close();
    if let Ok(thread) = thread {
        // It ends with the handle.
        let _ = thread.join();
    }
    Ok((pid, output?))
}

fn unable(error: io::Error) -> Failure {
    Failure::failed(
        format!("the program cannot be watched: {error}"),
        "the same where signals and processes are allowed",
    )
}

/// What hands a signal on. The descriptor names the program even after its end, when
/// another process may have its number.
fn forward_to(child: &Child) -> impl Fn(i32) + Send + 'static {
    let program = Pid::from_raw(child.id().cast_signed());
    let program = program.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    move |number| {
        let Some(program) = &program else { return };
        if matches!(number, SIGINT | SIGQUIT) && is_foreground() {
            return;
        }
        if let Some(signal) = Signal::from_named_raw(number) {
            // A program that has ended needs no signal.
            let _ = pidfd_send_signal(program, signal);
        }
    }
}

/// Whether this process's group has the terminal: the terminal's signals then go to the
/// program as well.
fn is_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

/// Says why the program did not start; the status is that of shells.
fn not_started(program: &OsString, error: &io::Error) -> Failure {
    let name = program.to_string_lossy();
    let (what, remedy, status) = match error.kind() {
        io::ErrorKind::NotFound => (
            format!("the program {name} is not found"),
            "its path, such as ./program, or a program in PATH",
            127,
        ),
        _ => (
            format!("the program {name} cannot be started: {error}"),
            "a file that may be executed (`chmod +x`) and was built for this machine",
            126,
        ),
    };
    terminal::error(&what, Some(remedy));
    Failure::Program(status)
}
