//! A rank: what ranks tell each other, how one sends, and how it waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::super::encode::{decode, encode};
use super::super::turn::{AWAKE, PAUSE};
use super::lead::Introduced;
use super::{ClusterError, ThisMachine};
use crate::machine::MachineFile;
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::wire::{Arrived, Wire};

/// Time for the last messages to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Talk {
    /// To rank 0: a rank.
    Here(Introduced),
    /// Orders of rank 0, and their answers. A machine that cannot be measured has a reason.
    MeasureMachine,
    Machine(Result<Box<MachineFile>, String>),
    Send(Sending),
    Took(Took),
    /// The measurement ends: all is measured, or a rank says why it cannot go on.
    End {
        why: Option<String>,
    },
    /// A message that is measured, after which so many follow.
    Bulk {
        left: u32,
    },
    /// All of them have arrived. How long the rank took for the last one of those before.
    Receipt {
        before: u64,
    },
}

/// Messages to a rank, one after the other, and its receipt, so often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sending {
    pub to: usize,
    /// Of the first message.
    pub bytes: u64,
    /// At least 1.
    pub count: u32,
    pub times: u32,
}

/// The median time until the receipt, and of what is left of that without the times in which a
/// rank sends or takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Took {
    pub all: u64,
    pub between: u64,
}

/// A rank.
pub(super) struct Peer<'w> {
    wire: &'w mut dyn Wire,
    stop: &'w AtomicBool,
    /// Until when it polls without pauses.
    awake_until: Instant,
    /// When the poll began that has delivered the last message.
    polled: Instant,
    /// How long this rank took for the last message that it has answered, from the poll that
    /// delivered it until the receipt had been sent.
    answering: Nanos,
    /// What has come, and nobody has waited for.
    kept: VecDeque<(usize, Talk)>,
}

impl<'w> Peer<'w> {
    pub fn new(wire: &'w mut dyn Wire, stop: &'w AtomicBool) -> Self {
        let now = Instant::now();
        Self {
            wire,
            stop,
            awake_until: now,
            polled: now,
            answering: 0,
            kept: VecDeque::new(),
        }
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.wire.size()
    }

    /// What this rank tells of itself.
    pub fn introduced(&self, this: &ThisMachine) -> Introduced {
        Introduced {
            host: self.wire.host_name().to_owned(),
            fingerprint: this.fingerprint.clone(),
            file: (this.known)(&this.fingerprint).map(Box::new),
        }
    }

    /// Does what rank 0 orders until it says that all is measured.
    pub fn follow(&mut self, this: ThisMachine) -> Result<(), ClusterError> {
        let followed = self.obey(this);
        if let Err(error) = &followed
            && !matches!(error, ClusterError::Stopped(_))
        {
            // Rank 0 would wait for this rank. If it cannot be told, it notices the loss.
            let why = Some(format!("node {}: {error}", self.wire.rank()));
            let _ = self.tell(0, &Talk::End { why });
        }
        followed
    }

    fn obey(&mut self, this: ThisMachine) -> Result<(), ClusterError> {
        self.tell(0, &Talk::Here(self.introduced(&this)))?;
        loop {
            let order = self.wait(|_, talk| match talk {
                Talk::MeasureMachine | Talk::Send(_) | Talk::End { .. } => Some(talk.clone()),
                _ => None,
            });
            let answer = match order? {
                Talk::MeasureMachine => Talk::Machine((this.measure)().map(Box::new)),
                Talk::Send(sending) => Talk::Took(self.send(sending)?),
                _ => return Ok(()),
            };
            self.tell(0, &answer)?;
        }
    }

    /// Tells the other ranks that the measurement ends.
    pub fn dismiss(&mut self, why: Option<String>) -> Result<(), ClusterError> {
        tell_all(self.wire, why)
    }

    pub fn tell(&mut self, to: usize, talk: &Talk) -> Result<(), ClusterError> {
        Ok(self.wire.send(to, encode(talk)?)?)
    }

