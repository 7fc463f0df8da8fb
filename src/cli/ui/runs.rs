//! Simulated runs of the page, each a `pdawl run` in a process of its own: what it takes is
//! bounded, and it ends with its reader.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pdawl_api::executable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, prlimit};
use tempfile::TempDir;

use super::http::Connection;

/// How long a run may take, and how many bytes it may have.
pub const SECONDS: u64 = 10;
const BYTES: u64 = 4 << 30;
/// How often a wait looks whether its reader is there.
const LOOK: Duration = Duration::from_millis(50);

/// Places for runs, as many as the machine has cores.
pub struct Runs {
    free: Mutex<usize>,
    freed: Condvar,
    folder: TempDir,
    next: AtomicU64,
}

/// Why a run has no result.
#[derive(Debug)]
pub enum RunError {
    /// Its reader has gone.
    Left,
    Refused(String),
}

/// What a run printed, and drew.
pub struct Ran {
    pub report: Vec<u8>,
    pub chart: Option<Vec<u8>>,
}

/// A place that a run has.
struct Place<'a>(&'a Runs);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// Files that go when the run has been answered.
struct Scratch(Vec<PathBuf>);

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in &self.0 {
            // Those of a run that failed are not there.
            let _ = fs::remove_file(path);
        }
    }
}

impl Runs {
    /// # Errors
    /// When there is no place for temporary files.
    pub fn new() -> std::io::Result<Self> {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            free: Mutex::new(cores),
            freed: Condvar::new(),
            folder: tempfile::tempdir()?,
            next: AtomicU64::new(0),
        })
    }

    fn place(&self, client: &Connection) -> Result<Place<'_>, RunError> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            if client.is_over() {
                return Err(RunError::Left);
            }
            let waited = self.freed.wait_timeout(free, LOOK);
            free = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Ok(Place(self))
    }

    /// Runs `pdawl run` with these words, and draws a chart of this format.
    ///
    /// # Errors
    /// What the program says, and when it takes too long or its reader goes.
    pub fn run(
        &self,
        words: &[String],
        ending: Option<&str>,
        client: &Connection,
    ) -> Result<Ran, RunError> {
        let unable = |error: std::io::Error| {
            RunError::Refused(format!("the run cannot be started: {error}"))
        };
        let place = self.place(client)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = |ending: &str| self.folder.path().join(format!("{number}.{ending}"));
        let (out, err) = (path("out"), path("err"));
        let chart = ending.map(path);
        let scratch = [Some(out.clone()), Some(err.clone()), chart.clone()];
        let scratch = Scratch(scratch.into_iter().flatten().collect());
        let mut command = executable::again().map_err(unable)?;
        command.arg("run").args(words).args(["--format", "json"]);
        if let Some(chart) = &chart {
            command.arg("--gantt").arg(chart);
        }
        command.stdin(Stdio::null());
        // A run is short: it asks the system for memory rarely, which saves 5 % (glibc).
        command.env("MALLOC_TOP_PAD_", (128 << 20).to_string());
        command.stdout(File::create(&out).map_err(unable)?);
        command.stderr(File::create(&err).map_err(unable)?);
        let child = command.spawn().map_err(unable)?;
        let ended = attend(child, client);
        drop(place);
        ended?.map_err(RunError::Refused).map_err(|refused| {
            let said = fs::read_to_string(&err).unwrap_or_default();
            let said = said.trim().trim_start_matches("pdawl: ");
            match said.is_empty() {
                true => refused,
                false => RunError::Refused(said.to_owned()),
            }
        })?;
        let ran = Ran {
            report: fs::read(&out).map_err(unable)?,
            chart: chart.map(fs::read).transpose().map_err(unable)?,
        };
        drop(scratch);
        Ok(ran)
    }
}

/// Waits for the end of a process, which is killed when it has taken its time or its reader goes.
/// The inner error says how it failed.
fn attend(mut child: Child, client: &Connection) -> Result<Result<(), String>, RunError> {
    let pid = Pid::from_child(&child);
    let limit = Rlimit {
        current: Some(BYTES),
        maximum: Some(BYTES),
    };
    // One that has ended needs no limit.
    let _ = prlimit(Some(pid), Resource::Data, limit);
    let began = Instant::now();
    let handle = pidfd_open(pid, PidfdFlags::empty());
    let why = loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Ok(match (status.success(), status.signal()) {
                (true, _) => Ok(()),
                (false, Some(_)) => Err(format!(
                    "the run was ended: it may take {} of memory here; `pdawl run` has no such \
                     limit",
                    pdawl_api::quantity::Bytes(BYTES)
                )),
                (false, None) => Err(format!("the run failed: {status}")),
            });
        }
        if client.is_over() {
            break RunError::Left;
        }
        if began.elapsed() > Duration::from_secs(SECONDS) {
            break RunError::Refused(format!(
                "this run takes longer than {SECONDS} s to simulate, which is too much for a page: \
                 choose fewer tasks (a smaller size or a greater tile) or fewer steps, or give its \
                 command to a shell"
            ));
        }
        match &handle {
            Ok(handle) => {
                let stream = client.stream().as_fd();
                let mut waits = [
                    PollFd::new(handle, PollFlags::IN),
                    PollFd::from_borrowed_fd(stream, PollFlags::RDHUP),
                ];
                let look = Timespec {
                    tv_sec: 0,
                    tv_nsec: LOOK.as_nanos() as i64,
                };
                // Whatever it says, the loop looks again.
                let _ = poll(&mut waits, Some(&look));
            }
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    };
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    Err(why)
}
