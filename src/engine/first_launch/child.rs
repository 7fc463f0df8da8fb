//! The process of the first launches.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::Answer;
use super::job::Job;
use crate::graph::reference::{self, Moment};
use crate::runtime::guarded::{self, Exact, Left, Side};
use crate::runtime::select::{self, Selection};
use crate::runtime::{DeviceId, Runtime, own_process};
use pdawl_core::graph::{KernelId, TaskGraph};

/// Whether [`before_main`] was called, as it is in every process that has this code.
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// Where answers go.
static ANSWERS: OnceLock<OwnedFd> = OnceLock::new();

// SAFETY: the functions of this section take no arguments that must be used, and this one is
// called once, by the loader.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    CAUGHT.store(true, Ordering::Relaxed);
    // SAFETY: there are no other threads yet.
    if unsafe { own_process::is_again() } {
        let status = match std::panic::catch_unwind(run) {
            Ok(()) => 0,
            Err(_) => 1,
        };
        own_process::leave(status);
    }
}

/// Whether this program, started again, would be caught.
pub(super) fn is_caught() -> bool {
    CAUGHT.load(Ordering::Relaxed)
}

fn run() {
    // Where this is refused, a crash leaves a file, and an end of the parent leaves this
    // process.
    let no_core = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, no_core);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if keep_output().is_err() {
        return;
    }
    tell(&Answer::Ready);
    tell(&match launch() {
        Ok(()) => Answer::Well,
        Err(why) => Answer::Refused(why),
    });
}

/// Keeps the output for answers alone: what kernels and drivers print goes nowhere.
fn keep_output() -> io::Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    let _ = ANSWERS.set(output);
    Ok(())
}

/// Launches what the job has, on its device.
fn launch() -> Result<(), String> {
    let words = |error: &dyn std::error::Error| error.to_string();
    let (job, graph) = Job::read(&mut io::stdin().lock()).map_err(|error| words(&error))?;
    let selection: Selection = job.device.parse().map_err(|_| job.device.clone())?;
    let opened = select::open_union(Some(&selection), false);
    let (mut runtime, _) = opened.map_err(|error| words(&error))?;
    compile(&mut runtime, &graph)?;
    let never = AtomicBool::new(false);
    for exact in [end(&graph), Exact::Begin] {
        runtime.guard_host_memory(exact);
        let mut watch = |id: KernelId, moment| {
            watch(id.0, graph.kernel(id).memories().count() as u64, moment);
        };
        let launched = reference::watched(&mut runtime, &graph, 0, &never, &mut watch);
        launched.map_err(|error| words(&error))?;
        tell(&Answer::Ended);
    }
    Ok(())
}

/// How exactly buffers end. A kernel that takes a pointer for one to another type may need the
/// alignment that OpenCL promises.
fn end(graph: &TaskGraph) -> Exact {
    let sources = graph
        .kernels()
        .iter()
        .filter_map(|kernel| kernel.codelet.opencl.as_ref());
    let casts = |text: &str| {
        text.match_indices('*')
            .any(|(at, _)| text[at + 1..].trim_start().starts_with(')'))
    };
    match sources.map(|of_opencl| of_opencl.source.text()).any(casts) {
        true => Exact::AlignedEnd,
        false => Exact::End,
    }
}

/// Compiles all kernels and tells their arguments.
fn compile(runtime: &mut dyn Runtime, graph: &TaskGraph) -> Result<(), String> {
    for (index, kernel) in graph.kernels().iter().enumerate() {
        let Some(of_opencl) = &kernel.codelet.opencl else {
            continue;
        };
        let arguments = runtime.arguments(DeviceId(0), of_opencl);
        tell(&Answer::Compiled(
            index,
            arguments.map_err(|error| error.to_string())?,
        ));
    }
    Ok(())
}

fn watch(kernel: usize, buffers: u64, moment: Moment) {
    let first = guarded::next().saturating_sub(buffers);
    if moment == Moment::Begins {
        tell(&Answer::Launches { kernel, first });
        // As late as this: drivers have handlers of their own while they start.
        if let Err(error) = guarded::watch(report) {
            tell(&Answer::Refused(error.to_string()));
        }
        return;
    }
    if let Some(Left {
        region,
        side,
        bytes,
    }) = guarded::overwritten(first)
    {
        let after = side == Side::After;
        tell(&Answer::Overwritten {
            region,
            after,
            bytes,
        });
        own_process::leave(1);
    }
    tell(&Answer::Launched);
}

/// Writes an answer. If the parent has gone, this process will be ended.
fn tell(answer: &Answer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        send(&line);
    }
}

fn send(line: &[u8]) {
    if let Some(answers) = ANSWERS.get() {
        let _ = rustix::io::write(answers, line);
    }
}

/// Writes the answer of a fault, without memory of its own: a handler of signals calls it.
fn report(left: Option<Left>) {
    let mut line = [0u8; 128];
    let length = line.len();
    let mut rest = &mut line[..];
    let written = match left {
        Some(Left {
            region,
            side,
            bytes,
        }) => writeln!(
            rest,
            r#"{{"Outside":{{"region":{region},"after":{},"bytes":{bytes}}}}}"#,
            side == Side::After
        ),
        None => writeln!(rest, r#""Elsewhere""#),
    };
    let used = length - rest.len();
    if written.is_ok() {
        send(&line[..used]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_prints_are_answers() {
        for (text, answer) in [
            (
                r#"{"Outside":{"region":18446744073709551615,"after":false,"bytes":18446744073709551615}}"#,
                Answer::Outside {
                    region: u64::MAX,
                    after: false,
                    bytes: u64::MAX,
                },
            ),
            (r#""Elsewhere""#, Answer::Elsewhere),
        ] {
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
            assert!(text.len() < 128);
        }
    }

    #[test]
    fn this_program_is_caught_before_its_main() {
        assert!(is_caught());
    }
}
