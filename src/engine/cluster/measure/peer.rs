//! A rank that does what rank 0 orders, and answers the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::encode::{decode, encode};
use super::super::turn::{AWAKE, PAUSE};
use super::talk::Talk;
use super::{ClusterError, ThisMachine};
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::wire::{Arrived, Wire};

/// Round trips of a pair. The median of so many is not disturbed by a few.
const TRIPS: usize = 101;

/// Messages of a flood, many more than are on the way at once.
const FLOOD: u32 = 1000;

/// Time for the last messages to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A small message there and another one back.
#[derive(Clone, Copy)]
struct Trip {
    took: Nanos,
    /// Without what both ranks did.
    between: Nanos,
}

/// A rank.
pub(super) struct Peer<'w, 'm> {
    wire: &'w mut dyn Wire,
    this: ThisMachine<'m>,
    stop: &'w AtomicBool,
    /// Until when it polls without pauses.
    awake_until: Instant,
    /// When the poll began that has delivered the last message.
    polled: Instant,
    /// When the last ping began, and how long it took to send it.
    pinged: Instant,
    pinging: Nanos,
    /// How long this rank took for the last ping of another one, from the poll that
    /// delivered it until the answer had been sent.
    answering: Nanos,
    trips: Vec<Trip>,
    /// When the data that it sends left.
    sent: Instant,
    /// When the first message of a flood arrived.
    flooded: Option<Instant>,
}

impl<'w, 'm> Peer<'w, 'm> {
    pub fn new(wire: &'w mut dyn Wire, this: ThisMachine<'m>, stop: &'w AtomicBool) -> Self {
        let now = Instant::now();
        Self {
            wire,
            this,
            stop,
            awake_until: now,
            polled: now,
            pinged: now,
            pinging: 0,
            answering: 0,
            trips: Vec::new(),
            sent: now,
            flooded: None,
        }
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.wire.size()
    }

    /// Tells rank 0 of this rank.
    pub fn introduce(&mut self) -> Result<(), ClusterError> {
        let here = Talk::Here {
            host: self.wire.host_name().to_owned(),
            fingerprint: self.this.fingerprint.clone(),
            file: (self.this.known)(&self.this.fingerprint).map(Box::new),
        };
        self.tell(0, &here)
    }

    /// Does what rank 0 orders until it says that all is measured.
    pub fn follow(&mut self) -> Result<(), ClusterError> {
        loop {
            match self.receive() {
                Ok((_, Talk::End { .. })) => return Ok(()),
                Ok(_) => {}
                Err(ClusterError::Stopped(why)) => return Err(ClusterError::Stopped(why)),
                Err(error) => {
                    // Rank 0 would wait for this rank. If it cannot be told, it notices
                    // the loss.
                    let why = Some(format!("node {}: {error}", self.wire.rank()));
                    let _ = self.tell(0, &Talk::End { why });
                    return Err(error);
                }
            }
        }
    }

    /// Tells the other ranks that the measurement ends.
    pub fn dismiss(&mut self, why: Option<String>) -> Result<(), ClusterError> {
        tell_all(self.wire, why)
    }

    pub fn tell(&mut self, to: usize, talk: &Talk) -> Result<(), ClusterError> {
        Ok(self.wire.send(to, encode(talk)?)?)
    }

    /// Orders something of a rank, and waits until it is done.
    pub fn ordered(&mut self, rank: usize, order: &Talk) -> Result<Nanos, ClusterError> {
        self.tell(rank, order)?;
        self.took()
    }

    /// Orders round trips of a rank to another one. The result is the time of one, and the
    /// part of half of it in which no rank does anything.
    pub fn trip(&mut self, from: usize, to: usize) -> Result<(Nanos, Nanos), ClusterError> {
        self.tell(from, &Talk::PingPong { to })?;
        loop {
            if let (
                _,
                Talk::Tripped {
                    round_trip,
                    latency,
                },
            ) = self.receive()?
            {
                return Ok((round_trip, latency));
            }
        }
    }

    /// How long something took that was ordered.
    pub fn took(&mut self) -> Result<Nanos, ClusterError> {
        loop {
            if let (_, Talk::Took { ns }) = self.receive()? {
                return Ok(ns);
            }
        }
    }

