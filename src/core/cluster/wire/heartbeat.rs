//! Which ranks are lost: those that were silent for too long.
//!
//! Every rank sends every other one a *beat* in each period, a message without content.
//! Whatever else arrives counts as one, too, but what is sent does not: a message may wait
//! for seconds behind a large one, and a beat, which is a control message, does not. This
//! file decides alone; it learns what arrived and the time. [`super::Link`] acts.
//!
//! A rank judges only while it listens. Time in which it did not poll, because it was
//! suspended or did something long, counts as one period at most, and nobody is judged
//! before everything that has arrived is read. A rank that wakes up therefore hears first
//! what the others sent meanwhile.

use std::time::Duration;

use crate::time::Nanos;

/// The times of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// A rank sends every other one a beat this often. Nanoseconds.
    pub period: Nanos,
    /// A rank that was not heard for longer is lost. Nanoseconds.
    pub silence: Nanos,
}

impl Default for Pulse {
    /// A beat each quarter of a second costs nothing. Two seconds of silence are eight
    /// missed beats. TCP sends a lost packet again after 0.2 s, then 0.4 s and 0.8 s
    /// (Linux), so a network that loses a packet three times delivers within 1.4 s.
    fn default() -> Self {
        Self {
            period: 250_000_000,
            silence: 2_000_000_000,
        }
    }
}

/// What is to be done now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Ranks that are to get a beat. It counts as sent.
    pub beats: Vec<usize>,
    /// Ranks that are lost from now on.
    pub lost: Vec<usize>,
}

/// What one rank knows of the others.
#[derive(Debug)]
pub struct Heartbeat {
    pulse: Pulse,
    /// By rank; this rank and lost ones have none.
    peers: Vec<Option<Peer>>,
    /// The time of the last question.
    asked: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Something arrived from it. Later, by the time in which this rank did not listen.
    heard: Nanos,
    /// The last beat to it.
    beat: Nanos,
}

impl Heartbeat {
    /// At the end of a run, a rank is lost after three and a half times the silence: the
    /// others have nothing else to do than to wait, and rank 0 may be writing what they have
    /// computed. Seven seconds by default.
    pub fn be_patient(&mut self) {
        self.pulse.silence = self.pulse.silence.saturating_mul(7) / 2;
    }

    /// The silence after which a rank is lost.
    pub fn silence(&self) -> Duration {
        Duration::from_nanos(self.pulse.silence)
    }

    /// Everybody was heard just now.
    pub fn new(rank: usize, size: usize, pulse: Pulse, now: Nanos) -> Self {
        let peer = Peer {
            heard: now,
            beat: now,
        };
        let peers = (0..size).map(|other| (other != rank).then_some(peer));
        Self {
            pulse,
            peers: peers.collect(),
            asked: now,
        }
    }

    /// Something arrived.
    pub fn heard(&mut self, from: usize, now: Nanos) {
        if let Some(peer) = &mut self.peers[from] {
            peer.heard = peer.heard.max(now);
        }
    }

    /// The rank is lost, for whatever reason.
    pub fn lose(&mut self, rank: usize) {
        self.peers[rank] = None;
    }

