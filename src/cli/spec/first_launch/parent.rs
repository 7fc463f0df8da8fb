//! Starts the processes of the first launches, and chooses the devices that survive them.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use pdawl::machine::DeviceKind;
use pdawl::machine::host::Host;
use pdawl::runtime::opencl;
use pdawl::runtime::select::{DeviceSpec, Selection, Source};

use super::Answer;
use super::verdict::{End, Verdict, verdict};
use crate::cli::failure::{Failure, wrong_devices};
use crate::cli::terminal;

/// The longest time of the launches. A kernel that takes longer on a CPU mostly leaves its
/// buffers early, and a GPU may be there for it.
const LIMIT: Duration = Duration::from_secs(10);

/// How often a wish to stop is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// Memory that the launches need, as a multiple of the kernels' data.
const COPIES: u64 = 3;

/// What is launched first.
pub struct Tried<'a> {
    /// The file that the user names.
    pub file: String,
    /// Bytes of all data.
    pub bytes: u64,
    /// What the process reads from its standard input.
    pub input: Vec<Arc<[u8]>>,
    pub stop: &'a AtomicBool,
}

/// The devices that take part.
pub struct Survivors {
    /// As a list of names.
    pub devices: String,
    /// Whether the first of them has compiled the kernels and agrees with their files.
    pub checked: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Launches the kernels on each device of a list that runs them in this process. The list
/// without those whose drivers do not survive that is returned.
///
/// # Errors
/// When a kernel leaves its buffers, no device is left, or `stop` was set.
pub fn survivors(list: &str, tried: &Tried) -> Result<Survivors, Failure> {
    let selection: Selection = list.parse().map_err(wrong_devices)?;
    let mut left = selection.devices().to_vec();
    let (mut notes, mut fine) = (Vec::new(), Vec::new());
    let mut reasons = Vec::new();
    for (spec, device) in in_process(&selection) {
        match try_on(spec, &device, tried)? {
            Verdict::Fine => fine.push(spec.source),
            Verdict::Note(note) => notes.push(note),
            Verdict::LeaveOut(why) => {
                left.retain(|other| other.source != spec.source);
                reasons.push(format!("{device} is left out: {why}"));
            }
            Verdict::Fault(what) => {
                return Err(Failure::failed(
                    what,
                    format!(
                        "other sizes in {}: of the buffer, or of the work; or other indices in \
                         the kernel",
                        tried.file
                    ),
                ));
            }
        }
    }
    if left.is_empty() {
        return Err(Failure::failed(
            format!(
                "no device is left for {}: {}",
                tried.file,
                reasons.join("; ")
            ),
            "another version of the driver, or --devices with others",
        ));
    }
    notes.append(&mut reasons);
    let names: Vec<String> = left.iter().map(DeviceSpec::to_string).collect();
    Ok(Survivors {
        devices: names.join(","),
        checked: left
            .first()
            .is_some_and(|first| fine.contains(&first.source)),
        notes,
    })
}

/// The devices whose kernels run in the process that uses them, each once, as it is
/// selected first, and their names with the drivers. Others protect their memory, and
/// report what fails.
fn in_process(selection: &Selection) -> Vec<(DeviceSpec, String)> {
    let found = opencl::discover().devices.into_iter();
    found
        .filter(|found| found.info.kind == DeviceKind::Cpu)
        .filter_map(|found| {
            let source = Source::Opencl {
                platform: found.platform,
                device: found.device,
            };
            let mut selected = selection.devices().iter();
            let spec = *selected.find(|spec| spec.source == source)?;
            let in_host_memory = DeviceSpec {
                own_memory: false,
                ..spec
            };
            let name = format!("{} ({})", found.info.name, found.info.driver);
            Some((in_host_memory, name))
        })
        .collect()
}

/// Launches the kernels on a device, in a process of their own.
fn try_on(spec: DeviceSpec, device: &str, tried: &Tried) -> Result<Verdict, Failure> {
    let needed = tried.bytes.saturating_mul(COPIES);
    if needed > Host::detect().memory.obtainable(0) {
        return Ok(Verdict::Note(format!(
            "the kernel was not launched in a process of its own first: that needs {COPIES} times \
             the memory of its buffers"
        )));
    }
    let waiting = terminal::spinner();
    waiting.set_message("launching the kernel once in a process of its own");
    let process = start(spec);
    let ended = process.and_then(|child| attend(child, tried));
    waiting.finish_and_clear();
    match ended {
        Ok(Some((answers, end))) => Ok(verdict(device, &answers, end)),
        Ok(None) => Err(Failure::Interrupted),
        Err(error) => Ok(Verdict::Note(format!(
            "the kernel was not launched in a process of its own first: {error}"
        ))),
    }
}

/// Starts this program with its own arguments and `--try-on`, which follows the names of
/// the subcommand.
fn start(spec: DeviceSpec) -> io::Result<Child> {
    let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let behind = arguments.len().min(2);
    arguments.insert(behind, format!("--try-on={spec}").into());
    Command::new(env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What kernels print comes once, from this process.
        .stderr(Stdio::null())
        .spawn()
}

/// Waits for a process and returns its answers; `None` if `stop` was set.
fn attend(mut child: Child, tried: &Tried) -> io::Result<Option<(Vec<Answer>, End)>> {
    let heard = listen(&mut child, tried.input.clone())?;
    let mut answers = Vec::new();
    let mut deadline: Option<Instant> = None;
    let end = loop {
        match heard.recv_timeout(PAUSE) {
            Ok(answer) => {
                if matches!(answer, Answer::Launches(_)) && deadline.is_none() {
                    deadline = Some(Instant::now() + LIMIT);
                }
                answers.push(answer);
            }
            Err(RecvTimeoutError::Disconnected) => break end_of(child.wait()?),
            Err(RecvTimeoutError::Timeout) => {
                let stops = tried.stop.load(Ordering::Relaxed);
                let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if !stops && !is_late {
                    continue;
                }
                child.kill()?;
                child.wait()?;
                match stops {
                    true => return Ok(None),
                    false => break End::Late,
                }
            }
        }
    };
    let stopped = tried.stop.load(Ordering::Relaxed);
    Ok((!stopped).then_some((answers, end)))
}

/// Gives a process its input and hears its answers, on a thread: either may block.
fn listen(child: &mut Child, input: Vec<Arc<[u8]>>) -> io::Result<Receiver<Answer>> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (send, heard) = channel();
    let talk = move || {
        if let Some(mut stdin) = stdin {
            for bytes in input {
                // A process that has ended reads no more.
                let _ = stdin.write_all(&bytes);
            }
        }
        let Some(stdout) = stdout else { return };
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Ok(answer) = serde_json::from_str(&line)
                && send.send(answer).is_err()
            {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("first launch".to_owned())
        .spawn(talk)?;
    Ok(heard)
}

fn end_of(status: ExitStatus) -> End {
    match status.signal() {
        Some(signal) => End::Signal(signal),
        None => End::Status(status.code().unwrap_or(1)),
    }
}
