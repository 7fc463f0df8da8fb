//! What a transport does: carry bytes, with no idea of their meaning.

use std::thread;
use std::time::Duration;

use super::WireError;

/// Two independent sequences of messages. Order is kept within each, so a short control
/// message may overtake data that take a second to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Messages of the user of the wire.
    Data,
    /// Messages of [`super::Link`].
    Control,
}

/// What a transport delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message, whole.
    Message {
        from: usize,
        channel: Channel,
        bytes: Vec<u8>,
    },
    /// The rank cannot be reached. Many transports never notice.
    Lost { rank: usize, why: String },
}

/// Carries messages to other ranks. Messages of one channel from one rank to another
/// arrive in order, each once.
pub trait Transport: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// The name of the machine that this rank runs on.
    fn host_name(&self) -> &str;

    /// Sends to another rank and returns at once. A rank that cannot be reached is no error
    /// but an event.
    fn send(&mut self, to: usize, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError>;

    /// The next event, if there is one. It never waits.
    fn poll(&mut self) -> Result<Option<Event>, WireError>;

    /// Waits until there may be an event, at most so long. A transport that nothing wakes
    /// sleeps.
    fn rest(&mut self, at_most: Duration) {
        thread::sleep(at_most);
    }

    /// How many messages have not left, without those to ranks that are lost. It changes
    /// only in [`Transport::poll`].
    fn unsent(&self) -> usize;

    /// Whether a message has arrived in part: the rest comes while [`Transport::poll`] is
    /// called. No message of a transport that delivers them whole has.
    fn is_receiving(&self) -> bool {
        false
    }

    /// The rank is lost, by the judgement of those above: nothing waits for it any more.
    fn lose(&mut self, rank: usize);

    /// Ends. `complete` says that no rank is lost and that all ranks do the same now.
    fn close(&mut self, complete: bool) -> Result<(), WireError>;
}
