//! Sets of numbers as runs of successive ones.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers. Its memory grows with the number of runs.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The end of each run, by its begin.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl Runs {
    /// All numbers of a range.
    pub fn of(range: Range<u64>) -> Self {
        let mut runs = Self::default();
        if range.start < range.end {
            runs.count = range.end - range.start;
            runs.runs.insert(range.start, range.end);
        }
        runs
    }

    /// How many numbers it has.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(|(&begin, &end)| begin..end)
    }

    /// The least number.
    pub fn first(&self) -> Option<u64> {
        self.runs.first_key_value().map(|(&begin, _)| begin)
    }

    fn run_of(&self, number: u64) -> Option<Range<u64>> {
        let (&begin, &end) = self.runs.range(..=number).next_back()?;
        (number < end).then_some(begin..end)
    }

    pub fn contains(&self, number: u64) -> bool {
        self.run_of(number).is_some()
    }

    /// Adds a number. The result is whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        if self.contains(number) {
            return false;
        }
        let before = self.runs.range(..number).next_back();
        let before = before.filter(|(_, end)| **end == number);
        let begin = before.map_or(number, |(&begin, _)| begin);
        let end = self.runs.remove(&(number + 1)).unwrap_or(number + 1);
        self.runs.insert(begin, end);
        self.count += 1;
        true
    }

    /// Takes a number out. The result is whether it was there.
    pub fn remove(&mut self, number: u64) -> bool {
        let Some(run) = self.run_of(number) else {
            return false;
        };
        self.runs.remove(&run.start);
        if run.start < number {
            self.runs.insert(run.start, number);
        }
        if number + 1 < run.end {
            self.runs.insert(number + 1, run.end);
        }
        self.count -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_agrees_with_a_set() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut runs, mut set) = (Runs::of(3..9), (3..9).collect::<BTreeSet<u64>>());
        for _ in 0..2000 {
            let number = random.u64(..20);
            match random.bool() {
                true => assert_eq!(runs.insert(number), set.insert(number)),
                false => assert_eq!(runs.remove(number), set.remove(&number)),
            }
            assert!(runs.iter().eq(set.iter().copied()));
            assert_eq!(runs.len(), set.len() as u64);
            assert_eq!(runs.first(), set.first().copied());
        }
    }
}
