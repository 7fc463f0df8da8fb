//! How much may be on its way to one rank.
//!
//! MPI takes small messages from its caller before the receiver has them, and keeps them
//! in memory that all receivers share: Open MPI has some hundreds of fragments of shared
//! memory for all together. A rank that is gone would keep them all, and the others would
//! hear nothing any more. Every so many messages, one is therefore sent synchronously: it
//! leaves only when the receiver has taken it, and so all before it.
//!
//! Bytes are limited, too. A beat travels behind what MPI has given to the network before.

/// Every message of this number is synchronous. The answer costs a small message, so few
/// ask for one.
const BATCH: u64 = 64;
/// Two batches: one is sent while the answer of the other one is on its way.
const MESSAGES: u64 = 2 * BATCH;

/// What is on its way to one receiver.
#[derive(Debug)]
pub struct Window {
    /// The most bytes at a time, if they are several messages.
    most: usize,
    /// Bytes that MPI still reads.
    bytes: usize,
    /// Messages.
    begun: u64,
    /// Messages that the receiver has taken, as far as it is known.
    taken: u64,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It leaves when MPI has copied it.
    Plain,
    /// The message of this number leaves when the receiver has taken it.
    Synchronous(u64),
}

impl Window {
    /// A window of so many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            bytes: 0,
            begun: 0,
            taken: 0,
        }
    }

    /// How a message of so many bytes begins, if it may.
    pub fn begin(&mut self, bytes: usize) -> Option<Manner> {
        let too_large = self.bytes > 0 && self.bytes + bytes > self.most;
        if too_large || self.begun - self.taken == MESSAGES {
            return None;
        }
        self.bytes += bytes;
        self.begun += 1;
        Some(match self.begun % BATCH {
            0 => Manner::Synchronous(self.begun),
            _ => Manner::Plain,
        })
    }

    /// A message has left. Messages may leave in any order.
    pub fn leave(&mut self, bytes: usize, manner: Manner) {
        self.bytes -= bytes;
        if let Manner::Synchronous(number) = manner {
            self.taken = self.taken.max(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_messages_wait_for_the_answer_before_the_last() {
        let mut window = Window::new(10);
        let begin = |window: &mut Window| std::iter::from_fn(|| window.begin(0)).count();
        assert_eq!(begin(&mut window), 128);
        window.leave(0, Manner::Plain);
        assert_eq!(begin(&mut window), 0);
        window.leave(0, Manner::Synchronous(64));
        assert_eq!(begin(&mut window), 64);
        window.leave(0, Manner::Synchronous(192));
        window.leave(0, Manner::Synchronous(128));
        assert_eq!(begin(&mut window), 128);
    }

    #[test]
    fn a_full_window_always_has_an_answer_on_its_way() {
        let mut window = Window::new(10);
        let mut unanswered = Vec::new();
        for _ in 0..1000 {
            match window.begin(0) {
                Some(Manner::Plain) => {}
                Some(answered) => unanswered.push(answered),
                None => window.leave(0, unanswered.remove(0)),
            }
        }
        assert!(window.begun > 900);
    }

    #[test]
    fn bytes_are_limited_but_for_a_message_alone() {
        let mut window = Window::new(10);
        assert_eq!(window.begin(100), Some(Manner::Plain));
        assert_eq!(window.begin(1), None);
        window.leave(100, Manner::Plain);
        assert_eq!(window.begin(4), Some(Manner::Plain));
        assert_eq!(window.begin(6), Some(Manner::Plain));
        assert_eq!(window.begin(1), None);
        assert_eq!(window.begin(0), Some(Manner::Plain));
        window.leave(6, Manner::Plain);
        assert_eq!(window.begin(1), Some(Manner::Plain));
    }
}
