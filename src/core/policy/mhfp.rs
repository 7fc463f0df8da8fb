//! mHFP, Hierarchical Fair Packing for several devices: Algorithm 4 of Gonthier, Marchal
//! and Thibault (IPDPS 2022), after "Locality-aware scheduling of independent tasks for
//! runtime systems" (COLOC 2021), which packs for one device.

use std::collections::BTreeSet;

use super::device_lists::{mean_seconds, shares};
use super::{Assigned, ListOptions, Problem};

impl Assigned {
    /// The policy in which each device computes packages of tasks that share data, one
    /// after the other. A package's data fit in memory together.
    pub fn by_packages(problem: Problem, options: ListOptions) -> Self {
        let memories = problem.devices.iter().filter_map(|device| device.memory);
        let memory = memories.min().unwrap_or(u64::MAX);
        let mut packages = Packages::new(&problem);
        // Packages that fit in memory, then their neighbourhood.
        packages.merge(problem.devices.len(), memory);
        packages.merge(problem.devices.len(), u64::MAX);
        let mut orders = packages.orders();
        orders.resize(problem.devices.len(), Vec::new());
        balance(&problem, &mut orders);
        Self::new(["mhfp", "mhfp+luf"], problem, &orders, options)
    }
}

/// Lists of tasks, and the data that each uses.
struct Packages<'a> {
    problem: &'a Problem,
    /// By package: empty once it is part of another.
    tasks: Vec<Vec<usize>>,
    /// Sorted.
    data: Vec<Vec<usize>>,
    /// By package: the one of which it is part, or itself.
    within: Vec<usize>,
    /// By datum: the packages that use it. They may be part of others by now.
    users: Vec<Vec<usize>>,
    count: usize,
}

impl<'a> Packages<'a> {
    /// A package for each task.
    fn new(problem: &'a Problem) -> Self {
        let count = problem.tasks.len();
        let data = problem.tasks.iter().map(|task| {
            let mut data: Vec<usize> = task.data().collect();
            data.sort_unstable();
            data
        });
        let data: Vec<Vec<usize>> = data.collect();
        let mut users = vec![Vec::new(); problem.data.len()];
        for (package, data) in data.iter().enumerate() {
            data.iter().for_each(|datum| users[*datum].push(package));
        }
        Self {
            problem,
            tasks: (0..count).map(|task| vec![task]).collect(),
            data,
            within: (0..count).collect(),
            users,
            count,
        }
    }

    /// Merges the package of the fewest tasks with the one that shares the most bytes
    /// with it, as long as there are more than `least` and the data of both have at most
    /// `memory` bytes.
    fn merge(&mut self, least: usize, memory: u64) {
        let packages = (0..self.tasks.len()).filter(|package| !self.tasks[*package].is_empty());
        let sized = packages.map(|package| (self.tasks[package].len(), package));
        let mut smallest: BTreeSet<(usize, usize)> = sized.collect();
        let mut shared = vec![0; self.tasks.len()];
        while self.count > least
            && let Some((_, package)) = smallest.pop_first()
        {
            let partner = self.partner(package, memory, &mut shared);
            // Where memory does not matter, packages that share nothing are merged, too.
            let unrelated = || smallest.first().map(|(_, other)| *other);
            let partner = partner.or_else(|| unrelated().filter(|_| memory == u64::MAX));
            // Without a partner it will not get any: packages only grow.
            if let Some(partner) = partner {
                smallest.remove(&(self.tasks[partner].len(), partner));
                self.join(partner, package);
                smallest.insert((self.tasks[partner].len(), partner));
            }
        }
    }

