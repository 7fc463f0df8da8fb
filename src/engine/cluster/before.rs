//! Before a run begins: what processes compare, as no node makes sense of messages about what it
//! does not run, and how one that takes no part ends the others.

use std::thread;
use std::time::{Duration, Instant};

use super::ClusterError;
use super::encode::{decode, encode};
use super::node::Node;
use super::turn::PAUSE;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::wire::agreement::Agreement;
use pdawl_core::cluster::wire::{Arrived, Wire, WireError};
use pdawl_core::cluster::{NodeId, protocol};

/// What a process is, as far as the library knows it. The program adds its sources.
pub fn build_agreement() -> Agreement {
    let mut agreement = Agreement::default();
    agreement.add("the version", env!("CARGO_PKG_VERSION"));
    agreement.add("the protocol", protocol::VERSION.to_string());
    agreement
}

/// How long a node waits for the first one to answer, which may still open its files.
const ANSWER: Duration = Duration::from_secs(3);

/// Time for the last messages to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Tells the others why this node does not take part, so that all end. Returns whether the
/// first node has answered, and so tells it to its user; false at the first node itself.
pub fn abandon(wire: &mut dyn Wire, why: &str) -> bool {
    let (me, why) = (wire.rank(), why.to_owned());
    // The first node passes on what it receives.
    let to = match me {
        0 => 1..wire.size(),
        _ => 0..1,
    };
    let Ok(message) = encode(&Message::Stop { why }) else {
        return false;
    };
    for rank in to {
        if wire.send(rank, message.clone()).is_err() {
            return false;
        }
    }
    if wire.flush(LAST_WORDS).is_err() || me == 0 {
        return false;
    }
    let begin = Instant::now();
    while begin.elapsed() < ANSWER {
        match wire.poll() {
            Ok(Some(Arrived::Message { from: 0, bytes })) => {
                if let Some((Message::Stop { .. }, _)) = decode(&bytes) {
                    return true;
                }
            }
            Ok(Some(Arrived::Lost { rank: 0, .. } | Arrived::Excluded { by: 0 })) | Err(_) => {
                return false;
            }
            Ok(Some(_)) => {}
            Ok(None) => thread::sleep(PAUSE),
        }
    }
    false
}

/// Why a run has ended before it began, as this node has heard while it prepared its part.
pub fn heard(wire: &mut dyn Wire) -> ClusterError {
    let me = NodeId(wire.rank() as u32);
    loop {
        let (rank, why) = match wire.poll() {
            Ok(Some(Arrived::Message { bytes, .. })) => match decode(&bytes) {
                Some((Message::Stop { why }, _)) => return ClusterError::Stopped(why),
                _ => continue,
            },
            Ok(Some(Arrived::Excluded { by })) => {
                let by = NodeId(by as u32);
                return ClusterError::Excluded { me, by };
            }
            Ok(Some(Arrived::Lost { rank: 0, .. })) => return ClusterError::FirstLost,
            Ok(Some(Arrived::Lost { rank, why })) => (rank, why),
            Ok(None) => return ClusterError::Interrupted,
            Err(error) => return error.into(),
        };
        return WireError::LostAtStart { rank, why }.into();
    }
}

/// What a node runs that leaves the cluster.
pub fn the_end() -> Agreement {
    let mut end = Agreement::default();
    end.add("the operation", "none, the end");
    end
}

impl Node<'_> {
    /// Returns when all nodes are to run the same.
    ///
    /// # Errors
    /// [`ClusterError::Unlike`] when one is to run something else, and as a run. All nodes end
    /// then.
    pub fn agree(&mut self, mine: &Agreement) -> Result<(), ClusterError> {
        let compared = match self.me() == NodeId::FIRST {
            true => self.hear(mine),
            false => self.announce(mine.clone()),
        };
        compared.map_err(|error| self.fail(error))
    }

    fn announce(&mut self, what: Agreement) -> Result<(), ClusterError> {
        self.send(NodeId::FIRST, Message::Runs { what })?;
        while !std::mem::take(&mut self.is_agreed) {
            self.turn()?;
        }
        Ok(())
    }

    /// At the first node: compares what all others announce with what it is to run itself.
    fn hear(&mut self, mine: &Agreement) -> Result<(), ClusterError> {
        for rank in 1..self.size() {
            let index = rank as usize;
            while !self.lost[index] && self.announced[index].is_none() {
                self.turn()?;
            }
            let theirs = self.announced[index].take();
            if let Some(difference) = theirs.and_then(|theirs| mine.difference(&theirs)) {
                let node = NodeId(rank);
                return Err(ClusterError::Unlike { difference, node });
            }
        }
        for rank in 1..self.size() {
            if !self.lost[rank as usize] {
                self.send(NodeId(rank), Message::Agreed)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdawl_core::cluster::wire::LocalWire;

    fn received(wire: &mut LocalWire) -> Option<String> {
        match wire.poll() {
            Ok(Some(Arrived::Message { bytes, .. })) => match decode(&bytes) {
                Some((Message::Stop { why }, _)) => Some(why),
                other => panic!("{other:?}"),
            },
            _ => None,
        }
    }

    #[test]
    fn the_first_node_tells_all_others() {
        let mut wires = LocalWire::cluster(3);
        assert!(!abandon(&mut wires[0], "no file"));
        for wire in &mut wires[1..] {
            assert_eq!(received(wire).as_deref(), Some("no file"));
        }
    }

    #[test]
    fn another_node_tells_the_first_one_and_waits_for_its_answer() {
        let mut wires = LocalWire::cluster(2);
        let (mut second, mut first) = (wires.remove(1), wires.remove(0));
        let answered = thread::spawn(move || abandon(&mut second, "no file"));
        let why = loop {
            if let Some(why) = received(&mut first) {
                break why;
            }
            thread::yield_now();
        };
        assert_eq!(why, "no file");
        let message = encode(&Message::Stop { why }).unwrap();
        first.send(1, message).unwrap();
        assert!(answered.join().unwrap());
    }

    #[test]
    fn what_ended_a_run_is_heard_after_what_did_not() {
        let mut wires = LocalWire::cluster(3);
        let mut third = wires.remove(2);
        wires[0].send(2, vec![1]).unwrap();
        abandon(&mut wires[0], "no file");
        let heard_of = |wire: &mut LocalWire| heard(wire).to_string();
        assert_eq!(heard_of(&mut third), "no file");
        drop(wires.remove(1));
        assert!(heard_of(&mut third).contains("rank 1 was lost before the run began"));
        drop(wires);
        assert!(heard_of(&mut third).starts_with("node 0 was lost"));
    }

    #[test]
    fn a_first_node_that_is_lost_does_not_answer() {
        let mut wires = LocalWire::cluster(2);
        let mut second = wires.remove(1);
        drop(wires);
        assert!(!abandon(&mut second, "no file"));
    }
}
