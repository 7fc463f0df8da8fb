//! Simulated runs of the page, each a `pdawl run` in a process of its own: what it takes is
//! bounded, and it ends with its reader.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use pdawl_api::executable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};
use tempfile::TempDir;

use super::http::Connection;

/// How long a run may take, and how many bytes it may have: the program itself refuses graphs of
/// more tasks than fit.
pub const SECONDS: u64 = 10;
const BYTES: u64 = 2 << 30;
/// How often a wait looks whether its reader is there.
const LOOK: Duration = Duration::from_millis(50);

/// Places for runs, as many as the machine has cores.
pub struct Runs {
    free: (Sender<()>, Receiver<()>),
    folder: TempDir,
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

impl Runs {
    /// Limits the memory of this process, whose limit is that of its runs from their first
    /// instruction on.
    ///
    /// # Errors
    /// When there is no place for temporary files.
    pub fn new() -> io::Result<Self> {
        let limit = getrlimit(Resource::Data);
        let least = limit.current.map_or(BYTES, |bytes| bytes.min(BYTES));
        let current = Some(least);
        setrlimit(Resource::Data, Rlimit { current, ..limit })?;
        let cores = thread::available_parallelism().map_or(2, usize::from);
        let free = bounded(cores);
        for _ in 0..cores {
            // It has room for all.
            let _ = free.0.send(());
        }
        let folder = tempfile::tempdir()?;
        Ok(Self { free, folder })
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
        let unable =
            |error: io::Error| RunError::Refused(format!("the run cannot be started: {error}"));
        while self.free.1.recv_timeout(LOOK).is_err() {
            if client.is_over() {
                return Err(RunError::Left);
            }
        }
        let ran = self.placed(words, ending, client);
        // It has room for all.
        let _ = self.free.0.send(());
        ran.map_err(unable)?
    }

    /// Runs it at once. The outer error is that of its files.
    fn placed(
        &self,
        words: &[String],
        ending: Option<&str>,
        client: &Connection,
    ) -> io::Result<Result<Ran, RunError>> {
        let folder = tempfile::tempdir_in(&self.folder)?;
        let path = |name: &str| folder.path().join(name);
        let chart = ending.map(|ending| path(&format!("chart.{ending}")));
        let mut command = executable::again()?;
        command.arg("run").args(words).args(["--format", "json"]);
        if let Some(chart) = &chart {
            command.arg("--gantt").arg(chart);
        }
        command.stdin(Stdio::null());
        // A run is short: it asks the system for memory rarely, which saves 5 % (glibc).
        command.env("MALLOC_TOP_PAD_", (128 << 20).to_string());
        command.stdout(File::create(path("out"))?);
        command.stderr(File::create(path("err"))?);
        Ok(match attend(command.spawn()?, client) {
            Ok(Ok(())) => Ok(Ran {
                report: fs::read(path("out"))?,
                chart: chart.map(fs::read).transpose()?,
            }),
            Ok(Err(why)) => {
                let said = fs::read_to_string(path("err")).unwrap_or_default();
                let said = said.trim().trim_start_matches("pdawl: ");
                Err(RunError::Refused(match said.is_empty() {
                    true => why,
                    false => said.to_owned(),
                }))
            }
            Err(error) => Err(error),
        })
    }
}

/// Waits for the end of a process, which is killed when it has taken its time or its reader goes.
/// The inner error says how it failed.
fn attend(mut child: Child, client: &Connection) -> Result<Result<(), String>, RunError> {
    let pid = Pid::from_child(&child);
    let began = Instant::now();
    let handle = pidfd_open(pid, PidfdFlags::empty());
    let why = loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Ok(match (status.success(), status.signal()) {
                (true, _) => Ok(()),
                (false, Some(signal)) => Err(format!(
                    "signal {signal} ended the run, which may have {} of memory here; `pdawl run` \
                     has no such limit",
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
