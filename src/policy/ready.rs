//! The components that are ready, by rank.

use super::Problem;

/// Ready components: the highest bottom-level rank first, and among equals the
/// first by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    /// From last to first.
    waiting: Vec<usize>,
}

impl Ready {
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

    /// Components from the first on.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.waiting.iter().rev().copied()
    }

    /// Takes the first component for the device that has the fewest `running`
    /// ones, of those for which any is ready. `place` is a component's device.
    ///
    /// Enqueueing takes the host's time, so every device gets something to do
    /// before any gets more.
    pub fn spread(
        &mut self,
        running: &[usize],
        place: impl Fn(usize) -> Option<usize>,
    ) -> Option<(usize, usize)> {
        let wanted = self.iter().filter_map(&place);
        let device = wanted.min_by_key(|device| (running[*device], *device))?;
        self.take(|component| place(component).filter(|own| *own == device))
    }

    /// Takes the first for which `choose` has an answer.
    pub fn take<T>(&mut self, mut choose: impl FnMut(usize) -> Option<T>) -> Option<(usize, T)> {
        for index in (0..self.waiting.len()).rev() {
            if let Some(answer) = choose(self.waiting[index]) {
                return Some((self.waiting.remove(index), answer));
            }
        }
        None
    }
}
