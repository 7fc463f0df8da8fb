//! The rates at which a device computes pool units: while others stream, and while no
//! device streams. They differ, since memory bandwidth is shared. A step shows one of
//! them, or both in parts.

use super::chunks::Progress;
use super::rates::{Estimate, NEVER_SUDDEN, RateEstimates, Verdict};

/// A rate counts if it was measured on more than one in so many of the device's pool
/// units: the last chunks are small and show little.
const ENOUGH: u64 = 4;
/// The same for a rate that was never measured.
const BETTER_THAN_NOTHING: u64 = 96;

/// Pool units a second, as far as a step has shown them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolRates {
    /// While others streamed, or its own if it streams.
    pub beside: Option<f64>,
    /// Of a device on host memory, while no device streamed.
    pub alone: Option<f64>,
}

impl PoolRates {
    /// The rates that a step has shown of a device that computes on host memory, whose
    /// chunks have at least `least` units.
    pub fn of(progress: &Progress, rates: &RateEstimates, least: u64) -> Self {
        let enough = |of: &Estimate| match of.observed() {
            Some(_) => progress.done.div_ceil(ENOUGH),
            None => (progress.done.div_ceil(BETTER_THAN_NOTHING)).max(least.min(progress.done)),
        };
        let beside = progress.beside_rate(enough(&rates.pool));
        let alone = progress.alone_rate(enough(&rates.alone));
        Self { beside, alone }
    }
}

/// The conditions of a step's rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// The plan differed from the one before.
    pub anew: bool,
    /// No device was planned to stream.
    pub unstreamed: bool,
    /// The step is long enough to show a change of the device.
    pub telling: bool,
    /// Units moved: a rate that was not measured is not stale.
    pub disturbed: bool,
}

impl RateEstimates {
    /// Updates both rates by a step. Returns whether the device has changed for good.
    pub fn observe_pace(&mut self, seen: PoolRates, under: Conditions) -> bool {
        let beside = note(&mut self.pool, seen.beside, !under.unstreamed, under);
        let alone = note(&mut self.alone, seen.alone, under.unstreamed, under);
        [beside, alone].contains(&Some(Verdict::Changed))
    }
}

/// Takes in an observation, if there is one.
fn note(of: &mut Estimate, seen: Option<f64>, meant: bool, under: Conditions) -> Option<Verdict> {
    let Some(rate) = seen else {
        if !under.disturbed {
            of.unobserved();
        }
        return None;
    };
    // The first step of planned conditions replaces a stale estimate. Unplanned
    // conditions may come of a disturbance.
    let verdict = if under.anew || meant && of.is_stale() {
        of.observe_anew(rate);
        Verdict::Fits
    } else if under.telling {
        of.observe(rate)
    } else {
        of.observe_within(rate, NEVER_SUDDEN)
    };
    Some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ChunkDone;

    const USUAL: Conditions = Conditions {
        anew: false,
        unstreamed: true,
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
    fn planned_conditions_count_at_once_and_unplanned_ones_do_not() {
        let mut rates = known();
        rates.observe_pace(pace(None, 100.0), USUAL);
        rates.observe_pace(pace(40.0, 100.0), USUAL);
        assert_eq!(rates.pool.value(), Some(80.0));
        rates.observe_pace(pace(None, 100.0), USUAL);
        let streaming = Conditions {
            unstreamed: false,
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
