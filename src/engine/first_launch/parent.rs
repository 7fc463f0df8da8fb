//! Starts the processes of the first launches, and tells which devices survive them.

use std::io::{self, BufRead, BufReader, BufWriter};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::job::{Job, Words};
use super::verdict::{End, Verdict, verdict};
use super::{Answer, FirstLaunchError, child};
use crate::codelet::KernelArgument;
use crate::machine::host::Host;
use crate::machine::{Device, DeviceKind, RuntimeKind};
use crate::runtime::own_process;
use crate::runtime::select::{self, DeviceSpec, Selection, Source};
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
    let found = select::driver_devices().unwrap_or_default().into_iter();
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
    if bytes.saturating_mul(COPIES) > Host::detect().memory.obtainable(0) {
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
