//! Ranks that are threads of one process, for tests of what runs over wires.
//!
//! Nothing is lost or late here but on purpose: [`Faults`] end ranks or cut them off, and
//! a seed disturbs the order of different senders.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::heartbeat::Pulse;
use super::{Channel, Event, Link, Transport, WireError};

/// A wire to other threads.
pub type LocalWire = Link<Local>;

/// How the ranks of a process are connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Messages of different senders arrive in an order that this seed determines, and
    /// polls find nothing now and then.
    pub shuffle: Option<u64>,
    /// Ranks also watch each other. Without a pulse they learn of losses at once, and
    /// never of [`Faults::cut`].
    pub pulse: Option<Pulse>,
}

impl LocalWire {
    /// One wire for each rank, all with one clock.
    pub fn cluster(size: usize) -> Vec<Self> {
        Self::cluster_with(size, Options::default())
    }

    /// The same, with options.
    pub fn cluster_with(size: usize, options: Options) -> Vec<Self> {
        let epoch = Instant::now();
        Local::ranks(size, options.shuffle)
            .into_iter()
            .map(|local| Self::of_one_clock(local, epoch, options.pulse))
            .collect()
    }

    /// The wire of a run with one rank.
    pub fn alone() -> Self {
        Self::cluster(1).swap_remove(0)
    }

    /// What tests do to the ranks.
    pub fn faults(&self) -> Faults {
        Faults(self.transport().hub.clone())
    }
}

/// Takes part.
const PRESENT: u8 = 0;
/// Its messages vanish.
const CUT: u8 = 1;
/// Ended by a test, or by the end of its thread; the others learn of it.
const GONE: u8 = 2;
/// Ended after everybody had agreed.
const ENDED: u8 = 3;

struct Hub {
    /// By receiver.
    senders: Vec<Sender<Parcel>>,
    /// By rank.
    states: Vec<AtomicU8>,
}

impl Hub {
    fn state(&self, rank: usize) -> u8 {
        self.states[rank].load(Ordering::SeqCst)
    }

    fn set(&self, rank: usize, state: u8) {
        self.states[rank].store(state, Ordering::SeqCst);
    }
}

#[derive(Clone)]
struct Parcel {
    from: usize,
    channel: Channel,
    bytes: Vec<u8>,
}

/// Ends ranks on purpose.
#[derive(Clone)]
pub struct Faults(Arc<Hub>);

impl Faults {
    /// The rank is gone: its own calls fail, and the others learn of it when they have read
    /// what it sent.
    pub fn kill(&self, rank: usize) {
        self.0.set(rank, GONE);
    }

    /// What the rank sends from now on, and what is sent to it, vanishes. Only a pulse
    /// notices.
    pub fn cut(&self, rank: usize) {
        self.0.set(rank, CUT);
    }
}

/// A rank of this process.
pub struct Local {
    rank: usize,
    name: String,
    hub: Arc<Hub>,
    inbox: Receiver<Parcel>,
    /// By sender: what has arrived and was not delivered.
    unread: Vec<VecDeque<Parcel>>,
    /// The senders of all that is unread, as it arrived.
    order: VecDeque<usize>,
    shuffle: Option<fastrand::Rng>,
    /// By rank: its loss was delivered.
    reported: Vec<bool>,
}

impl Local {
    /// All ranks of a cluster.
    pub fn ranks(size: usize, shuffle: Option<u64>) -> Vec<Self> {
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..size).map(|_| unbounded()).unzip();
        let hub = Arc::new(Hub {
            senders,
            states: (0..size).map(|_| AtomicU8::new(PRESENT)).collect(),
        });
        let ranks = inboxes.into_iter().enumerate();
        let local = ranks.map(|(rank, inbox)| Self {
            rank,
            name: format!("node{rank}"),
            hub: hub.clone(),
            inbox,
            unread: vec![VecDeque::new(); size],
            order: VecDeque::new(),
            shuffle: shuffle.map(|seed| fastrand::Rng::with_seed(seed.wrapping_add(rank as u64))),
            reported: vec![false; size],
        });
        local.collect()
    }

    fn check(&self) -> Result<(), WireError> {
        match self.hub.state(self.rank) {
            GONE => Err(WireError::Killed { rank: self.rank }),
            _ => Ok(()),
        }
    }

    /// Keeps what has arrived until it is delivered.
    fn keep(&mut self, parcel: Parcel) {
        self.order.push_back(parcel.from);
        self.unread[parcel.from].push_back(parcel);
    }

    /// The place in `order` of the message to deliver now.
    fn choose(&mut self) -> Option<usize> {
        let waiting = self.order.len();
        match &mut self.shuffle {
            _ if waiting == 0 => None,
            None => Some(0),
            // A quarter of the polls finds nothing.
            Some(random) => (random.u8(0..4) > 0).then(|| random.usize(0..waiting)),
        }
    }

    /// A rank that is gone, of which the user does not know.
    fn newly_gone(&self) -> Option<usize> {
        let gone = |&rank: &usize| !self.reported[rank] && self.hub.state(rank) == GONE;
        (0..self.reported.len()).find(gone)
    }
}

impl Transport for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.hub.states.len()
    }

    fn host_name(&self) -> &str {
        &self.name
    }

    fn send(&mut self, to: usize, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError> {
        self.check()?;
        if self.hub.state(self.rank) == PRESENT && self.hub.state(to) == PRESENT {
            let from = self.rank;
            let parcel = Parcel {
                from,
                channel,
                bytes,
            };
            // A receiver that has ended reads nothing.
            let _ = self.hub.senders[to].send(parcel);
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Event>, WireError> {
        self.check()?;
        // Before the inbox is read: what a rank sent is in there when it is gone.
        let gone = self.newly_gone();
        while let Ok(parcel) = self.inbox.try_recv() {
            self.keep(parcel);
        }
        if let Some(rank) = gone.filter(|&rank| self.unread[rank].is_empty()) {
            self.reported[rank] = true;
            let why = "its thread has ended".to_owned();
            return Ok(Some(Event::Lost { rank, why }));
        }
        let Some(place) = self.choose() else {
            return Ok(None);
        };
        let sender = self.order.remove(place);
        let parcel = sender.and_then(|sender| self.unread[sender].pop_front());
        Ok(parcel.map(|parcel| Event::Message {
            from: parcel.from,
            channel: parcel.channel,
            bytes: parcel.bytes,
        }))
    }

    fn rest(&mut self, at_most: Duration) {
        // Who is gone and who is not, nobody is woken for.
        if self.order.is_empty()
            && let Ok(parcel) = self.inbox.recv_timeout(at_most)
        {
            self.keep(parcel);
        }
    }

    fn unsent(&self) -> usize {
        0
    }

    fn lose(&mut self, rank: usize) {
        self.reported[rank] = true;
    }

    fn close(&mut self, _complete: bool) -> Result<(), WireError> {
        self.check()?;
        self.hub.set(self.rank, ENDED);
        Ok(())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.hub.state(self.rank) != ENDED {
            self.hub.set(self.rank, GONE);
        }
    }
}
