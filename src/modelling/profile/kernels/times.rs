//! The times of one kernel on one device, by what they depend on, and their changes.

use std::fmt;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128::Hasher;

/// Seconds that are kept: the last ones.
const LAST: usize = 9;

/// Seconds that are needed before a change can be seen.
const ENOUGH: usize = 3;

/// Seconds in series that are far from the median: so many are a change.
const SERIES: usize = 3;

/// How far from the median is far, in spreads.
const FAR: f64 = 3.0;

/// The least spread, as a part of the median: what clocks and frequencies vary by.
const LEAST_SPREAD: f64 = 0.05;

/// The last seconds of a kernel on a device.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTimes {
    /// The oldest first.
    last: Vec<f64>,
    /// Those after them that are far from their median, on one side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    far: Vec<f64>,
    /// How many there were since the last change.
    count: u64,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is as expected, or the first of its kind.
    Kept,
    /// It is no time.
    Ignored,
    /// It is one of several in series that are far from the median. They are the kernel's
    /// times from now on, and older ones are forgotten.
    Changed,
}

impl KernelTimes {
    /// The median of the last seconds; 0 if there are none.
    pub fn median(&self) -> f64 {
        let kept = if self.last.is_empty() {
            &self.far
        } else {
            &self.last
        };
        median(kept)
    }

    /// The least of the last seconds.
    pub fn least(&self) -> f64 {
        let all = self.last.iter().chain(&self.far).copied();
        all.reduce(f64::min).unwrap_or(0.0)
    }

    /// The median distance of the last seconds from their median, in seconds.
    pub fn spread(&self) -> f64 {
        let middle = self.median();
        let distances: Vec<f64> = self.last.iter().map(|s| (s - middle).abs()).collect();
        median(&distances)
    }

    /// How many records there were since the last change.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Notes seconds. A change is [`SERIES`] records in series on one side of the median,
    /// each farther from it than three spreads.
    pub(super) fn record(&mut self, seconds: f64) -> Recorded {
        self.count += 1;
        let middle = self.median();
        let far = FAR * self.spread().max(LEAST_SPREAD * middle);
        let is_far = self.last.len() >= ENOUGH && (seconds - middle).abs() > far;
        let same_side = self.far.iter().all(|s| (*s > middle) == (seconds > middle));
        if is_far && same_side {
            self.far.push(seconds);
            if self.far.len() < SERIES {
                return Recorded::Kept;
            }
            self.last = std::mem::take(&mut self.far);
            self.count = self.last.len() as u64;
            return Recorded::Changed;
        }
        // The series ended: its times were outliers, which make the spread.
        self.last.append(&mut self.far);
        self.last.push(seconds);
        let old = self.last.len().saturating_sub(LAST);
        self.last.drain(..old);
        Recorded::Kept
    }

    /// Whether all numbers are possible ones.
    pub(super) fn is_valid(&self) -> bool {
        let mut all = self.last.iter().chain(&self.far);
        let kept = self.last.len() <= LAST && self.far.len() < SERIES;
        kept && !self.last.is_empty() && all.all(|s| *s >= 0.0 && s.is_finite())
    }
}

/// The median; 0 of nothing.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

/// A program: a hash of its text and its build options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program(u128);

impl Program {
    /// The program of this text, or of a binary's bytes, built with these options.
    pub fn new(text: &[u8], options: &str) -> Self {
        let mut hasher = Hasher::new();
        // The length separates text and options.
        hasher.write(&(text.len() as u64).to_le_bytes());
        hasher.write(text);
        hasher.write(options.as_bytes());
        Self(hasher.finish_128())
    }
}

/// The begin of the keys of codelets. Those of programs' kernels begin with a number.
pub(super) const CODELET: &str = "codelet ";

/// A kernel of a program, the shape of its launch, and the sizes of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelKey(String);

impl KernelKey {
    /// The key of a launch. `global` and `local` are work-items by dimension; `local` is
    /// `None` where the driver chooses. `arguments` are the bytes of each buffer; a caller
    /// that knows which plain values determine the work may add them.
    pub fn new(
        program: Program,
        kernel: &str,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: &[u64],
    ) -> Self {
        let mut text = format!("{:032x} {kernel} ", program.0);
        joined(&mut text, global, 'x');
        text.push('/');
        match local {
            Some(local) => joined(&mut text, local, 'x'),
            None => text.push('*'),
        }
        text.push(' ');
        joined(&mut text, arguments, ',');
        Self(text)
    }

