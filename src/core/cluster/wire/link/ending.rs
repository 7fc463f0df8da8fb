//! The end of a run: all have settled, rank 0 has written, all leave.

use super::super::Wire;
use super::{Control, Link, Peer, Transport, WireError};
use crate::time::Nanos;

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
