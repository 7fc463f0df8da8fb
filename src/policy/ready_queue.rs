//! The queue of components that are ready, by rank.

use super::Problem;

/// Ready components: the highest bottom-level rank first, and among equals the
/// first by number.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueue {
    /// The last one first.
    waiting: Vec<usize>,
}

impl ReadyQueue {
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    pub fn push(&mut self, problem: &Problem, component: usize) {
        let key = |c: usize| (problem.tasks[c].rank, std::cmp::Reverse(c));
        let mine = key(component);
        let at = self.waiting.partition_point(|other| {
            let other = key(*other);
            other
                .0
                .total_cmp(&mine.0)
                .then(other.1.cmp(&mine.1))
                .is_lt()
        });
        self.waiting.insert(at, component);
    }

    /// The components, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.waiting.iter().rev().copied()
    }

    /// Takes the first component for the device with the fewest `running` components,
    /// of the devices for which one is ready. `device_of` is a component's device.
    ///
    /// Enqueueing takes the host's time, so every device gets a component before any
    /// gets a second one.
    pub fn spread(
        &mut self,
        running: &[usize],
        device_of: impl Fn(usize) -> Option<usize>,
    ) -> Option<(usize, usize)> {
        let wanted = self.iter().filter_map(&device_of);
        let device = wanted.min_by_key(|device| (running[*device], *device))?;
        self.take(|component| device_of(component).filter(|own| *own == device))
    }

    /// Takes the first component for which `choose` has an answer.
    pub fn take<T>(&mut self, mut choose: impl FnMut(usize) -> Option<T>) -> Option<(usize, T)> {
        for index in (0..self.waiting.len()).rev() {
            if let Some(answer) = choose(self.waiting[index]) {
                return Some((self.waiting.remove(index), answer));
            }
        }
        None
    }
}
