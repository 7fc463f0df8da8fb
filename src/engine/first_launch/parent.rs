//! Starts the processes of the first launches, and tells which devices survive them,
//! by the answers and the ends of the processes.

use std::io::{self, BufRead, BufReader, BufWriter};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::job::{Job, Words};
use super::{Answer, FirstLaunchError, child};
use crate::codelet::KernelArgument;
use crate::machine::host::Memory;
use crate::machine::{Device, DeviceKind, RuntimeKind};
use crate::runtime::own_process;
use crate::runtime::select::{self, DeviceSpec, Selection, Source};
use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV};
use pdawl_core::graph::TaskGraph;

/// The longest time until the process takes its job, and that of all launches on buffers that
/// lie alike. A kernel that takes longer on a CPU mostly leaves its buffers early, and a GPU may
/// be there for it.
const LIMIT: Duration = Duration::from_secs(10);

/// The longest time until the process takes its job, and that of launches, on a machine that
/// does other work as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a wish to stop is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// Memory that the launches need, as a multiple of the kernels' data.
const COPIES: u64 = 4;

/// Kernels that are launched first.
pub struct Tried<'a> {
    /// The kernels in OpenCL C, each with its data.
    pub graph: &'a TaskGraph,
    /// Of each kernel of the graph.
    pub words: &'a [Words],
    /// Whether contents decide what the kernels touch; otherwise all data are zeros.
    pub contents: bool,
    pub stop: &'a AtomicBool,
}

/// What was found out.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// For each device of the selection that computes in the process that uses it, as it is
    /// selected first: its name with its driver, and what is to be done with it.
    pub verdicts: Vec<(DeviceSpec, String, Verdict)>,
    /// By kernel of the graph: its arguments, as a compiler reports them. Those of kernels that
    /// no device has compiled are missing.
    pub arguments: Vec<Option<Vec<KernelArgument>>>,
}

/// Whether a device computes in the process that uses it. Others protect their memory, and
/// report what fails.
pub fn runs_here(device: &Device) -> bool {
    device.kind == DeviceKind::Cpu && device.runtime == RuntimeKind::Opencl
}

/// Launches kernels on each device of a selection that [`runs_here`], in processes of their own.
///
/// # Errors
/// When `stop` was set.
pub fn examine(selection: &Selection, tried: &Tried) -> Result<Examined, FirstLaunchError> {
    let mut examined = Examined {
        verdicts: Vec::new(),
        arguments: vec![None; tried.graph.kernels().len()],
    };
    for (spec, device) in in_process(selection) {
        let verdict = try_on(spec, &device, tried, &mut examined.arguments)?;
        examined.verdicts.push((spec, device, verdict));
    }
    Ok(examined)
}

/// The devices of a selection that compute here, each once, as it is selected first, and their
/// names with the drivers.
fn in_process(selection: &Selection) -> Vec<(DeviceSpec, String)> {
    if !selection.names_opencl() {
        return Vec::new();
    }
    let found = select::driver_devices(select::gpu_runtime())
        .unwrap_or_default()
        .into_iter();
    found
        .filter(runs_here)
        .filter_map(|device| {
            let own: Selection = device.name.parse().ok()?;
            let source: Source = own.devices().first()?.source;
            let mut selected = selection.devices().iter();
            let spec = *selected.find(|spec| spec.source == source)?;
            let in_host_memory = DeviceSpec {
                own_memory: false,
                ..spec
            };
            let name = format!("{} ({})", device.name, device.driver);
            Some((in_host_memory, name))
        })
        .collect()
}