    /// What is due. `all_read` says that nothing that has arrived is unread.
    pub fn due(&mut self, now: Nanos, all_read: bool) -> Due {
        let absent = (now - self.asked).saturating_sub(self.pulse.period);
        self.asked = now;
        let mut due = Due::default();
        for (rank, slot) in self.peers.iter_mut().enumerate() {
            let Some(peer) = slot else { continue };
            peer.heard = (peer.heard + absent).min(now);
            if all_read && now - peer.heard > self.pulse.silence {
                due.lost.push(rank);
                *slot = None;
            } else if now - peer.beat >= self.pulse.period {
                due.beats.push(rank);
                peer.beat = now;
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PULSE: Pulse = Pulse {
        period: 10,
        silence: 50,
    };

    fn heartbeat() -> Heartbeat {
        Heartbeat::new(1, 3, PULSE, 0)
    }

    fn due(beats: &[usize], lost: &[usize]) -> Due {
        Due {
            beats: beats.to_vec(),
            lost: lost.to_vec(),
        }
    }

    #[test]
    fn a_beat_is_due_in_each_period() {
        let mut heartbeat = heartbeat();
        assert_eq!(heartbeat.due(9, true), due(&[], &[]));
        assert_eq!(heartbeat.due(10, true), due(&[0, 2], &[]));
        assert_eq!(heartbeat.due(19, true), due(&[], &[]));
        assert_eq!(heartbeat.due(23, true), due(&[0, 2], &[]));
        assert_eq!(heartbeat.due(32, true), due(&[], &[]));
    }

    #[test]
    fn a_silent_rank_is_lost_once_and_gets_no_beats() {
        let mut heartbeat = heartbeat();
        for now in 1..=50 {
            heartbeat.heard(0, now);
            assert_eq!(heartbeat.due(now, true).lost, [0; 0]);
        }
        assert_eq!(heartbeat.due(51, true).lost, [2]);
        heartbeat.heard(2, 52);
        for now in 52..=90 {
            let due = heartbeat.due(now, true);
            assert!(due.lost.is_empty() && !due.beats.contains(&2), "{now}");
        }
    }

    #[test]
    fn nobody_is_judged_before_everything_is_read() {
        let mut heartbeat = heartbeat();
        for now in 1..=100 {
            assert_eq!(heartbeat.due(now, false).lost, [0; 0]);
        }
        heartbeat.heard(2, 100);
        assert_eq!(heartbeat.due(101, true).lost, [0]);
    }

    #[test]
    fn a_rank_that_slept_gives_the_others_their_time() {
        let mut heartbeat = heartbeat();
        for now in 1..=30 {
            heartbeat.due(now, true);
        }
        // 30 of silence before the sleep, and one period for the sleep.
        assert_eq!(heartbeat.due(100_000, true).lost, [0; 0]);
        assert_eq!(heartbeat.due(100_010, true).lost, [0; 0]);
        assert_eq!(heartbeat.due(100_011, true).lost, [0, 2]);
    }

    #[test]
    fn a_rank_that_polls_rarely_still_notices() {
        let mut heartbeat = heartbeat();
        let lost = (1..20).find(|poll| !heartbeat.due(poll * 1000, true).lost.is_empty());
        assert_eq!(lost, Some(6));
    }

    proptest! {
        /// Ranks that poll at random times, each at least once in a period, with messages
        /// that take less than the silence: nobody is ever taken for lost.
        #[test]
        fn no_rank_is_lost_that_beats(seed in any::<u64>()) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut hearts: Vec<_> =
                (0..3).map(|rank| Heartbeat::new(rank, 3, PULSE, 0)).collect();
            // To whom, from whom, and when.
            let mut travelling: Vec<(usize, usize, Nanos)> = Vec::new();
            let mut next = [0; 3];
            for now in 0..2000 {
                for rank in 0..3 {
                    if next[rank] != now {
                        continue;
                    }
                    next[rank] = now + random.u64(1..=PULSE.period);
                    travelling.retain(|&(to, from, at)| {
                        let arrives = to == rank && at <= now;
                        if arrives {
                            hearts[rank].heard(from, now);
                        }
                        !arrives
                    });
                    let due = hearts[rank].due(now, true);
                    prop_assert!(due.lost.is_empty(), "{} at {}", rank, now);
                    // From poll to poll a beat is at most two periods old, and it waits at
                    // most one period to be read.
                    let delay = || random.u64(0..PULSE.silence - 3 * PULSE.period);
                    let delays = std::iter::repeat_with(delay);
                    let beats = due.beats.into_iter().zip(delays);
                    travelling.extend(beats.map(|(to, delay)| (to, rank, now + delay)));
                }
            }
        }

        /// Whenever a rank falls silent, the other notices: not before the silence and at
        /// its first poll after it.
        #[test]
        fn silence_is_noticed(silent in 0u64..200, polls in prop::collection::vec(1u64..=10, 80)) {
            let mut heartbeat = Heartbeat::new(0, 2, PULSE, 0);
            let (mut now, mut heard) = (0, 0);
            for gap in polls {
                now += gap;
                if now <= silent {
                    heartbeat.heard(1, now);
                    heard = now;
                }
                let lost = !heartbeat.due(now, true).lost.is_empty();
                prop_assert_eq!(lost, now - heard > PULSE.silence);
                if lost {
                    return Ok(());
                }
            }
            prop_assert!(now - heard <= PULSE.silence);
        }
    }
}
