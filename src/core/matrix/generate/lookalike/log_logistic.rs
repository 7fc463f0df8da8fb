//! Log-logistic row lengths: most lie near a scale, and the frequency of long rows
//! falls with a power of their length.

/// A log-logistic distribution of whole numbers from `least` to `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogLogistic {
    pub least: u32,
    pub most: u32,
    /// The median of the distribution without bounds.
    scale: f64,
    /// The larger the shape, the narrower is the distribution.
    shape: f64,
    /// The probability below `least`, and that within the bounds.
    below: f64,
    within: f64,
}

/// A number of rows of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthCount {
    pub length: u32,
    pub rows: u32,
}

/// Halvings of an interval, after which it is narrow enough.
const HALVINGS: u32 = 40;

impl LogLogistic {
    /// The distribution of this shape with this mean, or with the nearest mean that the
    /// bounds allow.
    pub fn with_mean(least: u32, most: u32, shape: f64, mean: f64) -> Self {
        let of = |scale: f64| {
            let up_to = |length: u32| log_logistic(f64::from(length), scale, shape);
            let below = least.checked_sub(1).map_or(0.0, up_to);
            Self {
                least,
                most,
                scale,
                shape,
                below,
                within: up_to(most) - below,
            }
        };
        // The mean rises with the scale.
        let (mut low, mut high) = (1e-2f64.ln(), (f64::from(most) * 10.0 + 10.0).ln());
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match of(middle.exp()).mean() < mean {
                true => low = middle,
                false => high = middle,
            }
        }
        of(((low + high) / 2.0).exp())
    }

    /// The mean length.
    pub fn mean(&self) -> f64 {
        let (mut mean, mut below) = (0.0, 0.0);
        for length in self.least..=self.most {
            let up_to = self.up_to(length);
            mean += (up_to - below) * f64::from(length);
            below = up_to;
        }
        mean
    }

    /// How many of `rows` rows have each length.
    pub fn counts(&self, rows: u32) -> Vec<LengthCount> {
        let mut before = 0;
        let mut counts = Vec::new();
        for length in self.least..=self.most {
            // Rounding the cumulated counts gives every row a length.
            let up_to = (self.up_to(length) * f64::from(rows)).round() as u32;
            if up_to > before {
                let rows = up_to - before;
                counts.push(LengthCount { length, rows });
                before = up_to;
            }
        }
        counts
    }

    /// The fraction of rows that are not longer.
    fn up_to(&self, length: u32) -> f64 {
        let share = log_logistic(f64::from(length), self.scale, self.shape) - self.below;
        // Nothing lies within the bounds if the scale is far outside them.
        match length < self.most && self.within > 0.0 {
            true => share / self.within,
            false => 1.0,
        }
    }
}

/// The probability of lengths that round to `length` or less.
fn log_logistic(length: f64, scale: f64, shape: f64) -> f64 {
    1.0 / (1.0 + (scale / (length + 0.5)).powf(shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_met_and_rows_are_kept() {
        for (least, most, shape, mean) in [
            (1, 9, 4.0, 5.0),
            (0, 7752, 1.9, 12.2),
            (1000, 9999, 3.0, 1600.0),
            (1, 34, 12.0, 2.05),
        ] {
            let lengths = LogLogistic::with_mean(least, most, shape, mean);
            let found = lengths.mean();
            assert!((found / mean - 1.0).abs() < 1e-6, "{found} {mean}");
            let counts = lengths.counts(1_000_000);
            assert_eq!(counts.iter().map(|run| run.rows).sum::<u32>(), 1_000_000);
            let total: f64 = counts
                .iter()
                .map(|r| f64::from(r.rows) * f64::from(r.length))
                .sum();
            assert!((total / 1e6 / mean - 1.0).abs() < 1e-3, "{total}");
        }
    }

    #[test]
    fn a_mean_that_cannot_be_is_met_as_far_as_it_can() {
        let mean = |wanted| LogLogistic::with_mean(3, 5, 2.0, wanted).mean();
        assert!(mean(1.0) >= 3.0 && mean(1.0) < 3.6, "{}", mean(1.0));
        assert!(mean(100.0) <= 5.0 && mean(100.0) > 4.1, "{}", mean(100.0));
        assert!((mean(4.0) - 4.0).abs() < 1e-6);
        assert_eq!(
            LogLogistic::with_mean(7, 7, 2.0, 3.0).counts(4),
            [LengthCount { length: 7, rows: 4 }]
        );
        assert_eq!(LogLogistic::with_mean(1, 9, 2.0, 3.0).counts(0), []);
    }
}