    /// The package that shares the most bytes, and among those the one of the fewest
    /// tasks. `shared` has a zero for each package.
    fn partner(&mut self, package: usize, memory: u64, shared: &mut [u64]) -> Option<usize> {
        let mut found = Vec::new();
        for datum in &self.data[package] {
            let bytes = self.problem.data[*datum].bytes;
            let mut users = std::mem::take(&mut self.users[*datum]);
            users
                .iter_mut()
                .for_each(|user| *user = root(&self.within, *user));
            users.sort_unstable();
            users.dedup();
            for user in users.iter().filter(|user| **user != package && bytes > 0) {
                if shared[*user] == 0 {
                    found.push(*user);
                }
                shared[*user] += bytes;
            }
            self.users[*datum] = users;
        }
        let bytes = |package: usize| -> u64 {
            let data = self.data[package].iter();
            data.map(|datum| self.problem.data[*datum].bytes).sum()
        };
        let own = bytes(package);
        let fits =
            |other: &&usize| memory == u64::MAX || own + bytes(**other) - shared[**other] <= memory;
        let order = |other: &&usize| {
            let few = std::cmp::Reverse((self.tasks[**other].len(), **other));
            (shared[**other], few)
        };
        let best = found.iter().filter(fits).max_by_key(order).copied();
        found.iter().for_each(|other| shared[*other] = 0);
        best
    }

    /// Puts the tasks of a package after those of another.
    fn join(&mut self, first: usize, second: usize) {
        let tasks = std::mem::take(&mut self.tasks[second]);
        self.tasks[first].extend(tasks);
        let data = std::mem::take(&mut self.data[second]);
        self.data[first].extend(data);
        self.data[first].sort_unstable();
        self.data[first].dedup();
        self.within[second] = first;
        self.count -= 1;
    }

    fn orders(self) -> Vec<Vec<usize>> {
        self.tasks
            .into_iter()
            .filter(|tasks| !tasks.is_empty())
            .collect()
    }
}

/// The package of which one is part.
fn root(within: &[usize], mut package: usize) -> usize {
    while within[package] != package {
        package = within[package];
    }
    package
}

/// Moves tasks from the end of the list with the most work to that with the least, until
/// all have their shares (lines 2 to 6).
fn balance(problem: &Problem, orders: &mut [Vec<usize>]) {
    let seconds = mean_seconds(problem);
    let total: f64 = seconds.iter().sum();
    let work = |order: &[usize]| order.iter().map(|task| seconds[*task]).sum::<f64>();
    let shares = shares(problem);
    let excess = orders
        .iter()
        .zip(&shares)
        .map(|(order, share)| work(order) - share * total);
    let mut excess: Vec<f64> = excess.collect();
    // Each turn takes all that a list has too much, or gives all that one lacks.
    for _ in 0..2 * orders.len() {
        let by_excess = |one: &usize, other: &usize| excess[*one].total_cmp(&excess[*other]);
        let (Some(most), Some(least)) = (
            (0..orders.len()).max_by(by_excess),
            (0..orders.len()).min_by(by_excess),
        ) else {
            return;
        };
        let mut amount = excess[most].min(-excess[least]);
        let mut moved = Vec::new();
        while let Some(task) = orders[most].last().copied()
            // Half a task is rounded up.
            && seconds[task] / 2.0 < amount
        {
            orders[most].pop();
            moved.push(task);
            amount -= seconds[task];
            excess[most] -= seconds[task];
            excess[least] += seconds[task];
        }
        if moved.is_empty() {
            return;
        }
        orders[least].extend(moved.into_iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::{gpus, product};

    #[test]
    fn packages_fit_in_memory_and_share_data() {
        let problem = product(12, gpus(1, 8));
        let mut packages = Packages::new(&problem);
        packages.merge(1, 8_000);
        for (tasks, data) in packages.tasks.iter().zip(&packages.data) {
            assert!(data.len() <= 8);
            assert!(tasks.len() <= 16, "four rows and four columns");
        }
        assert!(packages.count <= 14, "{} packages", packages.count);
    }

    #[test]
    fn all_devices_have_the_same_work() {
        let problem = product(10, gpus(3, 8));
        let mut orders = vec![(0..90).collect(), Vec::new(), (90..100).collect()];
        balance(&problem, &mut orders);
        let counts: Vec<usize> = orders.iter().map(Vec::len).collect();
        assert_eq!(counts, [34, 33, 33]);
        let mut all: Vec<usize> = orders.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..100));
    }
}
