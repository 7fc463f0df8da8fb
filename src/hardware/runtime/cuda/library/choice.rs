//! Which of a codelet's two implementations serves a launch. The first launches of a kind try
//! both in turns; the faster one serves from then on. The more clearly it is faster, the more other
//! sizes does it serve, too: a factorisation has each size a few times, and no time for trials of all.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

use crate::codelet::Name;
use crate::runtime::implementation::{Comparison, Implementation};

/// The first launches: each implementation once to warm up, then measured. As many as a
/// measurement of a graph's kernels launches each of them.
const TURNS: [(Implementation, bool); 4] = [
    (Implementation::Own, false),
    (Implementation::Library, false),
    (Implementation::Own, true),
    (Implementation::Library, true),
];

/// How many times as long as the faster implementation the other one takes that is slower at half or
/// twice the sizes, too. On an H200 a factorisation of 256 x 256 takes 0.22 ms by our kernels and 0.25
/// by cuSOLVER, of 512 x 512 1.04 and 0.54.
const CLEAR: f64 = 1.25;

/// The greatest size that is distinguished from others.
const MOST: u64 = 1 << 62;

/// Launches of about the same sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::runtime::cuda) struct Key {
    /// Index of the device.
    pub device: usize,
    codelet: String,
    sizes: Vec<u64>,
}

impl Key {
    pub(in crate::runtime::cuda) fn new(device: usize, codelet: &Name, sizes: &[u64]) -> Self {
        // Panels of a factorisation differ in size from one to the next.
        let sizes = sizes.iter().map(|size| size.checked_next_power_of_two());
        Self {
            device,
            codelet: codelet.to_string(),
            sizes: sizes.map(|size| size.unwrap_or(MOST)).collect(),
        }
    }

    /// How often a size is doubled at most from these to others of the same codelet on the same
    /// device.
    fn doublings(&self, other: &Self) -> Option<u32> {
        let is_same = self.device == other.device
            && self.codelet == other.codelet
            && self.sizes.len() == other.sizes.len();
        let sizes = self.sizes.iter().zip(&other.sizes);
        let most = sizes.map(|(one, other)| one.ilog2().abs_diff(other.ilog2()));
        is_same.then(|| most.max().unwrap_or(0))
    }
}

/// What a launch is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime::cuda) struct Turn {
    pub implementation: Implementation,
    pub is_measured: bool,
    /// Whether later launches of this kind are served alike.
    pub is_settled: bool,
}

impl Turn {
    /// What no library can do.
    pub(in crate::runtime::cuda) const OWN: Self = Self::settled(Implementation::Own);

    /// What only a library can do.
    pub(in crate::runtime::cuda) const LIBRARY: Self = Self::settled(Implementation::Library);

    const fn settled(implementation: Implementation) -> Self {
        Self {
            implementation,
            is_measured: false,
            is_settled: true,
        }
    }
}

/// What is known of one kind of launch.
#[derive(Debug)]
struct Choice {
    library: Option<String>,
    /// The turns that are left.
    turns: VecDeque<(Implementation, bool)>,
    /// Measurements that are still to come.
    awaited: usize,
    /// The least seconds, ours first.
    seconds: [Option<f64>; 2],
    /// Operations, or bytes, of the first launch.
    work: f64,
    serves: Option<Implementation>,
    refusal: Option<String>,
}

/// All choices of a backend.
#[derive(Debug, Default)]
pub(in crate::runtime::cuda) struct Choices {
    by_key: HashMap<Key, Choice>,
    /// What earlier runs have measured.
    known: Vec<Comparison>,
}

impl Choices {
    /// Takes over what earlier runs have measured, for the kinds of launch that come.
    pub(in crate::runtime::cuda) fn know(&mut self, known: &[Comparison]) {
        self.known = known.to_vec();
    }

