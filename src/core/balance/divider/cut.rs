//! Ranges in proportion to speeds, within limits.

use std::ops::Range;

use crate::balance::largest_remainder;

/// Relative difference of two times that are the same.
const CLOSE: f64 = 1e-4;

/// What is known of units.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    granularity: u64,
    /// Work, and size, of the units before each one and of all; empty where every unit has 1.
    work: Vec<f64>,
    size: Vec<u64>,
}

impl Measure {
    /// `weights` and `sizes` have an entry a unit, or none.
    pub fn new(granularity: u64, weights: &[f64], sizes: &[u64]) -> Self {
        Self {
            granularity,
            work: sums(weights, 0.0, |sum, weight| sum + weight),
            size: sums(sizes, 0, u64::saturating_add),
        }
    }

    pub fn work(&self, units: &Range<u64>) -> f64 {
        match self.work.is_empty() {
            true => (units.end - units.start) as f64,
            false => self.work[units.end as usize] - self.work[units.start as usize],
        }
    }

    pub fn size(&self, units: &Range<u64>) -> u64 {
        match self.size.is_empty() {
            true => units.end - units.start,
            false => self.size[units.end as usize] - self.size[units.start as usize],
        }
    }

    /// Divides `units` in proportion to `speeds`, a range a part in their order, so that the
    /// part that ends last ends as early as limits allow. Ranges begin at multiples of the
    /// granularity from the first unit. `None` where limits leave no room, or no speed is above 0.
    pub fn cut(
        &self,
        units: &Range<u64>,
        speeds: &[f64],
        limits: &[Option<u64>],
    ) -> Option<Vec<Range<u64>>> {
        if !self.size.is_empty() || (!self.work.is_empty() && self.work(units) > 0.0) {
            return self.by_work(units, speeds, limits);
        }
        let counts = self.counts(units.end - units.start, speeds, limits)?;
        let mut begin = units.start;
        let ranges = counts.into_iter().map(|granules| {
            let end = self.after(begin, granules).min(units.end);
            std::mem::replace(&mut begin, end)..end
        });
        Some(ranges.collect())
    }

    /// Granules by largest remainders. What exceeds a limit goes to the other parts.
    fn counts(&self, units: u64, speeds: &[f64], limits: &[Option<u64>]) -> Option<Vec<u64>> {
        let mut left = units.div_ceil(self.granularity);
        let mut free = speeds.to_vec();
        let mut full = vec![0; speeds.len()];
        loop {
            let mut counts = largest_remainder(left, &free);
            if counts.iter().sum::<u64>() < left {
                return None;
            }
            let mut is_within = true;
            for (part, limit) in limits.iter().enumerate() {
                let most = limit.map_or(u64::MAX, |limit| limit / self.granularity);
                if counts[part] > most {
                    (free[part], full[part]) = (0.0, most);
                    left -= most;
                    is_within = false;
                }
            }
            if is_within {
                counts
                    .iter_mut()
                    .zip(full)
                    .for_each(|(count, full)| *count += full);
                return Some(counts);
            }
        }
    }

    /// The least time in which the parts, one after the other, take all units, each as many as it
    /// can do in it and has room for: chains on chains, with unlike parts (Pinar and Aykanat).
    fn by_work(
        &self,
        units: &Range<u64>,
        speeds: &[f64],
        limits: &[Option<u64>],
    ) -> Option<Vec<Range<u64>>> {
        let works = speeds.iter().filter(|speed| **speed > 0.0);
        let slowest = works.fold(f64::INFINITY, |least, speed| least.min(*speed));
        let work = self.work(units);
        let mut least = work / speeds.iter().sum::<f64>();
        let mut most = work / slowest * (1.0 + CLOSE);
        let mut best = self.filled(most, units, speeds, limits)?;
        while most > least * (1.0 + CLOSE) {
            let middle = least + (most - least) / 2.0;
            match self.filled(middle, units, speeds, limits) {
                Some(ranges) => (most, best) = (middle, ranges),
                None => least = middle,
            }
        }
        Some(best)
    }

    /// The end of the most first granules of `units` that are no more work than `work`, and fit
    /// into `limit`.
    pub fn most(&self, units: &Range<u64>, work: f64, limit: Option<u64>) -> u64 {
        let end = |granules: u64| self.after(units.start, granules).min(units.end);
        let fits = |granules: u64| {
            let range = units.start..end(granules);
            self.work(&range) <= work && limit.is_none_or(|limit| self.size(&range) <= limit)
        };
        let all = (units.end - units.start).div_ceil(self.granularity);
        let (mut some, mut beyond) = (0, all + 1);
        while beyond - some > 1 {
            let middle = some + (beyond - some) / 2;
            match fits(middle) {
                true => some = middle,
                false => beyond = middle,
            }
        }
        end(some)
    }

    /// The unit so many granules after another.
    fn after(&self, unit: u64, granules: u64) -> u64 {
        unit.saturating_add(granules.saturating_mul(self.granularity))
    }

    /// The end of the first granule of `units`.
    pub fn granule(&self, units: &Range<u64>) -> u64 {
        self.after(units.start, 1).min(units.end)
    }

    /// What the parts do in so many seconds, if that is all.
    fn filled(
        &self,
        seconds: f64,
        units: &Range<u64>,
        speeds: &[f64],
        limits: &[Option<u64>],
    ) -> Option<Vec<Range<u64>>> {
        let mut begin = units.start;
        let ranges = speeds.iter().enumerate().map(|(part, speed)| {
            let limit = limits.get(part).copied().flatten();
            let end = match *speed > 0.0 {
                true => self.most(&(begin..units.end), speed * seconds, limit),
                false => begin,
            };
            std::mem::replace(&mut begin, end)..end
        });
        let ranges: Vec<Range<u64>> = ranges.collect();
        (begin == units.end).then_some(ranges)
    }
}

/// The sum of the entries before each one, and of all; nothing of nothing.
fn sums<T: Copy>(of: &[T], zero: T, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sum = zero;
    let rest = of.iter().map(|entry| {
        sum = add(sum, *entry);
        sum
    });
    let rest: Vec<T> = rest.collect();
    match rest.is_empty() {
        true => rest,
        false => [&[zero][..], &rest].concat(),
    }
}
