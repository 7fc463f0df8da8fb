//! A wire over any transport: the messages that links send each other, the comparison of their
//! clocks, and the end of a run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::heartbeat::{Heartbeat, Pulse};
use super::{Arrived, Channel, Event, Transport, Wire, WireError};
use crate::time::Nanos;

/// Questions for each clock. The shortest of so many round trips was rarely disturbed.
const EXCHANGES: usize = 20;
/// Between two looks at a rank that ends later. It may still work for long.
const LOOK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;

/// A wire: a transport, with what all transports lack.
pub struct Link<T> {
    transport: T,
    /// The own clock counts from here.
    epoch: Instant,
    /// Nobody is watched if the transport notices every loss itself.
    heartbeat: Option<Heartbeat>,
    /// What the user has not polled yet.
    arrived: VecDeque<Arrived>,
    /// By rank.
    peers: Vec<Peer>,
    /// By rank, what [`Wire::clock_offset`] returns; nothing before rank 0 has sent it.
    offsets: Option<Vec<i64>>,
    /// The answer to rank 0's last question.
    answer: Option<Answer>,
    /// What is set when a run ends that has not begun.
    alarm: Option<&'static AtomicBool>,
    /// All have said that nothing is left to be said.
    settled: bool,
}

#[derive(Clone, Default)]
struct Peer {
    lost: bool,
    /// It takes this rank for lost.
    excludes: bool,
    /// Data messages to it.
    sent: u64,
    /// Data messages from it.
    received: u64,
    /// It ends, after so many data messages.
    ends_after: Option<u64>,
    /// It leaves, and says whether it has lost nobody.
    leaves: Option<bool>,
}

/// The time on another clock.
struct Answer {
    time: Nanos,
    /// On the own clock.
    arrived: Nanos,
}

impl<T: Transport> Link<T> {
    /// A wire between ranks whose clocks all count from `epoch`. Without a pulse only the
    /// transport says who is lost.
    pub fn of_one_clock(transport: T, epoch: Instant, pulse: Option<Pulse>) -> Self {
        let (rank, size) = (transport.rank(), transport.size());
        let mut link = Self {
            transport,
            epoch,
            heartbeat: None,
            arrived: VecDeque::new(),
            peers: vec![Peer::default(); size],
            offsets: Some(vec![0; size]),
            answer: None,
            alarm: None,
            settled: false,
        };
        let now = link.now();
        link.heartbeat = pulse.map(|pulse| Heartbeat::new(rank, size, pulse, now));
        link
    }

    /// A wire between machines. All ranks call this at the same time; it returns when rank
    /// 0 has compared all clocks with its own.
    pub fn connect(transport: T, pulse: Pulse) -> Result<Self, WireError> {
        let mut link = Self::of_one_clock(transport, Instant::now(), Some(pulse));
        match link.rank() {
            0 => link.compare_clocks()?,
            _ => {
                link.offsets = None;
                link.wait(|link| link.offsets.is_some().then_some(()))?;
            }
        }
        Ok(link)
    }

    fn compare_clocks(&mut self) -> Result<(), WireError> {
        let mut offsets = vec![0; self.size()];
        for (rank, offset) in offsets.iter_mut().enumerate().skip(1) {
            let mut comparison = Comparison::default();
            for _ in 0..EXCHANGES {
                let left = self.now();
                self.send_control(rank, &Control::Ping)?;
                let answer = self.wait(|link| link.answer.take())?;
                comparison.exchanged(left, answer.time, answer.arrived);
            }
            *offset = comparison.offset();
        }
        for rank in 1..self.size() {
            self.send_control(rank, &Control::Offsets(offsets.clone()))?;
        }
        self.offsets = Some(offsets);
        Ok(())
    }

    /// Waits for something at the start of the run, when every rank is needed.
    fn wait<R>(&mut self, mut ready: impl FnMut(&mut Self) -> Option<R>) -> Result<R, WireError> {
        loop {
            let moved = self.pump(self.now())?;
            if let Some(result) = ready(self) {
                return Ok(result);
            }
            for arrived in &self.arrived {
                match arrived {
                    Arrived::Message { .. } => {}
                    Arrived::Lost { rank, why } => {
                        let (rank, why) = (*rank, why.clone());
                        return Err(WireError::LostAtStart { rank, why });
                    }
                    Arrived::Excluded { by } => return Err(self.excluded(*by)),
                }
            }
            if !moved {
                thread::yield_now();
            }
        }
    }

    fn now(&self) -> Nanos {
        self.epoch.elapsed().as_nanos() as Nanos
    }

