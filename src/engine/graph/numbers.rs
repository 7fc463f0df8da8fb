//! What policies know of a graph.

use crate::graph::{Components, KernelId, TaskGraph, bottom_levels};
use crate::machine::Device;
use crate::policy::{Problem, Spot, Task};

/// Seconds of each kernel on each device; `None` where it cannot run or nobody
/// knows.
pub type Times = Vec<Vec<Option<f64>>>;

/// A link's bandwidth where nobody knows it, in bytes a second: PCIe 3 x16.
const LINK: f64 = 12e9;

/// Operations a second, and bytes of memory traffic a second, by which kernels
/// are compared where no times are known.
const RATE: (f64, f64) = (1e12, 1e11);

/// A graph in numbers. `able` is [`super::abilities`]' answer; where `times`
/// know nothing of a kernel on a device, it counts by its cost.
pub fn problem(
    graph: &TaskGraph,
    components: &Components,
    devices: &[Device],
    able: &[Vec<bool>],
    times: &Times,
) -> Problem {
    let known = |kernel: KernelId, device: usize| {
        let row = times.get(kernel.0);
        row.and_then(|row| row.get(device).copied().flatten())
    };
    let by_cost = |kernel: KernelId| {
        let cost = graph.kernel(kernel).cost;
        (cost.flops / RATE.0).max(cost.bytes / RATE.1).max(1e-6)
    };
    let seconds = |kernel, device| known(kernel, device).unwrap_or_else(|| by_cost(kernel));
    // A kernel's mean over the devices that can run it.
    let mean = |kernel: KernelId| {
        let can = &able[components.of(kernel)];
        let all = (0..devices.len()).filter(|d| can[*d]);
        let all: Vec<f64> = all.map(|device| seconds(kernel, device)).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let spots: Vec<Spot> = devices
        .iter()
        .map(|device| Spot {
            kind: device.kind,
            bandwidth: (!device.shares_host_memory).then(|| device.link_bandwidth.unwrap_or(LINK)),
        })
        .collect();
    let apart = |bytes: u64| {
        let each: f64 = spots.iter().map(|spot| spot.transfer(bytes)).sum();
        each / spots.len().max(1) as f64
    };
    let ranks = bottom_levels(graph, mean, apart);
    let tasks = components
        .list()
        .iter()
        .enumerate()
        .map(|(index, component)| {
            let kernels = || component.kernels.iter().copied();
            let rank = |kernels: &[KernelId]| {
                let ranks = kernels.iter().map(|kernel| ranks[kernel.0]);
                ranks.fold(0.0, f64::max)
            };
            let (predecessors, given) = incoming(graph, components, index);
            Task {
                level: component.level,
                predecessors,
                given,
                rank: rank(&component.front),
                weight: kernels().map(by_cost).sum::<f64>().max(f64::MIN_POSITIVE),
                seconds: (0..devices.len())
                    .map(|device| {
                        let sum = || kernels().map(|kernel| seconds(kernel, device)).sum();
                        able[index][device].then(sum)
                    })
                    .collect(),
                prefers: component.prefers,
            }
        })
        .collect();
    Problem { tasks, spots }
}

/// The bytes that a component reads from each of the components that it waits
/// for, and of what the host gives.
fn incoming(
    graph: &TaskGraph,
    components: &Components,
    component: usize,
) -> (Vec<(usize, u64)>, u64) {
    let own = &components.list()[component];
    let mut before: Vec<(usize, u64)> = own.predecessors.iter().map(|c| (*c, 0)).collect();
    let mut given = 0;
    let kernels = own.kernels.iter().map(|kernel| graph.kernel(*kernel));
    let mut data: Vec<_> = kernels.flat_map(|kernel| kernel.inputs()).collect();
    data.sort_unstable();
    data.dedup();
    for datum in data {
        let bytes = graph.datum(datum).bytes;
        match graph
            .producer(datum)
            .map(|producer| components.of(producer))
        {
            None => given += bytes,
            Some(maker) => {
                if let Some(entry) = before.iter_mut().find(|(c, _)| *c == maker) {
                    entry.1 += bytes;
                }
            }
        }
    }
    (before, given)
}