    /// What the next launch of this kind does. `device` is the device's name, `work` the
    /// launch's operations or bytes, and `library` tells which library there is, or why there
    /// is none.
    pub(in crate::runtime::cuda) fn turn(
        &mut self,
        key: &Key,
        device: &str,
        work: f64,
        library: impl FnOnce() -> Result<String, String>,
    ) -> Turn {
        if !self.by_key.contains_key(key) {
            let mut choice = Choice::new(library(), work, |library| {
                let mut known = self.known.iter().rev();
                let same = known.find(|known| {
                    known.device == device
                        && known.codelet == key.codelet
                        && known.sizes == key.sizes
                        && known.library.as_deref() == Some(library)
                });
                same.cloned()
            });
            let near = self.by_key.iter().filter_map(|(other, of)| {
                let doublings = key.doublings(other)?;
                let is_clear = of.library == choice.library && of.is_clear_after(doublings);
                is_clear.then_some((doublings, &other.sizes, of.serves?))
            });
            let near = near.min_by_key(|(doublings, sizes, _)| (*doublings, Reverse(*sizes)));
            let near = near.map(|(.., serves)| serves);
            choice.serves = choice.serves.or(near);
            self.by_key.insert(key.clone(), choice);
        }
        self.by_key.get_mut(key).map_or(Turn::OWN, Choice::turn)
    }

    /// What serves launches of this kind from now on; `None` while both are tried.
    pub(in crate::runtime::cuda) fn serves(&self, key: &Key) -> Option<Implementation> {
        self.by_key.get(key)?.serves
    }

    /// A launch took so many seconds, or it is not known how many.
    pub(in crate::runtime::cuda) fn measured(
        &mut self,
        key: &Key,
        implementation: Implementation,
        seconds: Option<f64>,
        work: f64,
    ) {
        if let Some(choice) = self.by_key.get_mut(key) {
            choice.measured(implementation, seconds, work);
        }
    }

    /// From now on ours serves, for this reason.
    pub(in crate::runtime::cuda) fn refuse(&mut self, key: &Key, why: String) {
        if let Some(choice) = self.by_key.get_mut(key) {
            choice.refusal.get_or_insert(why);
            choice.serves = Some(Implementation::Own);
        }
    }

    /// What is known, by device, codelet and sizes. `devices` are the devices' names.
    pub(in crate::runtime::cuda) fn comparisons(&self, devices: &[&str]) -> Vec<Comparison> {
        let comparisons = self.by_key.iter().map(|(key, choice)| Comparison {
            device: devices
                .get(key.device)
                .copied()
                .unwrap_or_default()
                .to_owned(),
            codelet: key.codelet.clone(),
            sizes: key.sizes.clone(),
            library: choice.library.clone(),
            own_seconds: choice.seconds[0],
            library_seconds: choice.seconds[1],
            serves: choice.serves,
            refusal: choice.refusal.clone(),
        });
        let mut comparisons: Vec<Comparison> = comparisons.collect();
        comparisons.sort_by(|a, b| {
            let of = |c: &Comparison| (c.device.clone(), c.codelet.clone(), c.sizes.clone());
            of(a).cmp(&of(b))
        });
        comparisons
    }
}

impl Choice {
    fn new(
        library: Result<String, String>,
        work: f64,
        known: impl FnOnce(&str) -> Option<Comparison>,
    ) -> Self {
        let mut choice = Self {
            library: None,
            turns: TURNS.into(),
            awaited: TURNS.iter().filter(|(_, is_measured)| *is_measured).count(),
            seconds: [None, None],
            work,
            serves: None,
            refusal: None,
        };
        match library {
            Ok(library) => {
                if let Some(known) = known(&library) {
                    choice.seconds = [known.own_seconds, known.library_seconds];
                    choice.serves = known.faster();
                }
                choice.library = Some(library);
            }
            Err(why) => {
                choice.refusal = Some(why);
                choice.serves = Some(Implementation::Own);
            }
        }
        choice
    }