    fn send_control(&mut self, to: usize, message: &Control) -> Result<(), WireError> {
        self.transport.send(to, Channel::Control, message.encode())
    }

    /// Takes one event from the transport, and does what the heartbeat asks for. Returns
    /// whether there was an event.
    pub(crate) fn pump(&mut self, now: Nanos) -> Result<bool, WireError> {
        let event = self.transport.poll()?;
        let moved = event.is_some();
        match event {
            Some(Event::Message { from, .. }) if self.peers[from].lost => {}
            Some(Event::Message {
                from,
                channel,
                bytes,
            }) => {
                if let Some(heartbeat) = &mut self.heartbeat {
                    heartbeat.heard(from, now);
                }
                match channel {
                    Channel::Data => {
                        self.peers[from].received += 1;
                        // Before a run begins, only rank 0 waits for messages.
                        if self.rank() != 0 {
                            self.raise_alarm();
                        }
                        self.arrived.push_back(Arrived::Message { from, bytes });
                    }
                    Channel::Control => self.obey(from, &bytes)?,
                }
            }
            Some(Event::Lost { rank, why }) => self.lose(rank, why)?,
            None => {}
        }
        self.beat(now, !moved)?;
        Ok(moved)
    }

    /// As [`Self::pump`], now.
    pub(super) fn look(&mut self) -> Result<bool, WireError> {
        self.pump(self.now())
    }

    /// Whether a message has left or arrived in part.
    pub(super) fn is_moving(&self) -> bool {
        self.transport.unsent() > 0 || self.transport.is_receiving()
    }

    fn obey(&mut self, from: usize, bytes: &[u8]) -> Result<(), WireError> {
        match Control::decode(bytes).ok_or(WireError::Unknown { from })? {
            Control::Beat => {}
            Control::Done { messages } => self.peers[from].ends_after = Some(messages),
            Control::Leave { complete } => self.peers[from].leaves = Some(complete),
            Control::Excluded => {
                self.peers[from].excludes = true;
                self.cut(from);
                self.arrived.push_back(Arrived::Excluded { by: from });
            }
            Control::Ping => {
                let time = self.now();
                self.send_control(from, &Control::Pong { time })?;
            }
            Control::Pong { time } => {
                let arrived = self.now();
                self.answer = Some(Answer { time, arrived });
            }
            Control::Offsets(offsets) if offsets.len() == self.size() => {
                self.offsets = Some(offsets);
            }
            Control::Offsets(_) => return Err(WireError::Unknown { from }),
        }
        Ok(())
    }

    fn beat(&mut self, now: Nanos, all_read: bool) -> Result<(), WireError> {
        let Some(heartbeat) = &mut self.heartbeat else {
            return Ok(());
        };
        let due = heartbeat.due(now, all_read);
        let silence = heartbeat.silence();
        for rank in due.beats {
            self.send_control(rank, &Control::Beat)?;
        }
        for rank in due.lost {
            let why = format!("nothing was heard of it for {silence:?}");
            self.lose(rank, why)?;
        }
        Ok(())
    }

    /// The loss is mutual: a rank that was only slow learns that it is no longer counted.
    fn lose(&mut self, rank: usize, why: String) -> Result<(), WireError> {
        if self.peers[rank].lost {
            return Ok(());
        }
        self.send_control(rank, &Control::Excluded)?;
        self.cut(rank);
        self.arrived.push_back(Arrived::Lost { rank, why });
        Ok(())
    }

    /// Nothing is sent to a rank or taken from it any longer.
    fn cut(&mut self, rank: usize) {
        self.peers[rank].lost = true;
        self.raise_alarm();
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.lose(rank);
        }
        self.transport.lose(rank);
    }

    pub(super) fn set_alarm(&mut self, alarm: Option<&'static AtomicBool>) {
        self.alarm = alarm;
    }

    fn raise_alarm(&self) {
        if let Some(alarm) = self.alarm {
            alarm.store(true, Ordering::Relaxed);
        }
    }

    fn excluded(&self, by: usize) -> WireError {
        let rank = self.rank();
        WireError::Excluded { rank, by }
    }

    /// Whether this holds of every other rank that is not lost.
    fn all(&self, holds: impl Fn(&Peer) -> bool) -> bool {
        let own = self.rank();
        let mut others = self.peers.iter().enumerate();
        others.all(|(rank, peer)| rank == own || peer.lost || holds(peer))
    }

    fn send_control_to_all(&mut self, message: impl Fn(&Peer) -> Control) -> Result<(), WireError> {
        let own = self.rank();
        for rank in (0..self.size()).filter(|&rank| rank != own) {
            let message = message(&self.peers[rank]);
            self.send_control(rank, &message)?;
        }
        Ok(())
    }

    /// What has arrived and was not polled.
    pub(crate) fn take_arrived(&mut self) -> Option<Arrived> {
        self.arrived.pop_front()
    }

    /// Whether a rank takes part as far as this one knows.
    #[cfg(test)]
    pub(crate) fn counts(&self, rank: usize) -> bool {
        !self.peers[rank].lost
    }

    /// The transport, for its own functions.
    pub(super) fn transport(&self) -> &T {
        &self.transport
    }
}

