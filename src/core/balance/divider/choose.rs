//! Which ranges the next step gets: by the speeds that are known, and others than before only where
//! that pays.

use std::ops::Range;

use super::state::Part;
use super::why::Decision;
use super::{Divider, DividerError};

/// Where the number of steps is unknown, as many follow as were, and at least so many.
const FEW: u64 = 10;
/// The part of all shares that parts get together to which no share was given.
const LITTLE: f64 = 1e-9;
/// The part of the time for which a part that has no units is tried again.
const RETRIED: f64 = 0.01;

impl Divider {
    /// Units of work a second, as far as is known; 0 for those that are lost.
    pub(super) fn speeds(&self) -> Result<Vec<f64>, DividerError> {
        let parts = || self.state.parts.iter();
        if parts().all(|part| part.is_lost) {
            return Err(DividerError::AllLost);
        }
        let known = || parts().filter_map(|part| part.estimate.seconds());
        let (sum, count) = known().fold((0.0, 0.0), |(sum, count), seconds| {
            (sum + 1.0 / seconds, count + 1.0)
        });
        let usual = if count > 0.0 { sum / count } else { 1.0 };
        let speed = |part: &Part| match part.is_lost {
            true => 0.0,
            false => part
                .estimate
                .seconds()
                .map_or(usual, |seconds| 1.0 / seconds),
        };
        Ok(parts().map(speed).collect())
    }

    /// By shares that are given, as far as parts are not lost; by the speeds where none is left.
    pub(super) fn by_shares(
        &mut self,
        units: &Range<u64>,
        shares: &[f64],
        speeds: Vec<f64>,
    ) -> Result<Vec<Range<u64>>, DividerError> {
        let both = shares.iter().zip(&speeds);
        let alive = both.map(|(share, speed)| if *speed > 0.0 { *share } else { 0.0 });
        let alive: Vec<f64> = alive.collect();
        // What the limits of these leave, and all where none is left, goes to the others.
        let little = LITTLE * alive.iter().sum::<f64>() / speeds.iter().sum::<f64>();
        let all = alive.iter().zip(&speeds);
        let all = all.map(|(share, speed)| share + speed * if little > 0.0 { little } else { 1.0 });
        let limits = &self.state.options.limits;
        let ranges = match self.measure.cut(units, &alive, limits) {
            Some(ranges) => ranges,
            None => self.cut(units, &all.collect::<Vec<_>>())?,
        };
        self.decided(&ranges, Decision::Given);
        Ok(ranges)
    }

    /// The present ranges, or others that are better by enough.
    pub(super) fn chosen(
        &mut self,
        units: &Range<u64>,
        speeds: &[f64],
    ) -> Result<Vec<Range<u64>>, DividerError> {
        let target = self.cut(units, speeds)?;
        let seconds = self.seconds(&target, speeds);
        if let Some((tried, worth)) = self.tried(units, &target, speeds, seconds) {
            let tried = self.cut(units, &tried)?;
            if self.moved(&tried) as f64 * self.move_seconds() <= worth {
                self.decided(&tried, Decision::Tried);
                return Ok(tried);
            }
        }
        let lost = |part: usize| speeds[part] <= 0.0 && !self.state.ranges[part].is_empty();
        let is_other = self.state.ranges.is_empty() || self.state.units != *units;
        if is_other || (0..speeds.len()).any(lost) {
            let known = self
                .state
                .parts
                .iter()
                .any(|part| part.estimate.seconds().is_some());
            let seconds = known.then_some(seconds);
            self.decided(&target, Decision::Anew { seconds });
            return Ok(target);
        }
        let before = self.seconds(&self.state.ranges, speeds);
        let moved = self.moved(&target);
        let state = &self.state;
        let left = match state.options.steps {
            Some(steps) => steps.saturating_sub(state.steps).max(1),
            None => state.steps.max(FEW),
        };
        let cost = moved as f64 * self.move_seconds();
        let gain = before - seconds;
        let pays = gain > state.options.hysteresis * before && gain * left as f64 > cost;
        match pays {
            true => {
                self.decided(
                    &target,
                    Decision::Moved {
                        seconds,
                        before,
                        moved,
                        cost,
                    },
                );
                Ok(target)
            }
            false => {
                let kept = self.state.ranges.clone();
                self.decided(
                    &kept,
                    Decision::Kept {
                        seconds: before,
                        better: seconds,
                        cost,
                    },
                );
                Ok(kept)
            }
        }
    }