    /// Whether the one that serves is faster for sizes that are doubled or halved so often, too.
    fn is_clear_after(&self, doublings: u32) -> bool {
        match self.seconds {
            [Some(own), Some(library)] => {
                own.max(library) >= CLEAR.powi(doublings as i32) * own.min(library)
            }
            _ => self.refusal.is_some() && doublings <= 1,
        }
    }

    fn turn(&mut self) -> Turn {
        if let Some(serves) = self.serves {
            return Turn::settled(serves);
        }
        // While measurements are under way, ours serves.
        let turn = self.turns.pop_front();
        let (implementation, is_measured) = turn.unwrap_or((Implementation::Own, false));
        Turn {
            implementation,
            is_measured,
            is_settled: false,
        }
    }

    fn measured(&mut self, implementation: Implementation, seconds: Option<f64>, work: f64) {
        let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) else {
            self.turns.push_back((implementation, true));
            return;
        };
        let scale = match self.work > 0.0 && work > 0.0 {
            true => self.work / work,
            false => 1.0,
        };
        let least = &mut self.seconds[implementation as usize];
        *least = Some(least.map_or(seconds * scale, |least| least.min(seconds * scale)));
        self.awaited = self.awaited.saturating_sub(1);
        if let ([Some(own), Some(library)], 0, None) = (self.seconds, self.awaited, self.serves) {
            self.serves = Some(match library < own {
                true => Implementation::Library,
                false => Implementation::Own,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Implementation::{Library, Own};

    fn key(sizes: &[u64]) -> Key {
        Key::new(0, &"codelet".into(), sizes)
    }

    fn blas() -> Result<String, String> {
        Ok("cublas-1".to_owned())
    }

    fn tried(choices: &mut Choices, key: &Key, seconds: [f64; 2]) -> Vec<Turn> {
        let turns = (0..TURNS.len()).map(|_| {
            let turn = choices.turn(key, "cuda0", 10.0, blas);
            if turn.is_measured {
                let seconds = seconds[turn.implementation as usize];
                choices.measured(key, turn.implementation, Some(seconds), 10.0);
            }
            turn
        });
        turns.collect()
    }

    #[test]
    fn both_are_tried_and_the_faster_one_stays() {
        for (seconds, faster) in [([2.0, 1.0], Library), ([1.0, 2.0], Own), ([1.0, 1.0], Own)] {
            let mut choices = Choices::default();
            let key = key(&[5, 8]);
            let turns = tried(&mut choices, &key, seconds);
            assert!(turns.iter().all(|turn| !turn.is_settled));
            for one in [Own, Library] {
                let of_one = |turn: &&Turn| turn.implementation == one;
                let own: Vec<bool> = turns.iter().filter(of_one).map(|t| t.is_measured).collect();
                assert_eq!(own, [false, true]);
            }
            let turn = choices.turn(&key, "cuda0", 10.0, || unreachable!());
            assert_eq!(turn, Turn::settled(faster));
            let comparisons = choices.comparisons(&["cuda0"]);
            assert_eq!(
                (comparisons[0].serves, &comparisons[0].sizes),
                (Some(faster), &vec![8, 8])
            );
            assert_eq!(
                (comparisons[0].own_seconds, comparisons[0].library_seconds),
                (Some(seconds[0]), Some(seconds[1]))
            );
        }
    }

    #[test]
    fn ours_serves_until_all_measurements_are_there_and_lost_ones_come_again() {
        let mut choices = Choices::default();
        let key = key(&[1]);
        for _ in TURNS {
            choices.turn(&key, "cuda0", 1.0, blas);
        }
        let waiting = choices.turn(&key, "cuda0", 1.0, blas);
        assert_eq!((waiting.implementation, waiting.is_settled), (Own, false));
        choices.measured(&key, Own, Some(1.0), 1.0);
        choices.measured(&key, Library, None, 1.0);
        let again = choices.turn(&key, "cuda0", 1.0, blas);
        assert_eq!((again.implementation, again.is_measured), (Library, true));
        choices.measured(&key, Library, Some(0.7), 1.0);
        assert_eq!(
            choices.turn(&key, "cuda0", 1.0, blas),
            Turn::settled(Library)
        );
    }

    #[test]
    fn times_are_compared_by_operation() {
        let mut choices = Choices::default();
        let key = key(&[1]);
        for _ in TURNS {
            choices.turn(&key, "cuda0", 10.0, blas);
        }
        for (one, seconds, work) in [(Own, 1.0, 10.0), (Library, 1.5, 20.0)] {
            choices.measured(&key, one, Some(seconds), work);
        }
        let comparisons = choices.comparisons(&["cuda0"]).remove(0);
        assert_eq!(
            (comparisons.serves, comparisons.library_seconds),
            (Some(Library), Some(0.75))
        );
    }

    #[test]
    fn what_is_known_is_not_tried_again() {
        let mut before = Choices::default();
        tried(&mut before, &key(&[4]), [2.0, 1.0]);
        let comparisons = before.comparisons(&["cuda0"]);
        let mut choices = Choices::default();
        choices.know(&comparisons);
        let known = choices.turn(&key(&[3]), "cuda0", 1.0, blas);
        assert_eq!(known, Turn::settled(Library), "sizes are about the same");
        // Another device, size or version of the library is another matter.
        for (key, device, library) in [
            (key(&[33]), "cuda0", "cublas-1"),
            (Key::new(1, &"codelet".into(), &[4]), "cuda1", "cublas-1"),
            (Key::new(2, &"codelet".into(), &[4]), "cuda0", "cublas-2"),
            (Key::new(0, &"other".into(), &[4]), "cuda0", "cublas-1"),
        ] {
            let turn = choices.turn(&key, device, 1.0, || Ok(library.to_owned()));
            assert!(!turn.is_settled, "{key:?}");
        }
    }

    #[test]
    fn launches_of_half_the_sizes_are_served_alike_if_one_is_clearly_faster() {
        let mut choices = Choices::default();
        tried(&mut choices, &key(&[64, 64]), [1.0, 1.2]);
        assert!(
            !choices
                .turn(&key(&[64, 128]), "cuda0", 1.0, blas)
                .is_settled
        );
        tried(&mut choices, &key(&[4096, 64]), [1.9, 1.0]);
        for sizes in [[2048, 64], [1024, 32], [1024, 64], [8192, 128]] {
            let turn = choices.turn(&key(&sizes), "cuda0", 1.0, blas);
            assert_eq!(turn, Turn::settled(Library), "{sizes:?}");
        }
        for key in [key(&[1024, 8]), Key::new(1, &"codelet".into(), &[2048, 64])] {
            assert!(!choices.turn(&key, "cuda0", 1.0, blas).is_settled);
        }
        // What was not measured is not reported as such.
        let comparisons = choices.comparisons(&["cuda0"]);
        let is_near = |comparisons: &&Comparison| {
            comparisons.device == "cuda0" && comparisons.sizes == [2048, 64]
        };
        let near = comparisons.iter().find(is_near).expect("a kind");
        assert_eq!((near.serves, near.faster()), (Some(Library), None));
    }

    #[test]
    fn ours_serves_without_a_library_and_after_a_failure() {
        let mut choices = Choices::default();
        let absent = choices.turn(&key(&[1]), "cuda0", 1.0, || {
            Err("it is not found".to_owned())
        });
        assert_eq!(absent, Turn::OWN);
        choices.turn(&key(&[2]), "cuda0", 1.0, blas);
        choices.refuse(&key(&[2]), "it failed".to_owned());
        assert_eq!(choices.turn(&key(&[2]), "cuda0", 1.0, blas), Turn::OWN);
        let comparisons = choices.comparisons(&["cuda0"]);
        let comparisons: Vec<_> = comparisons
            .iter()
            .map(|c| (c.library.as_deref(), c.refusal.as_deref()))
            .collect();
        assert_eq!(
            comparisons,
            [
                (None, Some("it is not found")),
                (Some("cublas-1"), Some("it failed"))
            ]
        );
    }
}
