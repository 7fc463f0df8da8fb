//! The order of the runs of a profile. Pure.

use fastrand::Rng;

use super::configuration::Configuration;

/// A run of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileRun {
    pub configuration: Configuration,
    /// The number of the repeat, from 0.
    pub repeat: u32,
}

/// Configurations of each design in the first block; each next block is twice
/// as long.
const FIRST: usize = 8;

/// Every configuration of the designs `repeats` times.
///
/// The order is shuffled, so that drifts with time, such as clocks and other users, do
/// not look like an effect of the configuration. It is shuffled within blocks that each
/// continue the prefix of every design, so that the measured rows span the space
/// whenever the time is up.
pub fn schedule(designs: &[Vec<Configuration>], repeats: u32, seed: u64) -> Vec<ProfileRun> {
    let mut random = Rng::with_seed(seed);
    let longest = designs.iter().map(Vec::len).max().unwrap_or(0);
    let mut runs = Vec::new();
    let (mut from, mut length) = (0, FIRST);
    while from < longest {
        let block = (designs.iter()).flat_map(|design| design.iter().skip(from).take(length));
        let mut block: Vec<ProfileRun> = block
            .flat_map(|configuration| {
                (0..repeats).map(|repeat| ProfileRun {
                    configuration: configuration.clone(),
                    repeat,
                })
            })
            .collect();
        random.shuffle(&mut block);
        runs.append(&mut block);
        from += length;
        length *= 2;
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::codelet::stencil::Precision;
    use crate::profile::configuration::{Grid, ModelKind, Setting};

    fn configurations(kind: ModelKind, count: u64) -> Vec<Configuration> {
        (0..count)
            .map(|n| Configuration {
                device: "gpu0".into(),
                kind,
                grid: Grid {
                    nx: 3 + n,
                    ny: 3,
                    nz: None,
                    precision: Precision::F64,
                },
                setting: Setting::Shared {
                    workers: 1,
                    chunk: 1,
                },
            })
            .collect()
    }

    #[test]
    fn every_run_comes_once_and_every_block_continues_the_prefix() {
        let designs = [
            configurations(ModelKind::Cpu, 30),
            configurations(ModelKind::Gpu, 11),
        ];
        let runs = schedule(&designs, 3, 1);
        assert_eq!(runs.len(), 3 * 41);
        assert_eq!(runs.iter().collect::<HashSet<_>>().len(), runs.len());
        let mut at = 0;
        for (from, to) in [(0, 8), (8, 24), (24, 30)] {
            let wanted: HashSet<&Configuration> = (designs.iter())
                .flat_map(|design| design.iter().take(to).skip(from))
                .collect();
            let block = &runs[at..at + 3 * wanted.len()];
            let found: HashSet<&Configuration> = block.iter().map(|r| &r.configuration).collect();
            assert_eq!(found, wanted);
            at += block.len();
        }
        assert_eq!(at, runs.len());
    }

    #[test]
    fn the_seed_decides_the_order_and_nothing_else() {
        let designs = [configurations(ModelKind::Cpu, 8)];
        let [a, b, c] = [1, 1, 2].map(|seed| schedule(&designs, 3, seed));
        assert_eq!(a, b);
        assert_ne!(a, c);
        let as_set = |runs: &[ProfileRun]| runs.iter().cloned().collect::<HashSet<_>>();
        assert_eq!(as_set(&a), as_set(&c));
        assert_eq!(schedule(&[], 3, 1), []);
    }
}
