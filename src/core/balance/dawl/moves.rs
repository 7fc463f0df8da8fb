//! What moves of units cost. The pool comes first in the order of units, then what each
//! device holds, in the devices' order, so that a change of one device's share moves the
//! ranges of others, too.

use std::ops::Range;

use super::Dawl;

impl Dawl {
    /// Seconds of moving from the present held units to `held`.
    pub fn moving(&self, held: &[u64]) -> f64 {
        match self.transfers_to(held) {
            0.0 => 0.0,
            transfers => transfers + self.move_delay.value().unwrap_or(0.0),
        }
    }

    /// The part of these for the transfers.
    pub(super) fn transfers_to(&self, held: &[u64]) -> f64 {
        let each = self.transfers(&self.plan.held, held);
        each.into_iter().fold(0.0, f64::max)
    }

    /// Seconds of each device's transfers where it held units `before` and is to hold `after`.
    /// Units go from holder to holder directly where they can, else through host memory.
    pub(super) fn transfers(&self, before: &[u64], after: &[u64]) -> Vec<f64> {
        let devices = 0..self.devices.len();
        if before.is_empty() || before == after {
            return vec![0.0; devices.len()];
        }
        let (old, new) = (self.ranges(before), self.ranges(after));
        let gets = |d: usize| length(&new[d]) - length(&common(&new[d], &old[d]));
        let gives = |d: usize| length(&old[d]) - length(&common(&new[d], &old[d]));
        let between = |from: usize, to: usize| match from == to {
            true => 0,
            false => length(&common(&old[from], &new[to])),
        };
        let seconds = |d: usize| {
            let others = || devices.clone();
            let (sent, received): (u64, u64) = match self.direct {
                Some(_) => (
                    others().map(|to| between(d, to)).sum(),
                    others().map(|from| between(from, d)).sum(),
                ),
                None => (0, 0),
            };
            let by_link = (gets(d) - received).max(gives(d) - sent);
            let directly = sent.max(received);
            by_link as f64 / self.link(d) + self.direct.map_or(0.0, |rate| directly as f64 / rate)
        };
        devices.clone().map(seconds).collect()
    }

    /// The units that each device holds.
    fn ranges(&self, held: &[u64]) -> Vec<Range<u64>> {
        let mut at = self.units - held.iter().sum::<u64>();
        let range = |count: &u64| {
            let start = at;
            at += count;
            start..at
        };
        held.iter().map(range).collect()
    }

    /// Units a second between host memory and a device's.
    pub(super) fn link(&self, device: usize) -> f64 {
        self.devices[device]
            .stream_limit
            .unwrap_or_else(|| self.pool_rate(device, true))
            .max(f64::MIN_POSITIVE)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

#[cfg(test)]
mod tests {
    use crate::balance::fixtures::{cpu, gpu, setup};
    use crate::balance::{Dawl, Setup};

    /// The seconds of each device's transfers. Links carry a unit a second, direct ways ten.
    fn transfers(direct: bool, before: [u64; 3], after: [u64; 3]) -> Vec<f64> {
        let devices = vec![cpu(), gpu(100, 1e-6), gpu(100, 1e-6)];
        let setup = Setup {
            direct: direct.then_some(10.0),
            ..setup(100, devices)
        };
        Dawl::new(&setup).transfers(&before, &after)
    }

    #[test]
    fn holders_move_units_directly_where_they_can() {
        let (before, after) = ([0, 40, 60], [0, 50, 50]);
        assert_eq!(transfers(true, before, after), [0.0, 1.0, 1.0]);
        assert_eq!(transfers(false, before, after), [0.0, 10.0, 10.0]);
        assert_eq!(transfers(true, before, before), [0.0; 3]);
    }

    #[test]
    fn the_pool_takes_units_of_the_first_holder_which_gets_those_of_the_next() {
        let (before, after) = ([0, 50, 50], [0, 50, 40]);
        assert_eq!(transfers(true, before, after), [0.0, 11.0, 1.0]);
        assert_eq!(transfers(false, before, after), [0.0, 10.0, 10.0]);
        assert_eq!(transfers(true, after, before), [0.0, 11.0, 1.0]);
    }
}
