//! The folds of cross-validation: all rows of a group are in one fold.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Which fold each row is held out in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    fold: Vec<usize>,
    count: usize,
}

/// Some folds would be empty.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "{groups} configurations cannot be divided into {folds} folds: \
     {needed} more are needed; profile more sizes or settings",
    needed = folds.saturating_sub(*groups)
)]
pub struct TooFewGroups {
    pub groups: usize,
    pub folds: usize,
}

impl Folds {
    /// Divides rows, given by their groups' names, into `count` folds that are
    /// as equal in rows as whole groups allow.
    ///
    /// Groups are shuffled by the seed and their names alone, so that neither
    /// the rows' order nor what they hold decides. The largest groups are
    /// placed first, each in the fold that has fewest rows.
    ///
    /// # Errors
    ///
    /// [`TooFewGroups`] if there are fewer groups than folds.
    pub fn grouped(groups: &[&str], count: usize, seed: u64) -> Result<Self, TooFewGroups> {
        let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, &group) in groups.iter().enumerate() {
            members.entry(group).or_default().push(row);
        }
        if members.len() < count || count == 0 {
            return Err(TooFewGroups {
                groups: members.len(),
                folds: count,
            });
        }
        let mut order: Vec<(&str, Vec<usize>)> = members.into_iter().collect();
        order.sort_by_cached_key(|(name, rows)| (usize::MAX - rows.len(), lot(seed, name)));
        let mut fold = vec![0; groups.len()];
        let mut held = vec![(0, 0); count];
        for (_, rows) in order {
            let least = (0..count).min_by_key(|&f| held[f]).unwrap_or(0);
            held[least].0 += rows.len();
            held[least].1 += 1;
            for row in rows {
                fold[row] = least;
            }
        }
        Ok(Self { fold, count })
    }

    /// How many folds there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows that are held out in `fold`, ascending.
    pub fn held_out(&self, fold: usize) -> Vec<usize> {
        (0..self.fold.len())
            .filter(|&row| self.fold[row] == fold)
            .collect()
    }
}

/// A group's place among those of its size: a hash that no release of a
/// library changes.
pub(crate) fn lot(seed: u64, group: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update(group.as_bytes())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(sizes: &[usize]) -> Vec<String> {
        let group = |(g, &size): (usize, &usize)| vec![format!("group {g}"); size];
        sizes.iter().enumerate().flat_map(group).collect()
    }

    fn folds(names: &[String], count: usize, seed: u64) -> Result<Folds, TooFewGroups> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Folds::grouped(&names, count, seed)
    }

    proptest! {
        #[test]
        fn groups_stay_whole_and_folds_balanced(
            sizes in proptest::collection::vec(1_usize..7, 3..40),
            count in 1_usize..11,
            seed in any::<u64>(),
        ) {
            let names = names(&sizes);
            prop_assume!(sizes.len() >= count);
            let folds = folds(&names, count, seed).unwrap();
            for (a, name) in names.iter().enumerate() {
                for (b, other) in names.iter().enumerate().skip(a) {
                    if name == other {
                        prop_assert_eq!(folds.fold[a], folds.fold[b]);
                    }
                }
            }
            let held: Vec<usize> = (0..count).map(|f| folds.held_out(f).len()).collect();
            prop_assert_eq!(held.iter().sum::<usize>(), names.len());
            let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
            prop_assert!(*least > 0);
            // One more group in a fold than in another, at most.
            prop_assert!(most - least <= *sizes.iter().max().unwrap(), "{:?}", held);
        }

        #[test]
        fn the_order_of_rows_does_not_matter(
            sizes in proptest::collection::vec(1_usize..5, 6..20),
            seed in any::<u64>(),
        ) {
            let forwards = names(&sizes);
            let mut backwards = forwards.clone();
            backwards.reverse();
            let mut mirrored = folds(&backwards, 5, seed).unwrap().fold;
            mirrored.reverse();
            prop_assert_eq!(folds(&forwards, 5, seed).unwrap().fold, mirrored);
        }
    }

    #[test]
    fn the_seed_shuffles() {
        let names = names(&[3; 20]);
        let of = |seed| folds(&names, 10, seed).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).count(), 10);
        assert!((0..10).all(|f| of(1).held_out(f).len() == 6));
    }

    #[test]
    fn too_few_groups_say_how_many_are_missing() {
        let names = names(&[4; 7]);
        let error = folds(&names, 10, 0).unwrap_err();
        assert_eq!((error.groups, error.folds), (7, 10));
        let text = error.to_string();
        assert!(text.contains("7 configurations"), "{text}");
        assert!(text.contains("3 more are needed"), "{text}");
        assert!(folds(&[], 0, 0).is_err());
    }
}
