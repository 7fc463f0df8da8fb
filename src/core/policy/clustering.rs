//! Clustering: a map fixes the device of every component. A component goes there as
//! soon as it is ready, the highest bottom-level rank first (PySchedCL, experiment 1).

use thiserror::Error;

use super::ready_queue::ReadyQueue;
use super::{Policy, Problem};
use crate::machine::DeviceKind;
use crate::time::Nanos;

/// Why components cannot be mapped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    #[error("the map has {given} components, the graph {wanted}")]
    Count { given: usize, wanted: usize },

    #[error("component {component} is mapped to device {device}, which cannot run it")]
    Unable { component: usize, device: usize },

    #[error("no device can run component {component}; open one of the kind it is meant for")]
    Nowhere { component: usize },

    #[error("h_cpu={on_cpu}: the widest layer has {widest} components")]
    Wide { on_cpu: usize, widest: usize },

    #[error("policy recorded repeats a recorded schedule, and this graph has none; take another")]
    Unrecorded,
}

/// The policy.
pub struct Clustering {
    problem: Problem,
    /// By device.
    ready: Vec<ReadyQueue>,
    /// By component: its device by the given map, and now.
    given: Vec<usize>,
    map: Vec<usize>,
    lost: Vec<bool>,
}

impl Clustering {
    /// The policy with a map from components to devices.
    ///
    /// # Errors
    /// A [`MapError`] when a component has no device, or one that cannot run it.
    pub fn new(problem: Problem, map: Vec<usize>) -> Result<Self, MapError> {
        let (given, wanted) = (map.len(), problem.tasks.len());
        if given != wanted {
            return Err(MapError::Count { given, wanted });
        }
        for (component, device) in map.iter().copied().enumerate() {
            if !problem.able(component, device) {
                return Err(MapError::Unable { component, device });
            }
        }
        Ok(Self {
            lost: vec![false; problem.devices.len()],
            ready: vec![ReadyQueue::default(); problem.devices.len()],
            problem,
            given: map.clone(),
            map,
        })
    }

    /// The paper's map: `on_cpu` components of each level on CPUs, the others on GPUs;
    /// several devices of a kind share them by weight. A component with a preferred
    /// kind goes to that, and one that the chosen kind cannot run goes to the other.
    /// CPUs get the last components of a level, so that those of the highest rank begin
    /// on GPUs. A level of no more than `on_cpu` components, such as the sum of a
    /// layer's heads, keeps one on GPUs if the widest level does.
    ///
    /// # Errors
    /// [`MapError::Nowhere`].
    pub fn map(problem: &Problem, on_cpu: usize) -> Result<Vec<usize>, MapError> {
        let mut map = vec![0; problem.tasks.len()];
        let mut load = vec![0.0_f64; problem.devices.len()];
        let free = |level: &Vec<usize>| {
            let free = level.iter();
            free.filter(|c| problem.tasks[**c].prefers.is_none())
                .count()
        };
        let levels = problem.levels();
        let least_gpus = match levels.iter().map(free).max() {
            Some(widest) if widest > on_cpu => 1,
            _ => 0,
        };
        for level in levels {
            load.fill(0.0);
            let gpus = free(&level).saturating_sub(on_cpu).max(least_gpus);
            let mut passed = 0;
            for component in level {
                let task = &problem.tasks[component];
                let kind = task.prefers.unwrap_or_else(|| {
                    passed += 1;
                    if passed <= gpus {
                        DeviceKind::Gpu
                    } else {
                        DeviceKind::Cpu
                    }
                });
                let able = |d: &usize| problem.able(component, *d);
                let right = |d: &usize| problem.devices[*d].kind == kind;
                let least = |one: &usize, other: &usize| load[*one].total_cmp(&load[*other]);
                let devices = || (0..problem.devices.len()).filter(able);
                let device = devices()
                    .filter(right)
                    .min_by(least)
                    .or_else(|| devices().min_by(least))
                    .ok_or(MapError::Nowhere { component })?;
                load[device] += task.weight;
                map[component] = device;
            }
        }
        Ok(map)
    }

