//! Whether somebody streams, by what steps of either kind took.
//!
//! Rates decide it at first. But they are as noisy as steps are, a plan is chosen
//! when its rates happen to look good, and while nobody streams nothing shows how
//! fast streams would be: noise could keep a run for good in what is worse by a
//! tenth; and what probes said of streams in a bad moment, for 100 steps by a
//! third (beside an H200). So steps are remembered by kind. Where the other kind
//! calibration to be better, though not beyond noise, or not to cost much, it is
//! tried in a few steps of a long run; so are, whatever they promise, streams
//! that were never seen but in probes. A trial that goes badly ends at once. And
//! of two kinds that were both seen the faster one is kept.

/// Steps after which a kind has been seen.
const SEEN: usize = 4;
/// Steps of a kind that are looked back at.
const WINDOW: usize = 15;
/// Steps after which the other kind has been forgotten.
const REMEMBERED: u32 = 64;
/// How much less the other kind must have taken to be gone back to.
const BETTER: f64 = 0.99;
/// How many times what steps of the other kind took one may take before its kind
/// is given up.
const TOO_LONG: f64 = 1.2;
/// Steps that must be left for the other kind to be tried.
const LONG: u32 = 40;
/// The same for streams that promise nothing.
const VERY_LONG: u32 = 80;
/// The part of what is left of a run that trying it may cost, by what rates say.
const TRIAL: f64 = 0.02;

/// Steps of one kind.
#[derive(Clone, Debug, Default)]
struct Kind {
    seconds: [f64; WINDOW],
    count: usize,
    last: u32,
}

impl Kind {
    fn observe(&mut self, step: u32, seconds: f64) {
        self.seconds[self.count % WINDOW] = seconds;
        self.count += 1;
        self.last = step;
    }

    fn is_seen(&self) -> bool {
        self.count >= SEEN
    }

    /// Whether enough of it was seen to be judged beside another.
    fn is_known(&self, other: &Self) -> bool {
        let is_too_long = || self.median() > TOO_LONG * other.median();
        self.is_seen() || self.count > 0 && other.is_seen() && is_too_long()
    }

    fn median(&self) -> f64 {
        let mut sorted = self.seconds;
        let sorted = &mut sorted[..self.count.min(WINDOW)];
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// The steps of both kinds, in seconds.
#[derive(Clone, Debug, Default)]
pub struct StreamingChoice {
    /// By whether somebody streamed.
    kinds: [Kind; 2],
    /// Of the last step.
    streamed: Option<bool>,
}

/// What rates say of the coming step.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    /// The seconds by kind: nobody streams, somebody does.
    pub seconds: [f64; 2],
    /// Whether they call for streams, beyond noise.
    pub streams: bool,
    /// Steps that are left.
    pub left: u32,
}

impl StreamingChoice {
    /// A step without surprises has ended. The first one after another kind
    /// only brings the devices into its stride.
    pub fn observe(&mut self, step: u32, streamed: bool, seconds: f64) {
        let kind = &mut self.kinds[usize::from(streamed)];
        match self.streamed.replace(streamed) == Some(streamed) {
            true => kind.observe(step, seconds),
            false => *kind = Kind::default(),
        }
    }