impl<T: Transport> Wire for Link<T> {
    fn rank(&self) -> usize {
        self.transport.rank()
    }

    fn size(&self) -> usize {
        self.transport.size()
    }

    fn host_name(&self) -> &str {
        self.transport.host_name()
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<(), WireError> {
        let (rank, size) = (self.rank(), self.size());
        if to >= size {
            return Err(WireError::NoRank { rank: to, size });
        }
        if to == rank {
            self.arrived
                .push_back(Arrived::Message { from: rank, bytes });
        } else if !self.peers[to].lost {
            self.peers[to].sent += 1;
            self.transport.send(to, Channel::Data, bytes)?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Arrived>, WireError> {
        // First from the transport, so that a rank that sends to itself again and again
        // hears the others, too.
        self.look()?;
        Ok(self.arrived.pop_front())
    }

    fn rest(&mut self, at_most: Duration) -> Result<(), WireError> {
        if self.arrived.is_empty() {
            self.transport.rest(at_most);
        }
        Ok(())
    }

    fn flush(&mut self, timeout: Duration) -> Result<(), WireError> {
        let begin = Instant::now();
        while self.transport.unsent() > 0 {
            if begin.elapsed() > timeout {
                return Err(WireError::Unsent {
                    rank: self.rank(),
                    count: self.transport.unsent(),
                    timeout,
                });
            }
            if !self.pump(self.now())? {
                thread::yield_now();
            }
        }
        Ok(())
    }

    fn epoch(&self) -> Instant {
        self.epoch
    }

    fn clock_offset(&self, rank: usize) -> i64 {
        self.offsets.as_ref().map_or(0, |offsets| offsets[rank])
    }

    fn settle(&mut self) -> Result<(), WireError> {
        if self.settled {
            return Ok(());
        }
        self.begin_to_settle()?;
        while !self.has_settled(self.now())? {
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WireError> {
        self.settle()?;
        self.begin_to_leave()?;
        while !self.has_left(self.now())? {
            thread::sleep(LOOK);
        }
        // A transport ends in good order only if all ranks agree.
        let complete = self.peers.iter().all(|peer| !peer.lost);
        let own = self.rank();
        let agree =
            |(rank, peer): (usize, &Peer)| rank == own || (!peer.lost && peer.leaves == Some(true));
        let all_agree = complete && self.peers.iter().enumerate().all(agree);
        self.transport.close(all_agree)
    }
}

// The difference of two clocks, by Cristian's method.
//
// Cristian, "Probabilistic clock synchronization", Distributed Computing 3 (1989),
// section 3: the answer was made at some time between question and arrival. The middle is
// wrong by half the round trip at most, so the shortest of several is the best.

/// The best comparison so far of rank 0's clock with another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Comparison {
    best: Option<Best>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Best {
    round_trip: Nanos,
    offset: i64,
}

impl Comparison {
    /// An exchange: the question left and the answer arrived at these times of the own
    /// clock; the answer is the time of the other one.
    pub fn exchanged(&mut self, left: Nanos, answer: Nanos, arrived: Nanos) {
        let round_trip = arrived - left;
        if self.best.is_none_or(|best| round_trip < best.round_trip) {
            let middle = left + round_trip / 2;
            // Both count from the start of a process, so the difference fits.
            let offset = middle.wrapping_sub(answer).cast_signed();
            self.best = Some(Best { round_trip, offset });
        }
    }

    /// Nanoseconds to add to the other clock to get the own one.
    pub fn offset(&self) -> i64 {
        self.best.map_or(0, |best| best.offset)
    }
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// The sender lives.
    Beat,
    /// The sender ends, after this many data messages to the receiver.
    Done { messages: u64 },
    /// The sender has heard that all ranks end. It has lost none, or some.
    Leave { complete: bool },
    /// The sender takes the receiver for lost.
    Excluded,
    /// A question for the time.
    Ping,
    /// The time on the sender's clock, in nanoseconds.
    Pong { time: u64 },
    /// By rank, what [`super::Wire::clock_offset`] returns.
    Offsets(Vec<i64>),
}

const BEAT: u8 = 0;
const DONE: u8 = 1;
const EXCLUDED: u8 = 2;
const PING: u8 = 3;
const PONG: u8 = 4;
const OFFSETS: u8 = 5;
const LEAVE: u8 = 6;

impl Control {
    /// A byte for the kind, then numbers of 8 bytes, least significant byte first.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, numbers): (u8, Vec<[u8; 8]>) = match self {
            Self::Beat => (BEAT, Vec::new()),
            Self::Done { messages } => (DONE, vec![messages.to_le_bytes()]),
            Self::Leave { complete } => (LEAVE, vec![u64::from(*complete).to_le_bytes()]),
            Self::Excluded => (EXCLUDED, Vec::new()),
            Self::Ping => (PING, Vec::new()),
            Self::Pong { time } => (PONG, vec![time.to_le_bytes()]),
            Self::Offsets(all) => (OFFSETS, all.iter().map(|one| one.to_le_bytes()).collect()),
        };
        let mut bytes = vec![kind];
        bytes.extend(numbers.as_flattened());
        bytes
    }

    /// The message, or nothing if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&kind, numbers) = bytes.split_first()?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        let message = match (kind, numbers) {
            (BEAT, []) => Self::Beat,
            (DONE, &[messages]) => Self::Done {
                messages: u64::from_le_bytes(messages),
            },
            (LEAVE, &[complete]) => Self::Leave {
                complete: u64::from_le_bytes(complete) != 0,
            },
            (EXCLUDED, []) => Self::Excluded,
            (PING, []) => Self::Ping,
            (PONG, &[time]) => Self::Pong {
                time: u64::from_le_bytes(time),
            },
            (OFFSETS, all) => {
                Self::Offsets(all.iter().map(|one| i64::from_le_bytes(*one)).collect())
            }
            _ => return None,
        };
        rest.is_empty().then_some(message)
    }
}

impl<T: Transport> Link<T> {
    /// Tells the others that nothing is left to be said.
    pub(crate) fn begin_to_settle(&mut self) -> Result<(), WireError> {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.be_patient();
        }
        self.send_control_to_all(|peer| Control::Done {
            messages: peer.sent,
        })
    }

