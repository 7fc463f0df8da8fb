//! What bounds a run from below: the area of its work, and its critical path.

mod area;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Outcome;
use crate::engine::graph::{GraphOutcome, Launched};
use crate::graph::TaskGraph;
use crate::trace::gantt;
use crate::trace::intervals::{Intervals, total, union};
use area::Class;

/// Seconds that a run could not go below, at the speeds that its devices had in it. Copies,
/// waits and decisions take no time here.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Bounds {
    /// All work divided so that every device computes to the end, each kernel (of a codelet
    /// and a cost) or unit with the mean of its seconds on a device. A device counts for the
    /// kernels that it ran.
    pub area_seconds: f64,
    /// Of a graph, the longest chain of kernels that depend on one another, each with the
    /// least seconds that a kernel of its codelet and cost took; null for others.
    pub critical_path_seconds: Option<f64>,
}

impl Bounds {
    /// Those of a co-run; `None` if no kernel ran.
    pub fn of_corun(outcome: &Outcome) -> Option<Self> {
        let devices = 0..outcome.devices.len();
        let steps = || outcome.steps.iter();
        let all: u64 = (steps().flat_map(|step| &step.devices))
            .map(|of| of.units)
            .sum();
        let seconds = devices.map(|device| {
            let own = || steps().filter_map(|step| step.devices.get(device));
            let units: u64 = own().map(|of| of.units).sum();
            let kernels = own().map(|of| of.busy_seconds - of.copy_seconds + of.overlapped_seconds);
            let kernels: f64 = kernels.sum();
            (units > 0 && kernels > 0.0).then(|| kernels / units as f64)
        });
        let class = Class {
            work: all as f64,
            seconds: seconds.collect(),
        };
        Some(Self {
            area_seconds: area::bound(&[class])?,
            critical_path_seconds: None,
        })
    }

    /// Those of a graph; `None` unless a trace has launches of kernels of every codelet and
    /// cost, and if the run was interrupted.
    pub fn of_graph(outcome: &GraphOutcome, graph: &TaskGraph) -> Option<Self> {
        if outcome.interrupted || outcome.launches.is_empty() {
            return None;
        }
        let mut numbers = HashMap::new();
        let mut classes: Vec<Class> = Vec::new();
        let mut of_kernel = Vec::with_capacity(graph.kernels().len());
        for kernel in graph.kernels() {
            let cost = [kernel.cost.flops, kernel.cost.bytes].map(f64::to_bits);
            let number = *numbers
                .entry((&*kernel.codelet.name, cost))
                .or_insert_with(|| {
                    classes.push(Class {
                        work: 0.0,
                        seconds: vec![None; outcome.devices.len()],
                    });
                    classes.len() - 1
                });
            classes[number].work += 1.0;
            of_kernel.push(number);
        }
        let mut least = vec![f64::INFINITY; classes.len()];
        for device in 0..outcome.devices.len() {
            let own = || outcome.launches.iter().filter(|one| one.device == device);
            let scale = scale(own());
            let mut sums = vec![(0.0, 0u64); classes.len()];
            for launch in own() {
                let class = *of_kernel.get(launch.kernel.0)?;
                let seconds = launch.ended.saturating_sub(launch.started) as f64 / 1e9;
                least[class] = least[class].min(seconds);
                sums[class].0 += seconds;
                sums[class].1 += 1;
            }
            for (class, (seconds, number)) in classes.iter_mut().zip(sums) {
                if number > 0 {
                    class.seconds[device] = Some(seconds * scale / number as f64);
                }
            }
        }
        let area_seconds = area::bound(&classes)?;
        // When each kernel can end.
        let mut ends = vec![0.0; graph.kernels().len()];
        for kernel in graph.order() {
            let before = graph
                .predecessors(*kernel)
                .iter()
                .map(|before| ends[before.0]);
            ends[kernel.0] = before.fold(0.0, f64::max) + least[of_kernel[kernel.0]];
        }
        Some(Self {
            area_seconds,
            critical_path_seconds: Some(ends.into_iter().fold(0.0, f64::max)),
        })
    }

    /// As a chart shows them.
    pub(super) fn shown(&self) -> Vec<gantt::Bound> {
        let area = gantt::Bound {
            name: "area bound",
            meaning: "All kernels divided so that every device computes to the end, at the \
                      speeds that devices had in this run, without copies and waits.",
            seconds: self.area_seconds,
        };
        let path = self.critical_path_seconds.map(|seconds| gantt::Bound {
            name: "critical path",
            meaning: "The longest chain of kernels that depend on one another, each as fast as \
                      the fastest of its kind in this run.",
            seconds,
        });
        [area].into_iter().chain(path).collect()
    }
}

/// The time in which a device ran kernels over the sum of their times, of which several may
/// run at once.
fn scale<'a>(launches: impl Iterator<Item = &'a Launched>) -> f64 {
    let times: Intervals = launches.map(|one| (one.started, one.ended)).collect();
    let sum = total(&times);
    match sum {
        0 => 1.0,
        sum => total(&union(times)) as f64 / sum as f64,
    }
}

#[cfg(test)]
mod tests;
