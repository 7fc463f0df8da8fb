//! The process of the first launches.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use pdawl::engine::corun::kernel::launch_once;
use pdawl::engine::graph::reference;
use pdawl::engine::watched::Moment;
use pdawl::graph::TaskGraph;
use pdawl::graph::spec::Kernel;
use pdawl::graph::spec::source::KernelInfo;
use pdawl::runtime::guarded::{self, Left, Side};
use pdawl::workload::kernel::UserKernel;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::{Answer, Launch};
use crate::cli::failure::Failure;
use crate::cli::graph::failure;
use crate::cli::spec::compile::Compiler;
use crate::cli::spec::described::Described;
use crate::cli::terminal;

/// Launches a kernel on a device, tells what happens, and ends the process.
pub fn launch_kernel(
    device: &str,
    described: &Described,
    user: &UserKernel,
    stop: &AtomicBool,
) -> ! {
    run(device, |compiler| {
        compiler.check(described)?;
        let runtime = compiler.runtime.as_mut();
        launch_once(runtime, 0, user, stop, &mut |moment| {
            tell_moment(moment, user.kernel(), user.info());
        })
        .map_err(Failure::of)
    })
}

/// The same for the kernels of a graph, one after the other.
pub fn launch_graph(
    device: &str,
    described: &[Described],
    graph: &TaskGraph,
    stop: &AtomicBool,
) -> ! {
    run(device, |compiler| {
        for described in described {
            compiler.check(described)?;
        }
        let runtime = compiler.runtime.as_mut();
        let made = reference::watched(runtime, graph, 0, stop, &mut |id, moment| {
            if let Some(described) = described.get(id.0) {
                tell_moment(moment, &described.kernel, &described.info);
            }
        });
        made.map(drop).map_err(failure)
    })
}

fn run(device: &str, launch: impl FnOnce(&mut Compiler) -> Result<(), Failure>) -> ! {
    // Where this is refused, a crash leaves a file, and an end of the parent leaves this
    // process.
    let no_core = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, no_core);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    tell(&Answer::Compiles);
    let launched = Compiler::guarded(device).and_then(|mut compiler| launch(&mut compiler));
    tell(&match launched {
        Ok(()) => Answer::Well,
        Err(failure) => Answer::Refused(failure.in_words()),
    });
    // What drivers and runtime release at an end takes time, and nobody needs it.
    signal_hook::low_level::exit(0)
}

fn tell_moment(moment: Moment, kernel: &Kernel, info: &KernelInfo) {
    let buffers: Vec<String> = (kernel.buffers())
        .map(|(position, buffer)| {
            let name = info
                .parameters
                .get(position)
                .map_or("", |p| p.name.as_str());
            format!(
                "buffer `{name}` (argument {position}, {} bytes)",
                buffer.bytes()
            )
        })
        .collect();
    let first = guarded::next().saturating_sub(buffers.len() as u64);
    if moment == Moment::Begins {
        tell(&Answer::Launches(Launch {
            kernel: kernel.name.clone(),
            first,
            buffers,
        }));
        // As late as this: drivers have handlers of their own while they start.
        if let Err(error) = guarded::watch(report) {
            tell(&Answer::Refused(error.to_string()));
        }
        return;
    }
    if let Some(Left { region, side }) = guarded::overwritten(first) {
        let after = side == Side::After;
        tell(&Answer::Overwritten { region, after });
        signal_hook::low_level::exit(1);
    }
    tell(&Answer::Launched);
}

/// Prints an answer. If the parent has gone, this process will be ended.
fn tell(answer: &Answer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        let _ = rustix::io::write(terminal::output(), &line);
    }
}

/// Prints the answer of a fault, without memory of its own: a handler of signals calls it.
fn report(left: Option<Left>) {
    let mut line = [0u8; 96];
    let length = line.len();
    let mut rest = &mut line[..];
    let written = match left {
        Some(Left { region, side }) => writeln!(
            rest,
            r#"{{"Outside":{{"region":{region},"after":{}}}}}"#,
            side == Side::After
        ),
        None => writeln!(rest, r#""Elsewhere""#),
    };
    let used = length - rest.len();
    if written.is_ok() {
        let _ = rustix::io::write(terminal::output(), &line[..used]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_prints_are_answers() {
        for (text, answer) in [
            (
                r#"{"Outside":{"region":18446744073709551615,"after":false}}"#,
                Answer::Outside {
                    region: u64::MAX,
                    after: false,
                },
            ),
            (r#""Elsewhere""#, Answer::Elsewhere),
        ] {
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
            assert!(text.len() < 96);
        }
    }
}
