//! A process joins the others of its run before it opens anything: with one record of what
//! all must have alike, and within a time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use pdawl_api::cluster::wire::agreement::Agreement;
use pdawl_api::cluster::wire::environment::Launched;
use pdawl_api::cluster::wire::heartbeat::Pulse;
use pdawl_api::cluster::wire::{PluginWire, Wire, WireError, agree, join};
use pdawl_api::session::nodes::abandon;

use crate::failure::Failure;
use crate::interrupt;

/// Seconds until all have joined.
const LIMIT: u32 = 10;

/// How a process joins the others of its run.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub struct JoinOptions {
    /// The library that carries messages between nodes [default: the one of MPI]
    #[arg(long, value_name = "FILE")]
    pub wire: Option<PathBuf>,
}

impl JoinOptions {
    /// Joins the others, who have the same record; nothing if this process is alone.
    ///
    /// # Errors
    /// A library that does not join, other records, lost nodes and Ctrl-C. What all nodes
    /// know, only the first one prints.
    pub fn join(
        &self,
        asked: &Agreement,
        stop: &'static AtomicBool,
    ) -> Result<Option<PluginWire>, Failure> {
        let rank = Launched::detect().map_or(0, |launched| launched.rank);
        let failure = |error| failed(error, rank);
        let limit = Limit::start(rank, stop)?;
        let wire = join(self.wire.as_deref(), Pulse::default()).map_err(failure)?;
        let Some(mut wire) = wire else {
            return Ok(None);
        };
        agree(&mut wire, asked, stop).map_err(failure)?;
        drop(limit);
        Ok(Some(wire))
    }
}

/// A process that was started together with others and cannot do its part. The first one
/// prints why; this one only if that does not answer.
pub fn give_up(mut wire: Box<dyn Wire>, failure: Failure) -> Failure {
    let is_answered = abandon(&mut *wire, &failure.in_words());
    match failure {
        Failure::Usage { .. } if is_answered => Failure::Program(2),
        Failure::Failed { .. } if is_answered => Failure::Program(1),
        failure => failure,
    }
}

/// Why a process does not join. What all find alike, the first one prints.
fn failed(error: WireError, rank: usize) -> Failure {
    match error {
        WireError::Interrupted => Failure::Interrupted,
        WireError::LostAtStart { .. } | WireError::Excluded { .. } | WireError::Failed { .. } => {
            Failure::of(error)
        }
        WireError::Unlike { .. } if rank > 0 => Failure::Program(2),
        WireError::Unlike { why } => Failure::usage(
            why,
            "the same program with the same options on all nodes; devices and output files may \
             differ",
        ),
        _ if rank > 0 => Failure::Program(1),
        error => Failure::of(error),
    }
}

/// Ends this process if it has not joined in time: a library that waits for a process which
/// has ended cannot be told to give up.
struct Limit {
    /// Nothing is ever sent.
    _joined: Sender<()>,
}

/// Between two looks at whether the process has joined. Time in which the process does not
/// run, because it was stopped, does not count.
const LOOK: Duration = Duration::from_millis(50);

impl Limit {
    fn start(rank: usize, stop: &'static AtomicBool) -> Result<Self, Failure> {
        let (sender, joined) = bounded(0);
        let looks = Duration::from_secs(LIMIT.into()).as_millis() / LOOK.as_millis();
        let watch = move || {
            for _ in 0..looks {
                if joined.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                if stop.load(Ordering::Relaxed) {
                    std::process::exit(interrupt::status().into());
                }
            }
            Failure::failed(
                format!("node {rank}: not all nodes have joined within {LIMIT} s"),
                "the run again, if a node has ended, or on nodes that do less beside it",
            )
            .print();
            std::process::exit(1);
        };
        let started = thread::Builder::new().name("join".to_owned()).spawn(watch);
        match started {
            Ok(_) => Ok(Self { _joined: sender }),
            Err(error) => Err(Failure::failed(
                format!("the system cannot start a thread: {error}"),
                "raise the limit of processes (`ulimit -u`), or end some",
            )),
        }
    }
}