    /// Sends messages, and waits until the rank has them.
    pub fn send(&mut self, sending: Sending) -> Result<Took, ClusterError> {
        let Sending {
            to,
            bytes,
            count,
            times,
        } = sending;
        let (mut all, mut between) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let mut first = encode(&Talk::Bulk { left: count - 1 })?;
            // Numbers other than 0, so that the memory is there before the time begins.
            first.resize(first.len() + bytes as usize, 1);
            let began = Instant::now();
            self.wire.send(to, first)?;
            for left in (0..count - 1).rev() {
                self.tell(to, &Talk::Bulk { left })?;
            }
            let sent = since(began);
            let before = self.wait(|_, talk| match talk {
                Talk::Receipt { before } => Some(*before),
                _ => None,
            })?;
            let took = since(began);
            all.push(took);
            between.push(took.saturating_sub(sent + since(self.polled) + before));
        }
        // The first receipt does not know how long the other rank takes for one.
        let first = usize::from(times > 1);
        Ok(Took {
            all: median(&mut all[first..]),
            between: median(&mut between[first..]),
        })
    }

    /// Waits for a message of a rank of which something is wanted, and answers meanwhile what
    /// others send.
    pub fn wait<T>(
        &mut self,
        wanted: impl Fn(usize, &Talk) -> Option<T>,
    ) -> Result<T, ClusterError> {
        let mut kept = self.kept.iter().enumerate();
        let known = kept.find_map(|(place, (from, talk))| Some((place, wanted(*from, talk)?)));
        if let Some((place, found)) = known {
            self.kept.remove(place);
            return Ok(found);
        }
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ClusterError::Interrupted);
            }
            let polled = Instant::now();
            let (from, bytes) = match self.wire.poll()? {
                Some(Arrived::Lost { rank, why }) => {
                    let why = format!("node {rank} was lost: {why}; start the measurement again");
                    return Err(ClusterError::Stopped(why));
                }
                Some(Arrived::Excluded { by }) => {
                    let (me, by) = (NodeId(self.wire.rank() as u32), NodeId(by as u32));
                    return Err(ClusterError::Excluded { me, by });
                }
                Some(Arrived::Message { from, bytes }) => (from, bytes),
                // As nodes do that run tasks.
                None => {
                    match Instant::now() < self.awake_until {
                        true => std::thread::yield_now(),
                        false => self.wire.rest(PAUSE)?,
                    }
                    continue;
                }
            };
            self.polled = polled;
            self.awake_until = Instant::now() + AWAKE;
            let Some((talk, _)) = decode::<Talk>(&bytes) else {
                let from = format!("node {from}");
                return Err(ClusterError::NoMessage { from });
            };
            match talk {
                Talk::End { why: Some(why) } => return Err(ClusterError::Stopped(why)),
                Talk::Bulk { left: 0 } => {
                    // How long this receipt takes is known when it has left.
                    let before = self.answering;
                    self.tell(from, &Talk::Receipt { before })?;
                    self.answering = since(self.polled);
                }
                Talk::Bulk { .. } => {}
                talk => match wanted(from, &talk) {
                    Some(found) => return Ok(found),
                    None => self.kept.push_back((from, talk)),
                },
            }
        }
    }
}

fn since(begin: Instant) -> Nanos {
    begin.elapsed().as_nanos() as Nanos
}

/// The middle of some times; 0 of none.
fn median(times: &mut [Nanos]) -> Nanos {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// At rank 0: tells the other ranks that the measurement ends, and why if it was refused.
pub(super) fn tell_all(wire: &mut dyn Wire, why: Option<String>) -> Result<(), ClusterError> {
    let message = encode(&Talk::End { why })?;
    for rank in 1..wire.size() {
        wire.send(rank, message.clone())?;
    }
    Ok(wire.flush(LAST_WORDS)?)
}
