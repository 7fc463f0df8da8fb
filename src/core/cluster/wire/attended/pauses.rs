//! When the thread of a wire pauses, and for how long. It decides alone, and receives the time.

use std::time::{Duration, Instant};

/// How long the thread looks without a pause after something has happened. An answer over a
/// fast network comes within this time.
const AWAKE: Duration = Duration::from_micros(100);

/// How long it does while the user waits for an arrival, and so computes nothing.
const PATIENT: Duration = Duration::from_millis(20);

/// The shortest pause. It leaves its core to others.
const SHORTEST: Duration = Duration::from_micros(20);

/// The longest pause. MPI wakes nobody, so an arrival after a long silence comes later by
/// this.
const LONGEST: Duration = Duration::from_micros(800);

/// Pauses get longer with the time in which nothing has happened, and are this part of it:
/// what is waited for comes later by no more.
const PART: u32 = 64;

/// What the thread finds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// There was an order, or something has arrived.
    pub happened: bool,
    /// A message has left or arrived in part, and moves only while the transport is called.
    pub moves: bool,
    /// The user waits for an arrival.
    pub waits: bool,
}

/// The pauses of a thread.
pub(super) struct Pauses {
    /// Since when nothing has happened.
    quiet_since: Instant,
}

impl Pauses {
    pub fn new(now: Instant) -> Self {
        Self { quiet_since: now }
    }

    /// The next pause, if there is one.
    pub fn next(&mut self, state: State, now: Instant) -> Option<Duration> {
        if state.happened || state.moves {
            self.quiet_since = now;
        }
        let quiet = now.saturating_duration_since(self.quiet_since);
        let awake = if state.waits { PATIENT } else { AWAKE };
        (quiet >= awake).then(|| (quiet / PART).clamp(SHORTEST, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: State = State {
        happened: false,
        moves: false,
        waits: false,
    };

    /// The pauses after something has happened, until so much time is over.
    fn pauses(state: State, end: Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let mut pauses = Pauses::new(begin);
        let (mut now, mut all) = (begin, Vec::new());
        while now < begin + end {
            let pause = pauses.next(state, now);
            all.extend(pause);
            now += pause.unwrap_or(Duration::from_micros(1));
        }
        all
    }

    #[test]
    fn there_is_no_pause_while_a_message_moves() {
        let moves = State {
            moves: true,
            ..QUIET
        };
        assert_eq!(pauses(moves, Duration::from_millis(50)), []);
    }

    #[test]
    fn what_comes_after_a_silence_is_late_by_a_small_part_of_it() {
        let all = pauses(QUIET, Duration::from_secs(10));
        assert_eq!(all[0], SHORTEST);
        let mut quiet = AWAKE;
        for pause in &all {
            assert!(
                *pause <= (quiet / PART).max(SHORTEST),
                "{pause:?} after {quiet:?}"
            );
            quiet += *pause;
        }
        // A thread that polls 1250 times a second burns no core.
        assert_eq!(all.last(), Some(&LONGEST));
        assert!(all.len() < 13_000, "{}", all.len());
    }

    #[test]
    fn a_user_that_waits_is_answered_without_a_pause_at_first() {
        let waits = State {
            waits: true,
            ..QUIET
        };
        assert_eq!(pauses(waits, PATIENT), []);
        assert!(!pauses(waits, PATIENT * 2).is_empty());
    }
}
