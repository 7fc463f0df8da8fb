//! A tournament tree: keys by number, the greatest of which is found in logarithmic
//! time.

/// So many changes are brought into the tree at once, so that no single question takes
/// long.
const MOST_CHANGES: usize = 1 << 8;

/// Keys of the numbers below `new`'s argument. A key of 0 means that the number does
/// not take part.
///
/// `set` only marks its number; the next question brings the tree up to date. Keys
/// change far more often than anyone asks, and often several times in between.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    /// The tree as a heap: the children of node i are 2i and 2i + 1, and a node is the
    /// greater of its children. Number i is node `width + i`.
    nodes: Vec<u64>,
    width: usize,
    /// The numbers whose keys changed, each once.
    changed: Vec<u32>,
    marked: Vec<bool>,
}

impl Tournament {
    /// The numbers below `count` with keys of 0.
    pub fn new(count: usize) -> Self {
        let width = count.max(1).next_power_of_two();
        Self {
            nodes: vec![0; 2 * width],
            width,
            changed: Vec::new(),
            marked: vec![false; width],
        }
    }

    /// Sets all keys to 0.
    pub fn clear(&mut self) {
        self.nodes.fill(0);
        self.changed.clear();
        self.marked.fill(false);
    }

    pub fn get(&self, number: usize) -> u64 {
        self.nodes[self.width + number]
    }

    pub fn set(&mut self, number: usize, key: u64) {
        let node = &mut self.nodes[self.width + number];
        if *node != key {
            *node = key;
            if !self.marked[number] {
                self.marked[number] = true;
                self.changed.push(number as u32);
                if self.changed.len() == MOST_CHANGES {
                    self.update();
                }
            }
        }
    }

    /// The first number of the greatest key.
    pub fn first(&mut self) -> Option<usize> {
        self.descend(|left, right| left >= right)
    }

    /// A random number of the greatest key.
    pub fn random(&mut self, random: &mut fastrand::Rng) -> Option<usize> {
        self.descend(|left, right| left > right || (left == right && random.bool()))
    }

    /// The last number whose key is above 0.
    pub fn last(&mut self) -> Option<usize> {
        self.descend(|_, right| right == 0)
    }

    /// Goes down from the root, to the left where `left` says so of the two children.
    fn descend(&mut self, mut left: impl FnMut(u64, u64) -> bool) -> Option<usize> {
        self.update();
        if self.nodes[1] == 0 {
            return None;
        }
        let mut node = 1;
        while node < self.width {
            let goes_left = left(self.nodes[2 * node], self.nodes[2 * node + 1]);
            node = 2 * node + usize::from(!goes_left);
        }
        Some(node - self.width)
    }

    fn update(&mut self) {
        let nodes = &mut self.nodes;
        // A climb takes a few steps, so many of them cost more than all nodes.
        let all = self.changed.len() * 4 >= self.width;
        for number in self.changed.drain(..) {
            self.marked[number as usize] = false;
            let mut node = if all {
                0
            } else {
                (self.width + number as usize) / 2
            };
            while node > 0 {
                let greatest = nodes[2 * node].max(nodes[2 * node + 1]);
                if nodes[node] == greatest {
                    break;
                }
                nodes[node] = greatest;
                node /= 2;
            }
        }
        if all {
            for node in (1..self.width).rev() {
                nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_scan(
            count in 1_usize..40,
            changes in prop::collection::vec((0_usize..40, 0_u64..5, any::<bool>()), 0..200),
        ) {
            let mut tree = Tournament::new(count);
            let mut keys = vec![0; count];
            let mut random = fastrand::Rng::with_seed(1);
            for (number, key, ask) in changes {
                let number = number % count;
                tree.set(number, key);
                keys[number] = key;
                if !ask {
                    continue;
                }
                let greatest = *keys.iter().max().expect("a key");
                let first = keys.iter().position(|key| *key == greatest && greatest > 0);
                prop_assert_eq!(tree.first(), first);
                prop_assert_eq!(tree.last(), keys.iter().rposition(|key| *key > 0));
                let any = tree.random(&mut random);
                prop_assert_eq!(any.map(|any| keys[any]), first.map(|_| greatest));
            }
        }
    }

    #[test]
    fn ties_are_broken_at_random() {
        let mut tree = Tournament::new(8);
        (0..8).for_each(|number| tree.set(number, 3));
        let mut random = fastrand::Rng::with_seed(1);
        let mut chosen: Vec<_> = (0..100).filter_map(|_| tree.random(&mut random)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
