//! What a unit of work takes on a part, from steps that are noisy and may change for good.
//!
//! The estimate is the mean of the observations since the last change. One observation that is
//! far off is suspect and does not count, until the next one confirms it. Smaller changes show in
//! several observations: where the last 2, 4, 8 or 16 differ from those before them by more than
//! noise explains, the earlier ones are forgotten (a test of the ratio of likelihoods, for a change
//! of the mean at an unknown time).

use serde::{Deserialize, Serialize};

/// Standard errors that noise does not explain: one in 150,000 observations exceeds them.
const SURE: f64 = 4.5;
/// The same for the observation that confirms a suspect one.
const CONFIRMED: f64 = 1.5;
/// Observations that are compared with those before.
const RECENT: usize = 16;
/// Observations whose mean the estimate is at most, so that it follows slow changes.
const MOST: f64 = 32.0;
/// Relative noise that is assumed before any was seen, and the number of observations that it counts as.
const SUPPOSED: (f64, f64) = (0.05, 2.0);
/// The noise of all parts counts as so many observations of one.
const OF_ALL: f64 = 4.0;
/// Least relative noise: clocks and rounded units differ by so much.
const LEAST: f64 = 0.005;

/// Squares of relative deviations, and their number.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Noise {
    squares: f64,
    count: f64,
}

impl Noise {
    /// The relative standard deviation of what all parts have shown.
    pub fn of_all<'n>(parts: impl Iterator<Item = &'n Estimate>) -> f64 {
        let (supposed, count) = SUPPOSED;
        let mut sum = Self {
            squares: supposed * supposed * count,
            count,
        };
        for part in parts {
            sum.squares += part.noise.squares;
            sum.count += part.noise.count;
        }
        (sum.squares / sum.count).sqrt()
    }

    fn add(&mut self, square: f64) {
        let kept = (MOST - 1.0).min(self.count) / self.count.max(1.0);
        self.squares = self.squares * kept + square;
        self.count = self.count * kept + 1.0;
    }

    fn with(self, of_all: f64) -> f64 {
        let squares = self.squares + OF_ALL * of_all * of_all;
        (squares / (self.count + OF_ALL)).sqrt().max(LEAST)
    }
}

/// Seconds a unit of work of one part.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The mean, or what was supposed where `count` is 0; 0 where nothing is known.
    mean: f64,
    /// Observations since the last change, at most [`MOST`].
    count: f64,
    /// The last of them.
    recent: Vec<f64>,
    suspect: Option<f64>,
    noise: Noise,
}

impl Estimate {
    /// What is taken for true until the first observation.
    pub fn supposed(seconds: f64) -> Self {
        Self {
            mean: seconds,
            ..Self::default()
        }
    }

    /// Seconds a unit, if anything is known.
    pub fn seconds(&self) -> Option<f64> {
        (self.mean > 0.0).then_some(self.mean)
    }

    /// The relative standard error, where something was observed.
    pub fn error(&self, of_all: f64) -> Option<f64> {
        (self.count > 0.0).then(|| self.noise.with(of_all) / self.count.sqrt())
    }

    /// Takes in an observation, `of_all` being the noise of all parts. Returns the earlier
    /// estimate where this was a change.
    pub fn observe(&mut self, seconds: f64, of_all: f64) -> Option<f64> {
        if self.count == 0.0 {
            self.add(seconds);
            return None;
        }
        let before = self.mean;
        let noise = self.noise.with(of_all);
        let far = (seconds / before - 1.0) / (noise * (1.0 + 1.0 / self.count).sqrt());
        if let Some(suspect) = self.suspect.take()
            && far * (suspect - before).signum() > CONFIRMED
            && (seconds - suspect).abs() < SURE * noise * seconds.min(suspect)
        {
            self.forget(0);
            self.add(suspect);
            self.add(seconds);
            return Some(before);
        }
        if let Some(last) = self.recent.last() {
            // Half of the squared difference of two is the square of one's deviation. Where much is
            // suspect, that is what noise is here.
            let difference = ((seconds - last) / before).abs().min(SURE * noise);
            self.noise.add(difference * difference / 2.0);
        }
        if far.abs() > SURE {
            self.suspect = Some(seconds);
            return None;
        }
        self.add(seconds);
        let kept = self.changed(noise)?;
        self.forget(kept);
        Some(before)
    }

