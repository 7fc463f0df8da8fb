//! What the answers and the end of a process of first launches mean.

use signal_hook::consts::{SIGABRT, SIGFPE, SIGKILL};
use signal_hook::low_level::signal_name;

use super::{Answer, Launch};

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

/// The verdict on a device, which is named with its driver.
pub fn verdict(device: &str, answers: &[Answer], end: End) -> Verdict {
    // The launch that was not ended, the last one that was reported.
    let mut running: Option<&Launch> = None;
    for answer in answers {
        let named = |region: &u64| {
            let launch =
                running.map_or("a kernel".to_owned(), |l| format!("kernel `{}`", l.kernel));
            let buffer = running.and_then(|launch| {
                let index = usize::try_from(region.checked_sub(launch.first)?).ok()?;
                launch.buffers.get(index)
            });
            (launch, buffer.map_or("a buffer", String::as_str))
        };
        let side = |after: bool| match after {
            true => "past the end",
            false => "before the beginning",
        };
        match answer {
            Answer::Compiles => {}
            Answer::Launches(launch) => running = Some(launch),
            Answer::Launched => running = None,
            Answer::Outside { region, after } => {
                let ((kernel, buffer), side) = (named(region), side(*after));
                return Verdict::Fault(format!(
                    "{kernel} reads or writes {side} of {buffer} on {device}"
                ));
            }
            Answer::Overwritten { region, after } => {
                let ((kernel, buffer), side) = (named(region), side(*after));
                return Verdict::Fault(format!("{kernel} writes {side} of {buffer} on {device}"));
            }
            Answer::Elsewhere => {
                return match running {
                    Some(launch) => Verdict::Fault(format!(
                        "kernel `{}` reads or writes at an address outside of all its buffers \
                         on {device}",
                        launch.kernel
                    )),
                    None => left_out("SIGSEGV"),
                };
            }
            Answer::Refused(why) => return not_made(why),
            Answer::Well => return Verdict::Fine,
        }
    }
    let began = answers.contains(&Answer::Compiles);
    match (end, running) {
        (End::Late, _) => Verdict::Note(format!(
            "{device}: the first launch in a process of its own took too long and was ended; it \
             had not left its buffers"
        )),
        (End::Signal(SIGKILL), _) => not_made("the system ended that process"),
        (End::Signal(SIGFPE), Some(launch)) => Verdict::Fault(format!(
            "kernel `{}` divides an integer by zero on {device}",
            launch.kernel
        )),
        (End::Signal(signal), Some(launch)) if signal != SIGABRT => Verdict::Fault(format!(
            "kernel `{}` ends the process with {} on {device}",
            launch.kernel,
            name(signal)
        )),
        (End::Signal(signal), _) => left_out(&name(signal)),
        (End::Status(status), _) if began => left_out(&format!("status {status}")),
        (End::Status(status), _) => not_made(&format!("that process ended with status {status}")),
    }
}

/// Kernels cannot abort: that is a driver's assertion, mostly its compiler's.
fn left_out(how: &str) -> Verdict {
    Verdict::LeaveOut(format!(
        "its driver ends the process with {how} when it compiles the kernel"
    ))
}

fn not_made(why: &str) -> Verdict {
    Verdict::Note(format!(
        "the kernel was not launched in a process of its own first: {why}"
    ))
}

fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::SIGILL;

    use super::*;

    const SIGSEGV: i32 = 11;

    fn launch() -> Answer {
        Answer::Launches(Launch {
            kernel: "k".to_owned(),
            first: 7,
            buffers: vec!["buffer `a`".to_owned(), "buffer `b`".to_owned()],
        })
    }

    fn of(answers: &[Answer], end: End) -> Verdict {
        let all: Vec<Answer> = [&[Answer::Compiles], answers].concat();
        verdict("d", &all, end)
    }

    #[test]
    fn faults_name_kernel_buffer_and_device() {
        let died = End::Status(1);
        for (answer, text) in [
            (
                Answer::Outside {
                    region: 8,
                    after: true,
                },
                "kernel `k` reads or writes past the end of buffer `b` on d",
            ),
            (
                Answer::Overwritten {
                    region: 7,
                    after: false,
                },
                "kernel `k` writes before the beginning of buffer `a` on d",
            ),
            (
                Answer::Elsewhere,
                "kernel `k` reads or writes at an address outside of all its buffers on d",
            ),
        ] {
            let verdict = of(&[launch(), answer], died);
            assert_eq!(verdict, Verdict::Fault(text.to_owned()));
        }
        for signal in [SIGSEGV, SIGILL, SIGFPE] {
            let verdict = of(&[launch()], End::Signal(signal));
            assert!(matches!(verdict, Verdict::Fault(_)), "{verdict:?}");
        }
    }

    #[test]
    fn a_driver_that_ends_outside_of_a_launch_is_left_out() {
        let compiling = [vec![], vec![launch(), Answer::Launched]];
        for answers in compiling {
            for end in [End::Signal(SIGSEGV), End::Signal(SIGABRT), End::Status(3)] {
                let verdict = of(&answers, end);
                assert!(matches!(verdict, Verdict::LeaveOut(_)), "{verdict:?}");
            }
            let with_fault = [answers, vec![Answer::Elsewhere]].concat();
            let verdict = of(&with_fault, End::Status(1));
            assert!(matches!(verdict, Verdict::LeaveOut(_)), "{verdict:?}");
        }
        let aborted = of(&[launch()], End::Signal(SIGABRT));
        assert!(matches!(aborted, Verdict::LeaveOut(_)), "{aborted:?}");
    }

    #[test]
    fn what_was_not_found_out_is_a_note() {
        let refused = Answer::Refused("no memory".to_owned());
        for (answers, end) in [
            (vec![refused], End::Status(0)),
            (vec![launch()], End::Late),
            (vec![launch()], End::Signal(SIGKILL)),
        ] {
            let verdict = of(&answers, end);
            assert!(matches!(verdict, Verdict::Note(_)), "{verdict:?}");
        }
        let unread = verdict("d", &[], End::Status(2));
        assert!(matches!(unread, Verdict::Note(_)), "{unread:?}");
        let well = of(&[launch(), Answer::Launched, Answer::Well], End::Status(0));
        assert_eq!(well, Verdict::Fine);
    }
}