/// Launches kernels on a device, in a process of their own.
fn try_on(
    spec: DeviceSpec,
    device: &str,
    tried: &Tried,
    arguments: &mut [Option<Vec<KernelArgument>>],
) -> Result<Verdict, FirstLaunchError> {
    let data = tried.graph.data().iter();
    let bytes = data.fold(0u64, |sum, datum| sum.saturating_add(datum.bytes));
    if bytes.saturating_mul(COPIES) > Memory::obtainable_now() {
        return Ok(Verdict::not_made(&format!(
            "that needs {COPIES} times the memory of its buffers"
        )));
    }
    if !child::is_caught() {
        return Ok(Verdict::not_made(
            "this program was linked without what runs before its `main`",
        ));
    }
    let job = match Job::of(spec.to_string(), tried.graph, tried.contents) {
        Ok(job) => job,
        Err(why) => return Ok(Verdict::not_made(&why)),
    };
    let process = own_process::command().and_then(|mut command| command.spawn());
    match process.and_then(|child| attend(child, &job, tried)) {
        Ok(Some((answers, end))) => {
            let order = tried.graph.order();
            for answer in &answers {
                if let Answer::Compiled(kernel, reported) = answer
                    && let Some(id) = order.get(*kernel)
                {
                    arguments[id.0].get_or_insert_with(|| reported.clone());
                }
            }
            let words = |kernel: usize| order.get(kernel).and_then(|id| tried.words.get(id.0));
            Ok(verdict(device, &answers, end, words))
        }
        Ok(None) => Err(FirstLaunchError::Interrupted),
        Err(error) => Ok(Verdict::not_made(&error.to_string())),
    }
}

/// Waits for a process and returns its answers; `None` if `stop` was set.
fn attend(mut child: Child, job: &Job, tried: &Tried) -> io::Result<Option<(Vec<Answer>, End)>> {
    let (send, heard) = channel();
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let mut answers = Vec::new();
    let end = thread::scope(|scope| {
        // Either pipe may block.
        scope.spawn(move || listen(stdout?, &send));
        let mut job = stdin.map(|stdin| (stdin, job));
        // Since when it is waited for, and the time that it had computed then.
        let mut since = Some((Instant::now(), Duration::MAX));
        let mut launches = false;
        loop {
            match heard.recv_timeout(PAUSE) {
                Ok(answer) => {
                    match answer {
                        Answer::Ready => {
                            if let Some((stdin, job)) = job.take() {
                                scope.spawn(move || {
                                    // A process that has ended reads no more.
                                    let _ = job.write(tried.graph, &mut BufWriter::new(stdin));
                                });
                            }
                            // Reading and compiling take their time.
                            since = None;
                        }
                        Answer::Ended => {
                            launches = false;
                            since = None;
                        }
                        Answer::Launches { .. } if !launches => {
                            launches = true;
                            since = Some((Instant::now(), own_process::computed(child.id())));
                        }
                        _ => {}
                    }
                    answers.push(answer);
                }
                Err(RecvTimeoutError::Disconnected) => break child.wait().map(end_of).map(Some),
                Err(RecvTimeoutError::Timeout) => {
                    let stops = tried.stop.load(Ordering::Relaxed);
                    let is_late = since.is_some_and(|(since, before)| {
                        let time = since.elapsed();
                        let is_over =
                            || own_process::computed(child.id()).saturating_sub(before) >= LIMIT;
                        time >= PATIENCE || (time >= LIMIT && is_over())
                    });
                    if !stops && !is_late {
                        continue;
                    }
                    let ended = child.kill().and_then(|()| child.wait());
                    break ended.map(|_| (!stops).then_some(End::Late));
                }
            }
        }
    })?;
    let stopped = tried.stop.load(Ordering::Relaxed);
    Ok(end.filter(|_| !stopped).map(|end| (answers, end)))
}

/// Hears what a process answers, until it ends.
fn listen(stdout: impl io::Read, send: &Sender<Answer>) -> Option<()> {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        send.send(serde_json::from_str(&line).ok()?).ok()?;
    }
    None
}

fn end_of(status: ExitStatus) -> End {
    match status.signal() {
        Some(signal) => End::Signal(signal),
        None => End::Status(status.code().unwrap_or(1)),
    }
}

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Status(i32),
    Signal(i32),
    /// Its launches took longer than it may, and it was ended.
    Late,
}

