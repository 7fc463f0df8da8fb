//! How many messages may be on their way to one rank.
//!
//! MPI takes small messages from its caller before the receiver has them, and keeps them
//! in memory that all ranks share: Open MPI has some hundreds of fragments of shared
//! memory for all receivers together. A rank that is gone would keep them all, and the
//! others would hear nothing any more. Every so many messages, one is therefore sent
//! synchronously: it leaves only when the receiver has taken it, and so all before it.

/// Every message of this number is synchronous. The answer costs a small message, so few
/// ask for one.
const BATCH: u64 = 64;
/// Two batches: one is sent while the answer of the other one is on its way.
const WINDOW: u64 = 2 * BATCH;

/// What is known of one receiver.
#[derive(Debug, Default)]
pub struct Window {
    begun: u64,
    taken: u64,
}

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It leaves when MPI has copied it.
    Plain,
    /// It leaves when the receiver has taken it, which is then told to [`Window::taken`]
    /// with this number.
    Synchronous(u64),
}

impl Window {
    /// How the next message begins, if it may.
    pub fn begin(&mut self) -> Option<Manner> {
        if self.begun - self.taken == WINDOW {
            return None;
        }
        self.begun += 1;
        Some(match self.begun % BATCH {
            0 => Manner::Synchronous(self.begun),
            _ => Manner::Plain,
        })
    }

    /// The receiver has taken the synchronous message of this number. Answers may be
    /// noticed in any order.
    pub fn taken(&mut self, number: u64) {
        self.taken = self.taken.max(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_for_the_answer_before_the_last() {
        let mut window = Window::default();
        let mut begun: Vec<Manner> = std::iter::from_fn(|| window.begin()).collect();
        assert_eq!(begun.len() as u64, WINDOW);
        begun.retain(|manner| *manner != Manner::Plain);
        assert_eq!(begun, [Manner::Synchronous(64), Manner::Synchronous(128)]);
        window.taken(64);
        assert_eq!(std::iter::from_fn(|| window.begin()).count(), 64);
        window.taken(192);
        window.taken(128);
        assert_eq!(std::iter::from_fn(|| window.begin()).count(), 128);
    }

    #[test]
    fn a_full_window_always_has_an_answer_on_its_way() {
        let mut window = Window::default();
        let mut unanswered = Vec::new();
        for _ in 0..1000 {
            match window.begin() {
                Some(Manner::Plain) => {}
                Some(Manner::Synchronous(number)) => unanswered.push(number),
                None => window.taken(unanswered.remove(0)),
            }
        }
        assert!(window.begun > 900);
    }
}