    /// The next message that is more than an order or an answer, which it deals with itself.
    pub fn receive(&mut self) -> Result<(usize, Talk), ClusterError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ClusterError::Interrupted);
            }
            let polled = Instant::now();
            match self.wire.poll()? {
                Some(Arrived::Lost { rank, why }) => {
                    let why = format!("node {rank} was lost: {why}; start the measurement again");
                    return Err(ClusterError::Stopped(why));
                }
                Some(Arrived::Excluded { by }) => {
                    let (me, by) = (NodeId(self.wire.rank() as u32), NodeId(by as u32));
                    return Err(ClusterError::Excluded { me, by });
                }
                Some(Arrived::Message { from, bytes }) => {
                    self.polled = polled;
                    self.awake_until = Instant::now() + AWAKE;
                    let Some((talk, _)) = decode::<Talk>(&bytes) else {
                        let from = format!("node {from}");
                        return Err(ClusterError::NoMessage { from });
                    };
                    match self.answer(from, talk)? {
                        Some(Talk::End { why: Some(why) }) => {
                            return Err(ClusterError::Stopped(why));
                        }
                        Some(talk) => return Ok((from, talk)),
                        None => {}
                    }
                }
                // As nodes do that run tasks.
                None if Instant::now() < self.awake_until => std::thread::yield_now(),
                None => self.wire.rest(PAUSE)?,
            }
        }
    }

    /// Obeys an order or answers a message; the result is a message that is neither.
    fn answer(&mut self, from: usize, talk: Talk) -> Result<Option<Talk>, ClusterError> {
        match talk {
            Talk::MeasureMachine => {
                let measured = match (self.this.measure)() {
                    Ok(file) => Talk::Machine {
                        file: Box::new(file),
                    },
                    Err(why) => Talk::NoMachine { why },
                };
                self.tell(0, &measured)?;
            }
            Talk::PingPong { to } => {
                self.trips.clear();
                self.ping(to)?;
            }
            Talk::Ping => {
                // How long this answer takes is known when it has left.
                let before = self.answering;
                self.tell(from, &Talk::Pong { before })?;
                self.answering = since(self.polled);
            }
            Talk::Pong { before } => {
                self.returned(before);
                // The first answer does not know how long the other rank takes for one.
                if self.trips.len() <= TRIPS {
                    self.ping(from)?;
                } else {
                    let trips = &self.trips[1..];
                    let round_trip = median(trips.iter().map(|trip| trip.took));
                    let between = median(trips.iter().map(|trip| trip.between));
                    let latency = between / 2;
                    let tripped = Talk::Tripped {
                        round_trip,
                        latency,
                    };
                    self.tell(0, &tripped)?;
                }
            }
            Talk::Flood { to } => {
                for left in (0..FLOOD).rev() {
                    self.tell(to, &Talk::Drop { left })?;
                }
            }
            Talk::Drop { left } => {
                let began = *self.flooded.get_or_insert_with(Instant::now);
                if left == 0 {
                    self.flooded = None;
                    // The first one began the time, so it is not in it.
                    let ns = since(began) / u64::from(FLOOD - 1);
                    self.tell(0, &Talk::Took { ns })?;
                }
            }
            Talk::Send { to, bytes } => {
                let mut message = encode(&Talk::Bulk)?;
                // Numbers other than 0, so that the memory is there before the time begins.
                message.resize(message.len() + bytes as usize, 1);
                self.sent = Instant::now();
                self.wire.send(to, message)?;
            }
            Talk::Bulk => self.tell(from, &Talk::Taken)?,
            Talk::Taken => {
                let ns = since(self.sent);
                self.tell(0, &Talk::Took { ns })?;
            }
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn ping(&mut self, to: usize) -> Result<(), ClusterError> {
        self.pinged = Instant::now();
        self.tell(to, &Talk::Ping)?;
        self.pinging = since(self.pinged);
        Ok(())
    }

    /// A ping is back. The other rank took `answering` for it.
    fn returned(&mut self, answering: Nanos) {
        let took = since(self.pinged);
        let own = self.pinging + since(self.polled);
        self.trips.push(Trip {
            took,
            between: took.saturating_sub(own + answering),
        });
    }
}

fn since(begin: Instant) -> Nanos {
    begin.elapsed().as_nanos() as Nanos
}

/// The middle of some times; 0 of none.
pub(super) fn median(times: impl Iterator<Item = Nanos>) -> Nanos {
    let mut times: Vec<Nanos> = times.collect();
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