    /// The key of an implementation of a codelet, for launches of these sizes.
    pub(super) fn of_codelet(codelet: &str, sizes: &[u64], implementation: &str) -> Self {
        let mut text = format!("{CODELET}{codelet} ");
        joined(&mut text, sizes, 'x');
        text.push(' ');
        text.push_str(implementation);
        Self(text)
    }

    /// The codelet, the sizes and the implementation of such a key, as files have it.
    pub(super) fn codelet_of(text: &str) -> Option<(&str, Vec<u64>, &str)> {
        let mut parts = text.strip_prefix(CODELET)?.split(' ');
        let (codelet, sizes, implementation) = (parts.next()?, parts.next()?, parts.next()?);
        let sizes = sizes.split('x').map(|size| size.parse().ok());
        let sizes = sizes.collect::<Option<Vec<u64>>>()?;
        parts
            .next()
            .is_none()
            .then_some((codelet, sizes, implementation))
    }

    /// The key as files have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KernelKey {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn joined<T: fmt::Display>(text: &mut String, numbers: &[T], separator: char) {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            text.push(separator);
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(times: &mut KernelTimes, all: &[f64]) -> Vec<Recorded> {
        all.iter().map(|seconds| times.record(*seconds)).collect()
    }

    #[test]
    fn the_last_times_count() {
        let mut times = KernelTimes::default();
        assert_eq!((times.median(), times.spread()), (0.0, 0.0));
        recorded(&mut times, &[9.0, 1.0]);
        assert_eq!(times.median(), 5.0);
        recorded(&mut times, &[1.2, 1.1, 1.0]);
        assert_eq!((times.median(), times.count()), (1.1, 5));
        recorded(&mut times, &[1.0; 9]);
        assert_eq!((times.median(), times.spread()), (1.0, 0.0));
        assert_eq!(times.count(), 14);
    }

    #[test]
    fn a_series_of_far_times_is_a_change() {
        let mut times = KernelTimes::default();
        recorded(&mut times, &[1.0, 1.01, 0.99, 1.0]);
        let outcomes = recorded(&mut times, &[2.0, 2.1, 2.05]);
        assert_eq!(
            outcomes,
            [Recorded::Kept, Recorded::Kept, Recorded::Changed]
        );
        assert_eq!((times.median(), times.count()), (2.05, 3));
        // Back again.
        let outcomes = recorded(&mut times, &[1.0, 1.0, 1.0]);
        assert_eq!(outcomes.last(), Some(&Recorded::Changed));
    }

    #[test]
    fn single_outliers_are_no_change() {
        let mut times = KernelTimes::default();
        recorded(&mut times, &[1.0; 5]);
        for _ in 0..20 {
            let outcomes = recorded(&mut times, &[1.0, 3.0, 3.0, 1.0, 1.0]);
            assert!(outcomes.iter().all(|t| *t == Recorded::Kept), "{times:?}");
        }
        // Nor are times on both sides.
        let outcomes = recorded(&mut times, &[9.0, 0.01, 9.0, 0.01]);
        assert!(outcomes.iter().all(|t| *t == Recorded::Kept));
    }

    #[test]
    fn small_variations_are_no_change() {
        let mut times = KernelTimes::default();
        recorded(&mut times, &[1.0; 9]);
        let outcomes = recorded(&mut times, &[1.1; 9]);
        assert!(outcomes.iter().all(|t| *t == Recorded::Kept));
        assert_eq!(times.median(), 1.1);
    }

    #[test]
    fn a_key_has_all_that_the_time_depends_on() {
        let program = Program::new(b"text", "-O");
        let key = KernelKey::new(program, "f", &[64, 2], Some(&[8, 1]), &[4, 1024]);
        assert!(key.as_str().ends_with(" f 64x2/8x1 4,1024"), "{key}");
        let any = KernelKey::new(program, "f", &[64], None, &[]);
        assert!(any.as_str().ends_with(" f 64/* "), "{any}");
        assert_ne!(Program::new(b"text-", "O"), program);
        assert_ne!(Program::new(b"text", ""), program);
        assert_eq!(Program::new(b"text", "-O"), program);
    }
}
