//! Finds log-logistic row lengths with given statistics.

use super::Size;
use super::known::{DenseRows, Kind, KnownMatrix, OtherRows};

/// The parameters of row lengths that follow from the deviation of a known matrix.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Length of the longest row.
    longest: f64,
    /// Length of the dense rows whose length is not given.
    dense: f64,
    /// Bounds and shape of the other rows.
    others: OtherRows,
    shape: f64,
}

impl Fit {
    /// The parameters of a look-alike of this size.
    pub fn of(known: &KnownMatrix, size: Size) -> Self {
        let fit = Self::of_full(known);
        match (known.kind, size.scale) {
            (Kind::Circuit, scale) => Self {
                // Dense rows have entries in the same fraction of the columns.
                longest: fit.longest * scale,
                dense: fit.dense * scale,
                ..fit
            },
            (_, 1.0) => fit,
            (Kind::Web { .. } | Kind::Kmer, _) => fit.resized(known, size),
        }
    }

    /// The parameters at the size of the known matrix.
    fn of_full(known: &KnownMatrix) -> Self {
        let full = Size {
            rows: known.rows,
            nonzeros: known.nonzeros,
            scale: 1.0,
        };
        let wanted = squares_wanted(known, full);
        let fit = Self {
            longest: known.longest.into(),
            dense: 0.0,
            others: known.others,
            shape: known.others.shape.unwrap_or(0.0),
        };
        if known.others.shape.is_some() {
            let of = |dense| Self { dense, ..fit }.counts(known, full);
            let rows = dense_rows(known);
            return Self {
                dense: length_by_squares(rows, wanted, of),
                ..fit
            };
        }
        // A smaller shape is a broader distribution with a larger sum of squares.
        let (mut low, mut high) = (1.05f64, 30.0f64);
        for _ in 0..24 {
            let shape = (low + high) / 2.0;
            let found = squares(&Self { shape, ..fit }.counts(known, full));
            match found > wanted {
                true => low = shape,
                false => high = shape,
            }
        }
        Self {
            shape: (low + high) / 2.0,
            ..fit
        }
    }

    /// The parameters for another number of rows of the same distribution. Its tail, a
    /// power, ends earlier for fewer rows, and the longest row makes up the deviation.
    fn resized(self, known: &KnownMatrix, size: Size) -> Self {
        let reach = |length: f64| length.clamp(1.0, f64::from(size.rows));
        let tail = reach(self.longest * size.scale.powf(1.0 / self.shape));
        let fit = Self {
            longest: tail,
            others: OtherRows {
                most: self.others.most.min(tail as u32),
                ..self.others
            },
            ..self
        };
        let of = |longest| Self { longest, ..fit }.counts(known, size);
        let longest = length_by_squares(1, squares_wanted(known, size), of);
        Self {
            longest: longest.clamp(tail, reach(self.longest).max(tail)),
            ..fit
        }
    }

    /// The row lengths of a look-alike, in no order.
    pub fn counts(&self, known: &KnownMatrix, size: Size) -> Vec<LengthCount> {
        let whole = |length: f64| length.round().clamp(1.0, f64::from(size.rows)) as u32;
        let row = |length| LengthCount {
            length: whole(length),
            rows: 1,
        };
        let mut counts = vec![row(self.longest)];
        for dense in known.dense {
            match *dense {
                DenseRows::ByDeviation { rows } => counts.push(LengthCount {
                    rows,
                    ..row(self.dense)
                }),
                DenseRows::Falling {
                    rows,
                    longest,
                    shortest,
                } => {
                    let steps = f64::from(rows.saturating_sub(1).max(1));
                    let factor = f64::from(shortest) / f64::from(longest);
                    let share = |nth: u32| factor.powf(f64::from(nth) / steps);
                    let length = |nth| f64::from(longest) * share(nth) * size.scale;
                    counts.extend((0..rows).map(|nth| row(length(nth))));
                }
            }
        }
        for class in known.classes {
            let rows = (f64::from(class.rows) * size.scale).round() as u32;
            let bounds = [class.least, class.most].map(|length| length.min(size.rows));
            let lengths = LogLogistic::with_mean(bounds[0], bounds[1], class.shape, class.mean);
            counts.extend(lengths.counts(rows));
        }
        let (rows, total) = sums(&counts);
        let others = size.rows.saturating_sub(rows as u32);
        counts.extend(self.other_rows(others, size.nonzeros.saturating_sub(total), size));
        counts
    }

