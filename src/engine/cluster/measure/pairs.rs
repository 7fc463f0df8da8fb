//! Which ranks exchange messages, two at a time.

/// Pairs of ranks to measure: all if they are at most twice as many as the ranks, otherwise
/// each rank with the next one and with one half of the ranks away, so that the time of a
/// measurement grows with the number of ranks, and each rank is in four pairs.
pub(super) fn pairs(ranks: usize) -> Vec<[usize; 2]> {
    let all = |first: usize| (first + 1..ranks).map(move |second| [first, second]);
    if ranks * (ranks - 1) / 2 <= 2 * ranks {
        return (0..ranks).flat_map(all).collect();
    }
    let with = |distance: usize| {
        (0..ranks).map(move |rank| {
            let other = (rank + distance) % ranks;
            [rank.min(other), rank.max(other)]
        })
    };
    let mut pairs: Vec<[usize; 2]> = with(1).chain(with(ranks / 2)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// To which rank each sends when all send at once: half of the ranks away. Where ranks of
/// equal racks have consecutive numbers, all data cross the middle of the network.
pub(super) fn across(ranks: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..ranks).map(move |rank| (rank, (rank + ranks / 2) % ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_in_a_pair_and_no_pair_is_twice() {
        for ranks in 2..40 {
            let pairs = pairs(ranks);
            for rank in 0..ranks {
                assert!(pairs.iter().any(|pair| pair.contains(&rank)), "{rank}");
            }
            let mut unlike = pairs.clone();
            unlike.sort_unstable();
            unlike.dedup();
            assert_eq!(unlike.len(), pairs.len(), "{ranks}");
            assert!(pairs.len() <= 2 * ranks);
            assert!(pairs.iter().all(|[a, b]| a < b && *b < ranks));
            if ranks <= 5 {
                assert_eq!(pairs.len(), ranks * (ranks - 1) / 2);
            }
        }
    }

    #[test]
    fn when_all_send_each_receives_from_another() {
        for ranks in 2..20 {
            let mut receivers: Vec<usize> = across(ranks).map(|(_, to)| to).collect();
            assert!(across(ranks).all(|(from, to)| from != to));
            receivers.sort_unstable();
            assert_eq!(receivers, (0..ranks).collect::<Vec<_>>());
        }
    }
}
