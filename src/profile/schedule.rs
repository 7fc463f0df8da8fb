//! The order of runs. Pure.

use fastrand::Rng;

use super::configuration::Configuration;

/// A configuration's run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileRun {
    pub configuration: Configuration,
    /// Which one of the configuration, from 0.
    pub repeat: u32,
}

/// Configurations of each design in the first block; each next block is twice
/// as long.
const FIRST: usize = 8;

/// Every configuration of the designs `repeats` times.
///
/// The order is shuffled, so that what drifts with time, such as clocks and
/// other users, does not look like an effect of the configuration. It is
/// shuffled within blocks that each continue every design's prefix, so that
/// whenever the time is up, what was measured spans the space.
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

impl ProfileRun {
    /// A seed of its own, equal whenever the run is repeated: whether a
    /// profile was interrupted must not change what is measured.
    pub fn seed(&self, machine: &str, seed: u64) -> u64 {
        // FNV-1a, which stays the same from release to release.
        let text = format!("{machine}; {}; {}; {seed}", self.configuration, self.repeat);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
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

    #[test]
    fn runs_have_seeds_of_their_own() {
        let runs = schedule(&[configurations(ModelKind::Cpu, 20)], 3, 1);
        let seeds: HashSet<u64> = runs.iter().map(|run| run.seed("k40", 5)).collect();
        assert_eq!(seeds.len(), runs.len());
        assert_ne!(runs[0].seed("k40", 5), runs[0].seed("k40", 6));
        assert_ne!(runs[0].seed("k40", 5), runs[0].seed("k20", 5));
        // A stored dataset's rows were drawn with these.
        assert_eq!(
            ProfileRun {
                configuration: configurations(ModelKind::Cpu, 1).remove(0),
                repeat: 0
            }
            .seed("k40", 1),
            15_375_302_962_951_293_356
        );
    }
}