    /// Takes what has arrived by now. Whether all others have settled, too.
    pub(crate) fn has_settled(&mut self, now: Nanos) -> Result<bool, WireError> {
        self.settled = self.holds(now, |peer| peer.ends_after == Some(peer.received))?;
        Ok(self.settled)
    }

    /// Tells the others that this rank has heard that all have settled. One that has died
    /// since does not say so, and is noticed before a transport waits for it forever.
    pub(crate) fn begin_to_leave(&mut self) -> Result<(), WireError> {
        let complete = self.peers.iter().all(|peer| !peer.lost);
        self.send_control_to_all(|_| Control::Leave { complete })
    }

    /// Takes what has arrived by now. Whether all others leave, too.
    pub(crate) fn has_left(&mut self, now: Nanos) -> Result<bool, WireError> {
        self.holds(now, |peer| peer.leaves.is_some())
    }

    /// At the end, whether something holds of every other rank that is not lost. Messages are
    /// of no use any more.
    fn holds(&mut self, now: Nanos, of: impl Fn(&Peer) -> bool) -> Result<bool, WireError> {
        while self.pump(now)? {}
        self.arrived.clear();
        self.check_verdict()?;
        Ok(self.all(of) && self.transport.unsent() == 0)
    }

    /// At the end, whether rank 0 and this one still agree that both take part. A rank that
    /// has left has its verdict, and so has rank 0 once all have settled.
    fn check_verdict(&self) -> Result<(), WireError> {
        let own = self.rank();
        if own == 0 {
            // Whoever takes rank 0 for lost tells its user that there is no result.
            let against = self.peers.iter().position(|peer| peer.excludes);
            return match against.filter(|_| !self.settled) {
                Some(by) => Err(self.excluded(by)),
                None => Ok(()),
            };
        }
        let first = &self.peers[0];
        match (first.excludes, first.lost) {
            _ if first.leaves.is_some() => Ok(()),
            (true, _) => Err(self.excluded(0)),
            (false, true) => Err(WireError::LostAtEnd { rank: 0 }),
            (false, false) => Ok(()),
        }
    }
}