    /// Maps components anew, after a device left or came back: to the device of the given
    /// map or, if that is lost, to the one with the fewest components of those that can run
    /// it. A component that already has another device keeps it while it is there.
    fn map_anew(&mut self) {
        self.ready.iter_mut().for_each(ReadyQueue::clear);
        for component in 0..self.map.len() {
            let wanted = [self.given[component], self.map[component]];
            let kept = wanted.into_iter().find(|device| !self.lost[*device]);
            let left =
                (0..self.lost.len()).filter(|d| !self.lost[*d] && self.problem.able(component, *d));
            let fewest = left.min_by_key(|d| self.map.iter().filter(|m| **m == *d).count());
            if let Some(device) = kept.or(fewest) {
                self.map[component] = device;
            }
        }
    }
}

impl Policy for Clustering {
    fn name(&self) -> &'static str {
        "clustering"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.map[component] == device
    }

    fn certain(&self, component: usize) -> Option<usize> {
        let mapped = self.map[component];
        (!self.lost[mapped]).then_some(mapped)
    }

    fn begin(&mut self) {
        self.ready.iter_mut().for_each(ReadyQueue::clear);
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready[self.map[component]].push(&self.problem, component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        self.ready[device].pop()
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.map_anew();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Task;
    use crate::policy::fixtures::{layers, run};

    #[test]
    fn each_level_leaves_its_last_components_to_the_cpu() {
        let problem = layers(2, 4, [1.0, 1.0]);
        let map = Clustering::map(&problem, 1).expect("a map");
        assert_eq!(map, [1, 1, 1, 0, 1, 1, 1, 0]);
        let all = Clustering::map(&problem, 4).expect("a map");
        assert!(all.iter().all(|device| *device == 0));
        let mut policy = Clustering::new(problem.clone(), map).expect("a policy");
        let levels = run(&mut policy, &problem, |_, _| 1.0);
        assert_eq!(levels, [(3.0, vec![1, 3]), (3.0, vec![1, 3])]);
    }

    #[test]
    fn a_preference_counts_more_than_the_map() {
        let mut problem = layers(1, 3, [1.0, 1.0]);
        problem.tasks[0].prefers = Some(DeviceKind::Cpu);
        assert_eq!(Clustering::map(&problem, 1), Ok(vec![0, 1, 0]));
        // What a GPU cannot run is not left out.
        problem.tasks[1].seconds[1] = None;
        assert_eq!(Clustering::map(&problem, 0), Ok(vec![0, 0, 1]));
    }

    #[test]
    fn what_cannot_be_mapped_is_named() {
        let mut problem = layers(1, 2, [1.0, 1.0]);
        problem.tasks[1].seconds = vec![None, None];
        assert_eq!(
            Clustering::map(&problem, 0),
            Err(MapError::Nowhere { component: 1 })
        );
        let count = Clustering::new(problem.clone(), vec![0]).err();
        assert_eq!(
            count,
            Some(MapError::Count {
                given: 1,
                wanted: 2
            })
        );
        let unable = Clustering::new(problem, vec![0, 1]).err();
        let (component, device) = (1, 1);
        assert_eq!(unable, Some(MapError::Unable { component, device }));
    }

    #[test]
    fn a_lost_devices_components_go_to_the_others() {
        let problem = layers(1, 3, [1.0, 1.0]);
        let mut policy = Clustering::new(problem, vec![0, 1, 1]).expect("a policy");
        policy.lost(1);
        assert!((0..3).all(|c| policy.may_run(c, 0) && !policy.may_run(c, 1)));
        policy.returned(1);
        let on_second = (0..3).map(|c| policy.may_run(c, 1)).collect::<Vec<_>>();
        assert_eq!(on_second, [false, true, true], "the given map again");
    }

    #[test]
    fn what_joins_heads_stays_on_the_gpu_unless_all_heads_are_on_the_cpu() {
        let mut problem = layers(1, 4, [2.0, 1.0]);
        let join = Task {
            level: 1,
            ..problem.tasks[0].clone()
        };
        problem.tasks.push(join);
        let on_cpu = |count| {
            let map = Clustering::map(&problem, count).unwrap();
            map.iter().map(|device| *device == 0).collect::<Vec<_>>()
        };
        assert_eq!(on_cpu(0), [false; 5]);
        assert_eq!(on_cpu(1), [false, false, false, true, false]);
        assert_eq!(on_cpu(3), [false, true, true, true, false]);
        assert_eq!(on_cpu(4), [true; 5]);
    }
}