/// What is to be done with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs the kernels.
    Fine,
    /// It may take part, and the user should know this.
    Note(String),
    /// Its driver does not survive the kernels, for this reason.
    LeaveOut(String),
    /// A kernel does this.
    Fault(String),
}

/// How far from a buffer another one may be meant.
const FAR: u64 = 4096;

/// A launch that was reported: its kernel, and the number of its first buffer.
#[derive(Clone, Copy)]
struct Launch<'a> {
    words: Option<&'a Words>,
    first: u64,
}

impl Launch<'_> {
    fn kernel(self) -> String {
        let known = self.words.map(|words| format!("kernel `{}`", words.kernel));
        known.unwrap_or_else(|| "a kernel".to_owned())
    }

    /// So many bytes beside a region, in words.
    fn beside(self, region: u64, after: bool, bytes: u64) -> String {
        let side = match after {
            true => "past the end",
            false => "before the beginning",
        };
        let index = region.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let buffer = (self.words.zip(index)).and_then(|(words, index)| words.buffers.get(index));
        let buffer = buffer.map_or("a buffer", String::as_str);
        let other = match bytes > FAR {
            true => ", or another buffer is meant,",
            false => "",
        };
        format!("{side} of {buffer} by {bytes} bytes{other}")
    }
}

/// The verdict on a device, which is named with its driver. `words` has those of kernels, in
/// the order of their launches.
fn verdict<'a>(
    device: &str,
    answers: &[Answer],
    end: End,
    words: impl Fn(usize) -> Option<&'a Words>,
) -> Verdict {
    // The launch that was not ended, the last one that was reported.
    let mut running: Option<Launch> = None;
    for answer in answers {
        let launch = running.unwrap_or(Launch {
            words: None,
            first: 0,
        });
        match answer {
            Answer::Ready | Answer::Compiled(..) | Answer::Ended => {}
            Answer::Launches { kernel, first } => {
                running = Some(Launch {
                    words: words(*kernel),
                    first: *first,
                });
            }
            Answer::Launched => running = None,
            Answer::Outside {
                region,
                after,
                bytes,
            } => {
                return Verdict::Fault(format!(
                    "{} reads or writes {} on {device}",
                    launch.kernel(),
                    launch.beside(*region, *after, *bytes)
                ));
            }
            Answer::Overwritten {
                region,
                after,
                bytes,
            } => {
                return Verdict::Fault(format!(
                    "{} writes {} on {device}",
                    launch.kernel(),
                    launch.beside(*region, *after, *bytes)
                ));
            }
            Answer::Elsewhere => {
                return match running {
                    Some(launch) => Verdict::Fault(format!(
                        "{} reads or writes at an address outside of all its buffers on {device}",
                        launch.kernel()
                    )),
                    None => left_out("SIGSEGV"),
                };
            }
            Answer::Refused(why) => return Verdict::not_made(why),
            Answer::Well => return Verdict::Fine,
        }
    }
    let began = answers.contains(&Answer::Ready);
    match (end, running) {
        (End::Late, _) => Verdict::Note(format!(
            "{device}: the first launch in a process of its own took too long and was ended; it \
             had not left its buffers"
        )),
        (End::Signal(SIGKILL), _) => Verdict::not_made("the system ended that process"),
        (End::Signal(SIGFPE), Some(launch)) => Verdict::Fault(format!(
            "{} divides an integer by zero on {device}",
            launch.kernel()
        )),
        (End::Signal(signal), Some(launch)) if signal != SIGABRT => Verdict::Fault(format!(
            "{} ends the process with {} on {device}",
            launch.kernel(),
            name(signal)
        )),
        (End::Signal(signal), _) => left_out(&name(signal)),
        (End::Status(status), _) if began => left_out(&format!("status {status}")),
        (End::Status(status), _) => {
            Verdict::not_made(&format!("that process ended with status {status}"))
        }
    }
}

/// Kernels cannot abort: that is a driver's assertion, mostly its compiler's.
fn left_out(how: &str) -> Verdict {
    Verdict::LeaveOut(format!(
        "its driver ends the process with {how} when it compiles the kernel"
    ))
}