    /// Speeds with which parts that have been without units for long get some again, so that it
    /// shows if they have become faster, and the seconds that it may take to move them.
    fn tried(
        &self,
        units: &Range<u64>,
        target: &[Range<u64>],
        speeds: &[f64],
        seconds: f64,
    ) -> Option<(Vec<f64>, f64)> {
        let granules = (units.end - units.start).div_ceil(self.state.options.granularity);
        let granule = self.measure.work(units) / granules as f64;
        let is_due = |part: &usize| {
            let alone = granule / speeds[*part];
            let idle = self.state.parts[*part].idle;
            target[*part].is_empty()
                && speeds[*part] > 0.0
                && idle > 0.0
                && alone - seconds < RETRIED * idle
        };
        let due: Vec<usize> = (0..speeds.len()).filter(is_due).collect();
        if due.is_empty() || granules < speeds.len() as u64 {
            return None;
        }
        let (mut tried, mut worth) = (speeds.to_vec(), 0.0);
        let all: f64 = speeds.iter().sum();
        for part in due {
            // A granule and a half of what all do in a step.
            tried[part] = 1.5 * all / granules as f64;
            worth += RETRIED * self.state.parts[part].idle;
        }
        Some((tried, worth))
    }

    pub(super) fn cut(
        &self,
        units: &Range<u64>,
        speeds: &[f64],
    ) -> Result<Vec<Range<u64>>, DividerError> {
        let limits = &self.state.options.limits;
        self.measure
            .cut(units, speeds, limits)
            .ok_or_else(|| self.no_room(units))
    }

    pub(super) fn no_room(&self, units: &Range<u64>) -> DividerError {
        let alive = self.state.parts.iter().zip(&self.state.options.limits);
        let room = alive
            .filter(|(part, _)| !part.is_lost)
            .map(|(_, limit)| limit.unwrap_or(u64::MAX));
        DividerError::NoRoom {
            room: room.fold(0, u64::saturating_add),
            needed: self.measure.size(units),
        }
    }

    /// Seconds of a step with these ranges.
    pub(super) fn seconds(&self, ranges: &[Range<u64>], speeds: &[f64]) -> f64 {
        let parts = ranges
            .iter()
            .zip(speeds)
            .filter(|(range, _)| !range.is_empty());
        let seconds = parts.map(|(range, speed)| self.measure.work(range) / speed);
        seconds.fold(0.0, f64::max)
    }

    /// Units that would come to another part; all, before the first step.
    fn moved(&self, ranges: &[Range<u64>]) -> u64 {
        let stay = |(old, new): (&Range<u64>, &Range<u64>)| {
            let (start, end) = (old.start.max(new.start), old.end.min(new.end));
            end.saturating_sub(start)
        };
        let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        all - self.state.ranges.iter().zip(ranges).map(stay).sum::<u64>()
    }

    /// Seconds to move a unit.
    fn move_seconds(&self) -> f64 {
        let (moved, seconds) = self.state.moves;
        let learned = seconds / (moved.max(1)) as f64;
        self.state.options.move_seconds.unwrap_or(learned)
    }

    pub(super) fn decided(&mut self, ranges: &[Range<u64>], decision: Decision) {
        self.state.moved = self.moved(ranges);
        self.state.decision = Some(decision);
    }
}
