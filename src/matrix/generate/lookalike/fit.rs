//! Finding row lengths that have given statistics.

use super::known::{Dense, Kind, Known, Rest};
use super::lengths::Size;
use super::spread::{Run, Spread};

/// What is not written down of a known matrix, since it follows from its
/// deviation.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Length of the longest row.
    longest: f64,
    /// Length of the dense rows whose length is not given.
    dense: f64,
    /// Bounds and shape of the rest.
    rest: Rest,
    shape: f64,
}

impl Fit {
    /// For a look-alike of this size.
    pub fn of(known: &Known, size: Size) -> Self {
        let fit = Self::of_full(known);
        match (known.kind, size.scale) {
            (Kind::Circuit, scale) => Self {
                // Dense rows reach the same part of all columns.
                longest: fit.longest * scale,
                dense: fit.dense * scale,
                ..fit
            },
            (_, 1.0) => fit,
            (Kind::Web { .. } | Kind::Kmer, _) => fit.resized(known, size),
        }
    }

    /// For the size of the known matrix.
    fn of_full(known: &Known) -> Self {
        let full = Size {
            rows: known.rows,
            nonzeros: known.nonzeros,
            scale: 1.0,
        };
        let wanted = squares_wanted(known, full);
        let fit = Self {
            longest: known.longest.into(),
            dense: 0.0,
            rest: known.rest,
            shape: known.rest.shape.unwrap_or(0.0),
        };
        if known.rest.shape.is_some() {
            let of = |dense| Self { dense, ..fit }.runs(known, full);
            let rows = dense_rows(known);
            return Self {
                dense: length_by_squares(rows, wanted, of),
                ..fit
            };
        }
        // The smaller the shape, the broader the rest, and the larger the sum.
        let (mut low, mut high) = (1.05f64, 30.0f64);
        for _ in 0..24 {
            let shape = (low + high) / 2.0;
            let found = squares(&Self { shape, ..fit }.runs(known, full));
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

    /// For other rows of the same distribution: its tail, a power, ends earlier
    /// where there are fewer, and the longest row makes up the deviation.
    fn resized(self, known: &Known, size: Size) -> Self {
        let reach = |length: f64| length.clamp(1.0, f64::from(size.rows));
        let tail = reach(self.longest * size.scale.powf(1.0 / self.shape));
        let fit = Self {
            longest: tail,
            rest: Rest {
                most: self.rest.most.min(tail as u32),
                ..self.rest
            },
            ..self
        };
        let of = |longest| Self { longest, ..fit }.runs(known, size);
        let longest = length_by_squares(1, squares_wanted(known, size), of);
        Self {
            longest: longest.clamp(tail, reach(self.longest).max(tail)),
            ..fit
        }
    }

    /// The rows of a look-alike, in no order.
    pub fn runs(&self, known: &Known, size: Size) -> Vec<Run> {
        let whole = |length: f64| length.round().clamp(1.0, f64::from(size.rows)) as u32;
        let row = |length| Run {
            length: whole(length),
            rows: 1,
        };
        let mut runs = vec![row(self.longest)];
        for dense in known.dense {
            match *dense {
                Dense::ByDeviation { rows } => runs.push(Run {
                    rows,
                    ..row(self.dense)
                }),
                Dense::Falling {
                    rows,
                    longest,
                    shortest,
                } => {
                    let steps = f64::from(rows.saturating_sub(1).max(1));
                    let factor = f64::from(shortest) / f64::from(longest);
                    let share = |nth: u32| factor.powf(f64::from(nth) / steps);
                    let length = |nth| f64::from(longest) * share(nth) * size.scale;
                    runs.extend((0..rows).map(|nth| row(length(nth))));
                }
            }
        }
        for class in known.classes {
            let rows = (f64::from(class.rows) * size.scale).round() as u32;
            let bounds = [class.least, class.most].map(|length| length.min(size.rows));
            let spread = Spread::with_mean(bounds[0], bounds[1], class.shape, class.mean);
            runs.extend(spread.runs(rows));
        }
        let (rows, total) = sums(&runs);
        let rest = size.rows.saturating_sub(rows as u32);
        runs.extend(self.rest(rest, size.nonzeros.saturating_sub(total), size));
        runs
    }

    /// So many rows with so many entries.
    fn rest(&self, rows: u32, entries: u64, size: Size) -> Vec<Run> {
        let [least, most] = [self.rest.least, self.rest.most].map(|l| l.min(size.rows));
        let mean = entries as f64 / f64::from(rows.max(1));
        let mut runs = Spread::with_mean(least, most, self.shape, mean).runs(rows);
        reach(&mut runs, entries, least, most);
        runs
    }
}

/// The sum of the squares of all lengths that gives the deviation.
fn squares_wanted(known: &Known, size: Size) -> f64 {
    let rows = f64::from(size.rows);
    let mean = size.nonzeros as f64 / rows;
    rows * (known.deviation * known.deviation + mean * mean)
}

/// The length of `rows` rows with which the squares of all lengths have this
/// sum; `runs` gives all rows when these have a length.
fn length_by_squares(rows: u32, wanted: f64, runs: impl Fn(f64) -> Vec<Run>) -> f64 {
    let rows = f64::from(rows.max(1));
    let mut length = 0.0f64;
    // The others hardly depend on it, so this converges at once.
    for _ in 0..4 {
        let mine = length.round().max(1.0);
        let others = squares(&runs(length)) - rows * mine * mine;
        length = ((wanted - others) / rows).max(0.0).sqrt();
    }
    length
}

fn dense_rows(known: &Known) -> u32 {
    let rows = known.dense.iter().map(|dense| match dense {
        Dense::ByDeviation { rows } => *rows,
        Dense::Falling { .. } => 0,
    });
    rows.sum()
}

/// Rows and entries.
fn sums(runs: &[Run]) -> (u64, u64) {
    let rows = runs.iter().map(|run| u64::from(run.rows));
    let entry = |run: &Run| u64::from(run.rows) * u64::from(run.length);
    (rows.sum(), runs.iter().map(entry).sum())
}

fn squares(runs: &[Run]) -> f64 {
    let square = |run: &Run| f64::from(run.rows) * f64::from(run.length).powi(2);
    runs.iter().map(square).sum()
}

/// Makes rows longer or shorter by one entry until they have `wanted`, or as
/// many as lengths from `least` to `most` allow.
fn reach(runs: &mut Vec<Run>, wanted: u64, least: u32, most: u32) {
    loop {
        let (_, total) = sums(runs);
        let missing = wanted.abs_diff(total);
        let longer = total < wanted;
        let may = |run: &&mut Run| match longer {
            true => run.length < most,
            false => run.length > least,
        };
        // The commonest length bears it best.
        let commonest = runs.iter_mut().filter(may).max_by_key(|run| run.rows);
        let changed = commonest
            .as_ref()
            .map_or(0, |run| missing.min(run.rows.into()) as u32);
        let Some(run) = commonest.filter(|_| changed > 0) else {
            runs.retain(|run| run.rows > 0);
            return;
        };
        run.rows -= changed;
        let length = if longer {
            run.length + 1
        } else {
            run.length - 1
        };
        match runs.iter_mut().find(|run| run.length == length) {
            Some(neighbour) => neighbour.rows += changed,
            None => runs.push(Run {
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
        let runs = || {
            vec![
                Run {
                    length: 2,
                    rows: 10,
                },
                Run { length: 5, rows: 3 },
            ]
        };
        for wanted in [13, 26, 34, 35, 36, 60, 65] {
            let mut runs = runs();
            reach(&mut runs, wanted, 1, 5);
            assert_eq!(sums(&runs), (13, wanted));
        }
        for (wanted, possible) in [(0, 13), (1000, 65)] {
            let mut runs = runs();
            reach(&mut runs, wanted, 1, 5);
            assert_eq!(sums(&runs), (13, possible));
        }
    }
}