    /// `rows` other rows with `entries` entries.
    fn other_rows(&self, rows: u32, entries: u64, size: Size) -> Vec<LengthCount> {
        let [least, most] = [self.others.least, self.others.most].map(|l| l.min(size.rows));
        let mean = entries as f64 / f64::from(rows.max(1));
        let mut counts = LogLogistic::with_mean(least, most, self.shape, mean).counts(rows);
        reach(&mut counts, entries, least, most);
        counts
    }
}

/// The sum of the squares of all lengths that corresponds to the deviation.
fn squares_wanted(known: &KnownMatrix, size: Size) -> f64 {
    let rows = f64::from(size.rows);
    let mean = size.nonzeros as f64 / rows;
    rows * (known.deviation * known.deviation + mean * mean)
}

/// The length of `rows` rows for which the squares of all lengths have the sum
/// `wanted`; `counts` gives all row lengths for a length of these rows.
fn length_by_squares(rows: u32, wanted: f64, counts: impl Fn(f64) -> Vec<LengthCount>) -> f64 {
    let rows = f64::from(rows.max(1));
    let mut length = 0.0f64;
    // The other rows hardly depend on the length, so this converges fast.
    for _ in 0..4 {
        let mine = length.round().max(1.0);
        let others = squares(&counts(length)) - rows * mine * mine;
        length = ((wanted - others) / rows).max(0.0).sqrt();
    }
    length
}

fn dense_rows(known: &KnownMatrix) -> u32 {
    let rows = known.dense.iter().map(|dense| match dense {
        DenseRows::ByDeviation { rows } => *rows,
        DenseRows::Falling { .. } => 0,
    });
    rows.sum()
}

/// The number of rows and of entries.
fn sums(counts: &[LengthCount]) -> (u64, u64) {
    let rows = counts.iter().map(|run| u64::from(run.rows));
    let entry = |run: &LengthCount| u64::from(run.rows) * u64::from(run.length);
    (rows.sum(), counts.iter().map(entry).sum())
}

fn squares(counts: &[LengthCount]) -> f64 {
    let square = |run: &LengthCount| f64::from(run.rows) * f64::from(run.length).powi(2);
    counts.iter().map(square).sum()
}

/// Makes rows longer or shorter by one entry until they have `wanted` entries, or as
/// many as lengths from `least` to `most` allow.
fn reach(counts: &mut Vec<LengthCount>, wanted: u64, least: u32, most: u32) {
    loop {
        let (_, total) = sums(counts);
        let missing = wanted.abs_diff(total);
        let longer = total < wanted;
        let may = |run: &&mut LengthCount| match longer {
            true => run.length < most,
            false => run.length > least,
        };
        // The most frequent length changes least in proportion.
        let commonest = counts.iter_mut().filter(may).max_by_key(|run| run.rows);
        let changed = commonest
            .as_ref()
            .map_or(0, |run| missing.min(run.rows.into()) as u32);
        let Some(run) = commonest.filter(|_| changed > 0) else {
            counts.retain(|run| run.rows > 0);
            return;
        };
        run.rows -= changed;
        let length = if longer {
            run.length + 1
        } else {
            run.length - 1
        };
        match counts.iter_mut().find(|run| run.length == length) {
            Some(neighbour) => neighbour.rows += changed,
            None => counts.push(LengthCount {
                length,
                rows: changed,
            }),
        }
    }
}

// Log-logistic row lengths: most lie near a scale, and the frequency of long rows
// falls with a power of their length.

/// A log-logistic distribution of whole numbers from `least` to `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LogLogistic {
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
pub(super) struct LengthCount {
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
    fn entries_are_reached_exactly_where_they_can_be() {
        let counts = || {
            vec![
                LengthCount {
                    length: 2,
                    rows: 10,
                },
                LengthCount { length: 5, rows: 3 },
            ]
        };
        for wanted in [13, 26, 34, 35, 36, 60, 65] {
            let mut counts = counts();
            reach(&mut counts, wanted, 1, 5);
            assert_eq!(sums(&counts), (13, wanted));
        }
        for (wanted, possible) in [(0, 13), (1000, 65)] {
            let mut counts = counts();
            reach(&mut counts, wanted, 1, 5);
            assert_eq!(sums(&counts), (13, possible));
        }
    }

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
