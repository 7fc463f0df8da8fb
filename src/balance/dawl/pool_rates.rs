//! The pace at which a device does pool units: beside streams, and without any.
//! A step shows one of the two, or both in parts, but what changes a device's
//! speed for good changes it in either condition.

use super::chunks::Progress;
use super::rates::{Estimate, NEVER_SUDDEN, RateEstimates, Verdict};

/// A rate beside streams, or without any, counts if it was seen on this part of
/// what a device did in the step: the last chunks are small and say little.
const ENOUGH: u64 = 4;
/// The same of a rate of which nothing is known.
const BETTER_THAN_NOTHING: u64 = 96;
/// How many times as fast as on the average of a step a device may be without
/// streams beside it.
const MOST: f64 = 4.0;

/// Pool units a second in a step, as far as the step could tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolRates {
    /// While others streamed, or its own if it streams.
    pub beside: Option<f64>,
    /// Of one that computes on host memory, while nobody streamed.
    pub alone: Option<f64>,
}

impl PoolRates {
    /// What a step shows of a device that computes on host memory, of which
    /// `rates` tells what is known, and whose chunks have `least` units.
    ///
    /// Chunks overlap: the cores that are through with one begin the next while
    /// the slowest of them is late. The next one is then over soon after, and by
    /// itself would look faster than anything. Nobody is faster beside streams
    /// than on average, so a step that says so is taken as a whole.
    pub fn of(progress: &Progress, rates: &RateEstimates, least: u64) -> Self {
        let Some(average) = progress.rate() else {
            return Self::default();
        };
        let enough = |of: &Estimate| match of.observed() {
            Some(_) => progress.done.div_ceil(ENOUGH),
            None => (progress.done.div_ceil(BETTER_THAN_NOTHING)).max(least.min(progress.done)),
        };
        let beside = progress.beside_rate(enough(&rates.pool));
        let alone = progress.alone_rate(enough(&rates.alone));
        let is_credible = beside.is_none_or(|rate| rate <= average)
            && alone.is_none_or(|rate| rate <= MOST * average);
        match is_credible {
            true => Self { beside, alone },
            false => Self {
                beside: beside.map(|_| average),
                alone: alone.map(|_| average),
            },
        }
    }
}

/// What is to be made of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// The plan was unlike the one before.
    pub anew: bool,
    /// Nobody was meant to stream.
    pub quiet: bool,
    /// There was enough of it to tell whether the device has changed.
    pub telling: bool,
    /// Units changed hands: what was not seen says nothing of conditions.
    pub disturbed: bool,
}

/// What an observation has done: the verdict, and by what factor a change has
/// changed the estimate.
type Noted = Option<(Verdict, f64)>;

impl RateEstimates {
    /// Takes in the pace of a step. Says whether the device changed for good.
    pub fn observe_pace(&mut self, seen: PoolRates, under: Conditions) -> bool {
        let beside = note(&mut self.pool, seen.beside, !under.quiet, under);
        let alone = note(&mut self.alone, seen.alone, under.quiet, under);
        carry_along(&mut self.pool, beside, alone);
        carry_along(&mut self.alone, alone, beside);
        self.agree(beside.is_some());
        let is_change = |noted: Noted| matches!(noted, Some((Verdict::Changed, _)));
        is_change(beside) || is_change(alone)
    }

    /// Nobody computes slower for having host memory to itself: where the two
    /// say so, the one that was seen last is right.
    fn agree(&mut self, beside_was_seen: bool) {
        let Some((beside, alone)) = self.pool.observed().zip(self.alone.observed()) else {
            return;
        };
        match alone < beside {
            true if beside_was_seen => self.alone.scale(beside / alone),
            true => self.pool.scale(alone / beside),
            false => {}
        }
    }
}

fn note(of: &mut Estimate, seen: Option<f64>, meant: bool, under: Conditions) -> Noted {
    let Some(rate) = seen else {
        if !under.disturbed {
            of.unobserved();
        }
        return None;
    };
    let before = of.value().unwrap_or(rate);
    // Of conditions that were planned, and not seen of late, the first step
    // tells the most. What comes unplanned may come of a disturbance.
    let verdict = if under.anew || meant && of.is_stale() {
        of.observe_anew(rate);
        Verdict::Fits
    } else if under.telling {
        of.observe(rate)
    } else {
        of.observe_within(rate, NEVER_SUDDEN)
    };
    Some((verdict, rate / before))
}