    /// Whether somebody is to stream in `step`.
    pub fn streams(&self, step: u32, promise: Prediction) -> bool {
        let Some(now) = self.streamed else {
            return promise.streams;
        };
        let [own, other] = [now, !now].map(|kind| &self.kinds[usize::from(kind)]);
        if other.is_known(own) && step <= other.last + REMEMBERED {
            let is_worse = own.is_known(other) && other.median() < BETTER * own.median();
            return now != is_worse;
        }
        let [stay, change] = [now, !now].map(|kind| promise.seconds[usize::from(kind)]);
        // The first step of a kind is not counted.
        let trial = (SEEN + 1) as f64 * (change - stay);
        let is_cheap = trial < TRIAL * f64::from(promise.left) * stay;
        let is_new = !now && other.count == 0 && promise.left >= VERY_LONG;
        let is_promising = (is_cheap && promise.left >= LONG || is_new) && own.is_seen();
        match promise.streams == now {
            true => now != is_promising,
            false => promise.streams,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// StreamingChoice after as many steps of each kind, and the number of steps.
    fn after(kinds: &[(bool, f64, u32)]) -> (StreamingChoice, u32) {
        let (mut streaming_choice, mut step) = (StreamingChoice::default(), 0);
        for (streamed, seconds, count) in kinds {
            for _ in 0..*count {
                streaming_choice.observe(step, *streamed, *seconds);
                step += 1;
            }
        }
        (streaming_choice, step)
    }

    fn promise(quiet: f64, streaming: f64, streams: bool) -> Prediction {
        Prediction {
            seconds: [quiet, streaming],
            streams,
            left: 50,
        }
    }

    #[test]
    fn rates_decide_until_steps_do() {
        for streams in [false, true] {
            let promise = promise(1.0, 1.3, streams);
            assert_eq!(StreamingChoice::default().streams(0, promise), streams);
            let (streaming_choice, step) = after(&[(false, 1.0, 6)]);
            assert_eq!(streaming_choice.streams(step, promise), streams);
        }
    }

    #[test]
    fn what_was_faster_is_gone_back_to() {
        // Noise has let it look slower.
        let promise = promise(1.0, 1.1, false);
        let (streaming_choice, step) = after(&[(true, 1.0, 8), (false, 1.1, 3)]);
        assert!(
            !streaming_choice.streams(step, promise),
            "not seen often enough"
        );
        let (streaming_choice, step) = after(&[(true, 1.0, 8), (false, 1.1, 5)]);
        assert!(streaming_choice.streams(step, promise));
        let (streaming_choice, step) = after(&[(true, 1.0, 8), (false, 1.005, 5)]);
        assert!(!streaming_choice.streams(step, promise), "hardly slower");
        let (streaming_choice, step) = after(&[(true, 1.0, 8), (false, 1.1, 80)]);
        let promise = Prediction {
            seconds: [1.0, 1.3],
            ..promise
        };
        assert!(!streaming_choice.streams(step, promise), "long ago");
    }

    #[test]
    fn what_was_slower_is_left_alone_though_rates_praise_it() {
        let (streaming_choice, step) = after(&[(false, 1.1, 8), (true, 1.0, 5)]);
        assert!(streaming_choice.streams(step, promise(0.9, 1.0, false)));
    }

    #[test]
    fn what_promises_something_is_tried_in_a_long_run() {
        let (streaming_choice, step) = after(&[(false, 1.0, 6)]);
        assert!(streaming_choice.streams(step, promise(1.0, 0.95, false)));
        // Or what may be better than it looks: five of fifty steps.
        assert!(streaming_choice.streams(step, promise(1.0, 1.19, false)));
        assert!(!streaming_choice.streams(step, promise(1.0, 1.21, false)));
        let short = Prediction {
            left: 20,
            ..promise(1.0, 0.95, false)
        };
        assert!(!streaming_choice.streams(step, short));
        // And given up where it does not keep its promise.
        let (streaming_choice, step) = after(&[(false, 1.0, 6), (true, 1.05, 5)]);
        assert!(!streaming_choice.streams(step, promise(1.0, 0.95, true)));
    }

    #[test]
    fn streams_that_promise_nothing_are_tried_once_in_a_very_long_run() {
        let very_long = Prediction {
            left: 90,
            ..promise(1.0, 2.0, false)
        };
        let (mut streaming_choice, mut step) = after(&[(false, 1.0, 5)]);
        assert!(streaming_choice.streams(step, very_long));
        assert!(
            !streaming_choice.streams(step, promise(1.0, 2.0, false)),
            "not so long"
        );
        // The first step is not counted, and the second one is enough.
        for seconds in [3.0, 2.0] {
            assert!(streaming_choice.streams(step, very_long));
            streaming_choice.observe(step, true, seconds);
            step += 1;
        }
        for _ in 0..60 {
            assert!(!streaming_choice.streams(step, very_long));
            streaming_choice.observe(step, false, 1.0);
            step += 1;
        }
        // Nobody tries steps without streams blindly.
        let (streaming_choice, step) = after(&[(true, 1.0, 6)]);
        let quiet = Prediction {
            left: 90,
            ..promise(2.0, 1.0, true)
        };
        assert!(streaming_choice.streams(step, quiet));
    }

    #[test]
    fn one_slow_step_is_no_reason() {
        let (mut streaming_choice, step) = after(&[(true, 1.0, 8), (false, 0.9, 5)]);
        streaming_choice.observe(step, false, 5.0);
        assert!(!streaming_choice.streams(step + 1, promise(1.0, 1.0, false)));
    }
}
