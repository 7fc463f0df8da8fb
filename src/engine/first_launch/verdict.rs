//! What the answers and the end of a process of first launches mean.

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV};

use super::Answer;
use super::job::Words;

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
pub(super) fn verdict<'a>(
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
    pub(super) fn not_made(why: &str) -> Self {
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