/// If the device has changed as `other` shows, so has this estimate, unless it
/// shows so itself. A suspicion is confirmed by that.
fn carry_along(estimate: &mut Estimate, noted: Noted, other: Noted) {
    let Some((Verdict::Changed, factor)) = other else {
        return;
    };
    if matches!(noted, None | Some((Verdict::Suspect, _))) {
        estimate.scale(factor);
        estimate.drop_suspicion();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ChunkDone;

    const USUAL: Conditions = Conditions {
        anew: false,
        quiet: true,
        telling: true,
        disturbed: false,
    };

    fn pace(beside: impl Into<Option<f64>>, alone: impl Into<Option<f64>>) -> PoolRates {
        PoolRates {
            beside: beside.into(),
            alone: alone.into(),
        }
    }

    fn known() -> RateEstimates {
        let mut rates = RateEstimates::default();
        for _ in 0..3 {
            assert!(!rates.observe_pace(pace(80.0, 100.0), USUAL));
        }
        rates
    }

    /// A chunk of `units` done from `from` to `to` microseconds.
    fn chunk(units: u64, from: u64, to: u64) -> ChunkDone {
        ChunkDone {
            step: 0,
            device: 0,
            units,
            held: false,
            issued: 0,
            started: from * 1000,
            ended: to * 1000,
        }
    }

    #[test]
    fn both_rates_are_seen_in_a_step_of_two_parts() {
        let mut progress = Progress::default();
        progress.completed(&chunk(100, 0, 100), Some(0));
        progress.completed(&chunk(100, 100, 300), None);
        let pace = PoolRates::of(&progress, &known(), 4);
        assert_eq!(pace, self::pace(0.5e6, 1e6));
    }

    #[test]
    fn a_chunk_that_is_over_with_the_one_before_is_no_miracle() {
        let mut progress = Progress::default();
        progress.completed(&chunk(100, 0, 199), Some(0));
        progress.completed(&chunk(100, 80, 200), None);
        let pace = PoolRates::of(&progress, &known(), 4);
        assert_eq!(pace, self::pace(1e6, 1e6));
        let mut progress = Progress::default();
        progress.completed(&chunk(100, 0, 199), None);
        progress.completed(&chunk(100, 80, 200), Some(199_000));
        let pace = PoolRates::of(&progress, &known(), 4);
        assert_eq!(pace, self::pace(1e6, 1e6));
    }

    #[test]
    fn small_parts_of_a_step_tell_only_what_is_not_known() {
        let mut progress = Progress::default();
        progress.completed(&chunk(100, 0, 200), None);
        progress.completed(&chunk(16, 200, 216), Some(200_000));
        assert_eq!(PoolRates::of(&progress, &known(), 4), pace(0.5e6, None));
        let nothing = RateEstimates::default();
        let alone = PoolRates::of(&progress, &nothing, 4).alone;
        assert_eq!(alone.map(f64::round), Some(1e6));
    }

    #[test]
    fn a_change_of_one_carries_the_other_along() {
        let mut rates = known();
        assert!(!rates.observe_pace(pace(None, 50.0), USUAL));
        assert_eq!(rates.pool.value(), Some(80.0));
        assert!(rates.observe_pace(pace(None, 50.0), USUAL));
        assert_eq!(rates.pool.value(), Some(40.0));
    }

    #[test]
    fn a_change_that_both_show_counts_once() {
        let mut rates = known();
        assert!(!rates.observe_pace(pace(None, 50.0), USUAL));
        assert!(rates.observe_pace(pace(40.0, 50.0), USUAL));
        assert_eq!(rates.pool.value(), Some(40.0));
        assert!(!rates.observe_pace(pace(40.0, None), USUAL));
        assert_eq!(rates.alone.value(), Some(50.0));
    }

    #[test]
    fn planned_conditions_count_at_once_and_unplanned_ones_do_not() {
        let mut rates = known();
        rates.observe_pace(pace(None, 100.0), USUAL);
        rates.observe_pace(pace(40.0, 100.0), USUAL);
        assert_eq!(rates.pool.value(), Some(80.0));
        rates.observe_pace(pace(None, 100.0), USUAL);
        let streaming = Conditions {
            quiet: false,
            ..USUAL
        };
        rates.observe_pace(pace(40.0, 100.0), streaming);
        assert_eq!(rates.pool.value(), Some(40.0));
        assert_eq!(rates.alone.value(), Some(100.0));
    }

    #[test]
    fn a_step_in_which_units_move_does_not_end_what_was_known() {
        let moved = Conditions {
            disturbed: true,
            ..USUAL
        };
        let mut rates = known();
        rates.observe_pace(pace(None, 100.0), USUAL);
        rates.observe_pace(pace(None, None), moved);
        rates.observe_pace(pace(None, 110.0), USUAL);
        assert_eq!(rates.alone.value(), Some(100.0));
        // Nor does it clear a suspicion.
        rates.observe_pace(pace(None, 50.0), USUAL);
        rates.observe_pace(pace(None, None), moved);
        assert!(rates.observe_pace(pace(None, 50.0), USUAL));
    }

    #[test]
    fn nobody_is_slower_alone() {
        let mut rates = known();
        rates.observe_pace(pace(None, 60.0), USUAL);
        rates.observe_pace(pace(None, 60.0), USUAL);
        let streaming = Conditions {
            quiet: false,
            ..USUAL
        };
        rates.observe_pace(pace(90.0, None), streaming);
        assert_eq!(rates.pool.value(), Some(90.0));
        assert!((rates.alone.value().unwrap() - 90.0).abs() < 1e-9);
    }

    #[test]
    fn too_little_to_tell_is_no_change() {
        let mut rates = known();
        let little = Conditions {
            telling: false,
            ..USUAL
        };
        for _ in 0..3 {
            assert!(!rates.observe_pace(pace(20.0, None), little));
        }
    }
}
