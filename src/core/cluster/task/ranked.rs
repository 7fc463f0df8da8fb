//! What a task wrote, in the order of ranks (Unicorn, section IV.B, `redistribute`): each
//! writer gives ranks to regions of what it writes, and regions of one rank follow one
//! another, by writer. Nothing is moved: a task that reads a range in this order reads the
//! regions where they are.

use std::ops::Range;

/// Regions of a row of elements, ordered by rank and then by writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Where each region begins in this order, and the end of the last one.
    begins: Vec<u64>,
    /// Where each region begins in what the tasks wrote.
    sources: Vec<u64>,
    writers: usize,
}

impl Ranked {
    /// The regions of writers of which each has written one region a rank, the ranks one
    /// after the other. `starts` has where each writer's first region begins, and `lengths`
    /// the elements of its regions, writer by writer.
    ///
    /// # Panics
    /// When there are not equally many lengths for each writer.
    pub fn new(starts: &[u64], lengths: &[u64]) -> Self {
        let writers = starts.len();
        assert!(
            writers > 0 && lengths.len().is_multiple_of(writers),
            "{} lengths for {writers} writers",
            lengths.len()
        );
        let ranks = lengths.len() / writers;
        let mut at = starts.to_vec();
        let (mut begins, mut sources) = (vec![0], Vec::with_capacity(lengths.len()));
        let mut end = 0;
        for rank in 0..ranks {
            for (writer, at) in at.iter_mut().enumerate() {
                let length = lengths[writer * ranks + rank];
                sources.push(*at);
                *at += length;
                end += length;
                begins.push(end);
            }
        }
        Self {
            begins,
            sources,
            writers,
        }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.sources.len() / self.writers
    }

    /// The place of some ranks in this order.
    ///
    /// # Panics
    /// When there are fewer ranks.
    pub fn place(&self, ranks: Range<usize>) -> Range<u64> {
        self.begins[ranks.start * self.writers]..self.begins[ranks.end * self.writers]
    }

    /// Where the elements at some places of this order were written: ranges one after the
    /// other, none of which is empty.
    pub fn sources(&self, places: Range<u64>) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        let first = self.begins.partition_point(|begin| *begin <= places.start);
        for region in first.saturating_sub(1)..self.sources.len() {
            let (begin, end) = (self.begins[region], self.begins[region + 1]);
            if begin >= places.end {
                break;
            }
            let common = begin.max(places.start)..end.min(places.end);
            if common.is_empty() {
                continue;
            }
            let shift = |place: u64| place - begin + self.sources[region];
            let source = shift(common.start)..shift(common.end);
            match found.last_mut() {
                Some(last) if last.end == source.start => last.end = source.end,
                _ => found.push(source),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a list of all elements that is sorted by rank and writer.
    #[test]
    fn regions_follow_one_another_by_rank_and_writer() {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..300 {
            let (writers, ranks) = (random.usize(1..6), random.usize(1..6));
            let lengths: Vec<u64> = (0..writers * ranks).map(|_| random.u64(..4)).collect();
            let (mut starts, mut at, mut all) = (Vec::new(), 0, Vec::new());
            for of_writer in lengths.chunks(ranks) {
                at += random.u64(..3);
                starts.push(at);
                for (rank, length) in of_writer.iter().enumerate() {
                    all.extend((at..at + length).map(|element| (rank, element)));
                    at += length;
                }
            }
            // Sorting is stable, and writers come one after the other.
            all.sort_by_key(|(rank, _)| *rank);
            let ranked = Ranked::new(&starts, &lengths);
            assert_eq!(ranked.ranks(), ranks);
            let first = random.usize(..=ranks);
            let some = first..random.usize(first..=ranks);
            let place = ranked.place(some.clone());
            let of_ranks = all.iter().filter(|(rank, _)| some.contains(rank));
            let right: Vec<u64> = of_ranks.map(|(_, element)| *element).collect();
            let found = ranked.sources(place.clone());
            assert_eq!(found.iter().cloned().flatten().collect::<Vec<_>>(), right);
            let begin = random.u64(..=all.len() as u64);
            let places = begin..random.u64(begin..=all.len() as u64);
            let found = ranked.sources(places.clone());
            assert!(found.windows(2).all(|two| two[0].end != two[1].start));
            let right = &all[places.start as usize..places.end as usize];
            let right: Vec<u64> = right.iter().map(|(_, element)| *element).collect();
            assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), right);
        }
    }
}