    fn add(&mut self, seconds: f64) {
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(seconds);
        self.count = (self.count + 1.0).min(MOST);
        match self.count == 1.0 {
            true => self.mean = seconds,
            false => self.mean += (seconds - self.mean) / self.count,
        }
    }

    /// Keeps the last observations only.
    fn forget(&mut self, kept: usize) {
        let recent = self.recent.split_off(self.recent.len() - kept);
        self.recent.clear();
        self.count = 0.0;
        for seconds in recent {
            self.add(seconds);
        }
    }

    /// The number of last observations that differ most from those before, if noise does not
    /// explain it.
    fn changed(&self, noise: f64) -> Option<usize> {
        let mut most = (SURE, None);
        let mut sum = 0.0;
        for (kept, seconds) in (1..).zip(self.recent.iter().rev()) {
            sum += seconds;
            let of = f64::from(kept);
            if kept < 2 || !u32::is_power_of_two(kept) || of >= self.count {
                continue;
            }
            let earlier = self.count - of;
            let before = (self.mean * self.count - sum) / earlier;
            let spread = self.mean * noise * (1.0 / of + 1.0 / earlier).sqrt();
            let far = (sum / of - before).abs() / spread;
            if far > most.0 {
                most = (far, Some(kept as usize));
            }
        }
        most.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(observations: &[f64]) -> Estimate {
        let mut estimate = Estimate::default();
        for seconds in observations {
            estimate.observe(*seconds, 0.02);
        }
        estimate
    }

    #[test]
    fn one_outlier_does_not_count_and_two_are_a_change() {
        let steady = [1.0, 1.02, 0.98, 1.0, 1.01];
        let outlier = after(&[&steady[..], &[9.0, 1.0]].concat());
        assert!((outlier.seconds().unwrap() - 1.0).abs() < 0.01);
        let mut changed = after(&steady);
        assert_eq!(changed.observe(2.0, 0.02), None);
        let before = changed.observe(2.1, 0.02).unwrap();
        assert!((before - 1.002).abs() < 1e-9, "{before}");
        assert!((changed.seconds().unwrap() - 2.05).abs() < 1e-9);
        // Two outliers on either side are noise.
        let both = after(&[&steady[..], &[2.0, 0.5, 1.0]].concat());
        assert!((both.seconds().unwrap() - 0.95).abs() < 0.1);
    }

    #[test]
    fn a_small_change_shows_in_several_observations() {
        let mut estimate = after(&[1.0; 20]);
        let changes: Vec<usize> = (0..12)
            .filter(|_| estimate.observe(1.03, 0.02).is_some())
            .collect();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!((estimate.seconds().unwrap() - 1.03).abs() < 1e-9);
    }

    #[test]
    fn noise_is_no_change() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut estimate = Estimate::default();
        let changes = (0..10_000).filter(|_| {
            let noisy = 1.0 + 0.2 * (random.f64() + random.f64() + random.f64() - 1.5) * 2.0;
            estimate.observe(noisy, 0.2).is_some()
        });
        assert!(changes.count() < 10);
        assert!((estimate.seconds().unwrap() - 1.0).abs() < 0.1);
        assert!((estimate.noise.with(0.2) - 0.2).abs() < 0.05);
    }

    #[test]
    fn what_was_supposed_gives_way_to_the_first_observation() {
        let mut estimate = Estimate::supposed(5.0);
        assert_eq!((estimate.seconds(), estimate.error(0.1)), (Some(5.0), None));
        estimate.observe(1.0, 0.1);
        assert_eq!(estimate.seconds(), Some(1.0));
        assert_eq!(Estimate::default().seconds(), None);
    }
}
