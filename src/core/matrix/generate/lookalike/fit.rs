//! Finds row lengths with given statistics.

use super::known::{DenseRows, Kind, KnownMatrix, OtherRows};
use super::lengths::Size;
use super::log_logistic::{LengthCount, LogLogistic};

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
}
