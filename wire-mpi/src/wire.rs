//! The state of a wire.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::rc::Rc;

use pdawl_core::cluster::wire::plugin::abi::{CONTROL, Host};

use crate::buffer::Owned;
use crate::call::{Failure, Unreachable};
use crate::failures::Failures;
use crate::incoming::{Incoming, Whole};
use crate::outgoing::{Outgoing, Piece};
use crate::pieces;
use crate::session::Session;

/// A run that this process has joined.
pub struct Wire {
    session: Session,
    /// Bytes of the largest piece.
    limit: usize,
    outgoing: Outgoing,
    incoming: Incoming,
    failures: Failures,
    /// By rank.
    lost: Vec<bool>,
    /// Losses that pdawl does not know.
    losses: VecDeque<(usize, String)>,
}

/// What is delivered to pdawl.
pub enum Delivery {
    Message {
        from: usize,
        channel: u32,
        bytes: Owned,
    },
    Lost {
        rank: usize,
        why: String,
    },
}

impl Wire {
    /// A wire without messages. Two pieces may be on their way to a rank, so that the
    /// network is never idle between them.
    pub fn new(session: Session, limit: usize) -> Self {
        Self {
            limit,
            outgoing: Outgoing::new(session.communicator(), session.size, 2 * limit),
            incoming: Incoming::new(session.size, limit),
            failures: Failures::new(session.size),
            lost: vec![false; session.size],
            losses: VecDeque::new(),
            session,
        }
    }

    /// The name of this machine.
    pub fn host_name(&self) -> &CStr {
        &self.session.host_name
    }

    /// Sends a message. If MPI refuses it, the rank is lost.
    pub fn send(&mut self, to: usize, channel: u32, bytes: Owned) {
        if self.lost[to] {
            return;
        }
        let size = bytes.size();
        let bytes = Rc::new(bytes);
        let mut send = |range, tag| {
            let bytes = bytes.clone();
            self.outgoing.send(to, Piece { bytes, range, tag })
        };
        let sent = match (channel, pieces::pieces(size, self.limit)) {
            (CONTROL, _) => send(0..size, pieces::CONTROL),
            (_, Some(mut pieces)) => pieces.try_for_each(|(range, follow)| send(range, follow)),
            (_, None) => Err(Unreachable {
                rank: to,
                why: Failure::new(format!("a message of {size} bytes has too many pieces")),
            }),
        };
        if let Err(unreachable) = sent {
            self.unreachable(unreachable);
        }
    }

    /// Makes progress, and takes the next delivery.
    pub fn poll(&mut self, host: &Host) -> Result<Option<Delivery>, Failure> {
        for unreachable in self.outgoing.progress()? {
            self.unreachable(unreachable);
        }
        let communicator = self.session.communicator();
        let failed = (self.incoming).begin(communicator, &mut self.failures, host)?;
        for unreachable in failed {
            self.unreachable(unreachable);
        }
        match self.incoming.next(&self.lost, host) {
            Ok(Some(Whole {
                from,
                channel,
                bytes,
            })) => {
                return Ok(Some(Delivery::Message {
                    from,
                    channel,
                    bytes,
                }));
            }
            Ok(None) => {}
            Err(unreachable) => self.unreachable(unreachable),
        }
        let loss = self.losses.pop_front();
        Ok(loss.map(|(rank, why)| Delivery::Lost { rank, why }))
    }

    /// How much has not left, without what is for lost ranks.
    pub fn unsent(&self) -> usize {
        self.outgoing.count()
    }

    /// How many messages have arrived in part, without those of lost ranks.
    pub fn receiving(&self) -> usize {
        self.incoming.count(&self.lost)
    }

    /// The rank is lost. Its buffers remain, since MPI may still use them.
    pub fn lose(&mut self, rank: usize) {
        self.lost[rank] = true;
        self.outgoing.lose(rank);
    }

    fn unreachable(&mut self, Unreachable { rank, why }: Unreachable) {
        if !self.lost[rank] {
            self.lose(rank);
            self.losses.push_back((rank, why.to_string()));
        }
    }

    /// Ends. MPI can be ended only by all ranks together. Otherwise everything remains as
    /// it is until the process ends: MPI may still use the buffers.
    pub fn close(self, complete: bool) {
        match complete {
            true => self.session.end(),
            false => std::mem::forget(self),
        }
    }
}