impl Verdict {
    /// The launches were not made, for this reason.
    fn not_made(why: &str) -> Self {
        Self::Note(format!(
            "the kernel was not launched in a process of its own first: {why}"
        ))
    }
}

fn name(signal: i32) -> String {
    let known = match signal {
        SIGABRT => "SIGABRT",
        SIGBUS => "SIGBUS",
        SIGILL => "SIGILL",
        SIGSEGV => "SIGSEGV",
        _ => return format!("signal {signal}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCH: Answer = Answer::Launches {
        kernel: 0,
        first: 7,
    };

    fn of(answers: &[Answer], end: End) -> Verdict {
        let words = Words {
            kernel: "k".to_owned(),
            buffers: vec!["buffer `a`".to_owned(), "buffer `b`".to_owned()],
        };
        let all: Vec<Answer> = [&[Answer::Ready], answers].concat();
        verdict("d", &all, end, |kernel| (kernel == 0).then_some(&words))
    }

    #[test]
    fn faults_name_kernel_buffer_distance_and_device() {
        let died = End::Status(1);
        for (answer, text) in [
            (
                Answer::Outside {
                    region: 8,
                    after: true,
                    bytes: 4,
                },
                "kernel `k` reads or writes past the end of buffer `b` by 4 bytes on d",
            ),
            (
                Answer::Outside {
                    region: 7,
                    after: true,
                    bytes: 160_000_000,
                },
                "kernel `k` reads or writes past the end of buffer `a` by 160000000 bytes, or \
                 another buffer is meant, on d",
            ),
            (
                Answer::Overwritten {
                    region: 7,
                    after: false,
                    bytes: 1,
                },
                "kernel `k` writes before the beginning of buffer `a` by 1 bytes on d",
            ),
            (
                Answer::Elsewhere,
                "kernel `k` reads or writes at an address outside of all its buffers on d",
            ),
        ] {
            let verdict = of(&[LAUNCH, answer], died);
            assert_eq!(verdict, Verdict::Fault(text.to_owned()));
        }
        for signal in [SIGSEGV, SIGILL, SIGFPE] {
            let verdict = of(&[LAUNCH], End::Signal(signal));
            assert!(matches!(verdict, Verdict::Fault(_)), "{verdict:?}");
        }
    }

    #[test]
    fn a_driver_that_ends_outside_of_a_launch_is_left_out() {
        let compiling = [vec![], vec![LAUNCH, Answer::Launched]];
        for answers in compiling {
            for end in [End::Signal(SIGSEGV), End::Signal(SIGABRT), End::Status(3)] {
                let verdict = of(&answers, end);
                assert!(matches!(verdict, Verdict::LeaveOut(_)), "{verdict:?}");
            }
            let with_fault = [answers, vec![Answer::Elsewhere]].concat();
            let verdict = of(&with_fault, End::Status(1));
            assert!(matches!(verdict, Verdict::LeaveOut(_)), "{verdict:?}");
        }
        let aborted = of(&[LAUNCH], End::Signal(SIGABRT));
        assert!(matches!(aborted, Verdict::LeaveOut(_)), "{aborted:?}");
    }

    #[test]
    fn what_was_not_found_out_is_a_note() {
        let refused = Answer::Refused("no memory".to_owned());
        for (answers, end) in [
            (vec![refused], End::Status(0)),
            (vec![LAUNCH], End::Late),
            (vec![LAUNCH], End::Signal(SIGKILL)),
        ] {
            let verdict = of(&answers, end);
            assert!(matches!(verdict, Verdict::Note(_)), "{verdict:?}");
        }
        let unread = verdict("d", &[], End::Status(2), |_| None);
        assert!(matches!(unread, Verdict::Note(_)), "{unread:?}");
        let well = of(&[LAUNCH, Answer::Launched, Answer::Well], End::Status(0));
        assert_eq!(well, Verdict::Fine);
    }
}
