//! The scheduling problem of a graph: what policies know of it, in numbers.

use crate::codelet::Cost;
use crate::machine::{Device, DeviceKind};
use crate::policy::{Datum, DeviceModel, Links, Problem, Task};
use crate::runtime::{DeviceId, Devices};
use pdawl_core::graph::{Components, DatumId, KernelId, TaskGraph, bottom_levels};

/// Seconds by kernel and device; `None` where the kernel cannot run or was not
/// measured.
pub type KernelTimes = Vec<Vec<Option<f64>>>;

/// The bandwidth of a link where it is unknown, in bytes a second: PCIe 3 x16.
const LINK: f64 = 12e9;

/// Operations a second, and bytes of memory traffic a second.
type Rate = (f64, f64);

/// The device by whose rate the weights of components are compared.
const RATE: Rate = (1e12, 1e11);

/// Operations a cycle and bytes a second of one compute unit, by orders of
/// magnitude: a core with two 256-bit multiply-adds of single precision at half
/// of their peak, and a multiprocessor with 128 of them.
const CORE: Rate = (16.0, 10e9);
const MULTIPROCESSOR: Rate = (256.0, 25e9);

/// The clock of a device where it is unknown, in MHz.
const CLOCK: u32 = 1500;

/// The problem of these components on the devices of a runtime. `able` comes from
/// [`super::abilities`]. Where `times` has no entry, the seconds are estimated from
/// the kernel's cost and typical figures of the kind of device.
pub fn problem(
    graph: &TaskGraph,
    components: &Components,
    runtime: &dyn Devices,
    able: &[Vec<bool>],
    times: &KernelTimes,
) -> Problem {
    let devices = runtime.devices();
    let known = |kernel: KernelId, device: usize| {
        let row = times.get(kernel.0);
        row.and_then(|row| row.get(device).copied().flatten())
    };
    let by_cost = |kernel: KernelId, rate: Rate| {
        let cost = graph.kernel(kernel).cost;
        (cost.flops / rate.0).max(cost.bytes / rate.1).max(1e-6)
    };
    let rates: Vec<Rate> = devices.iter().map(rate).collect();
    let seconds = |kernel, device: usize| {
        known(kernel, device).unwrap_or_else(|| by_cost(kernel, rates[device]))
    };
    // The mean over the devices that can run a kernel.
    let mean = |kernel: KernelId| {
        let can = &able[components.of(kernel)];
        let all = (0..devices.len()).filter(|d| can[*d]);
        let all: Vec<f64> = all.map(|device| seconds(kernel, device)).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let (devices, links) = links(runtime);
    let transfer_seconds = |bytes: u64| {
        let each: f64 = devices.iter().map(|spot| spot.transfer(bytes)).sum();
        each / devices.len().max(1) as f64
    };
    let ranks = bottom_levels(graph, mean, transfer_seconds);
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
            Task {
                level: component.level,
                predecessors: component.predecessors.clone(),
                inputs: memory(
                    graph,
                    component
                        .kernels
                        .iter()
                        .flat_map(|k| graph.kernel(*k).inputs()),
                ),
                outputs: memory(
                    graph,
                    component
                        .kernels
                        .iter()
                        .flat_map(|k| graph.kernel(*k).outputs()),
                ),
                rank: rank(&component.front),
                weight: kernels().map(|kernel| by_cost(kernel, RATE)).sum(),
                cost: kernels().fold(Cost::default(), |sum, kernel| {
                    let Cost { flops, bytes } = graph.kernel(kernel).cost;
                    Cost {
                        flops: sum.flops + flops,
                        bytes: sum.bytes + bytes,
                    }
                }),
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
    let data = graph.data().iter();
    let views = (0..data.len()).map(DatumId).filter_map(|view| {
        let pieces = graph.datum(view).pieces.iter();
        let pieces: Vec<usize> = pieces.map(|of| graph.first_version(*of).0).collect();
        (!pieces.is_empty()).then_some((view.0, pieces))
    });
    let all = (0..data.len()).map(DatumId);
    Problem {
        tasks,
        views: views.collect(),
        results: memory(graph, all.filter(|datum| graph.datum(*datum).wanted)),
        links,
        data: data.map(|datum| Datum { bytes: datum.bytes }).collect(),
        devices,
    }
}

/// The devices of a runtime, and the ways between them.
pub(super) fn links(runtime: &dyn Devices) -> (Vec<DeviceModel>, Links) {
    let devices = runtime.devices().iter();
    let devices: Vec<DeviceModel> = devices
        .enumerate()
        .map(|(index, device)| DeviceModel {
            costs: runtime.costs(DeviceId(index)),
            kind: device.kind,
            bandwidth: (!device.shares_host_memory).then(|| device.link_bandwidth.unwrap_or(LINK)),
            one_way: device.one_way,
            memory: (!device.shares_host_memory).then_some(device.memory),
        })
        .collect();
    // A way through the host's memory is no shorter than a load from there.
    let direct = |from: usize, to: usize| {
        let path = runtime.peer_path(DeviceId(from), DeviceId(to));
        path.filter(|path| !path.through_host)
            .map(|path| path.bandwidth)
    };
    let peers = |from| (0..devices.len()).map(move |to| direct(from, to));
    let links = Links {
        bus: runtime.bus_bandwidth(),
        host: runtime.host_bandwidth(),
        peers: (0..devices.len())
            .map(|from| peers(from).collect())
            .collect(),
    };
    (devices, links)
}

/// The peak rate of a device, by orders of magnitude.
fn rate(device: &Device) -> Rate {
    let unit = match device.kind {
        DeviceKind::Cpu => CORE,
        DeviceKind::Gpu | DeviceKind::Accelerator => MULTIPROCESSOR,
    };
    let units = f64::from(device.compute_units.max(1));
    let clock = f64::from(device.clock_mhz.unwrap_or(CLOCK)) * 1e6;
    (unit.0 * units * clock, unit.1 * units)
}

/// The memory of some data, as policies number it: by the data's first versions.
fn memory(graph: &TaskGraph, data: impl Iterator<Item = DatumId>) -> Vec<usize> {
    let mut first: Vec<usize> = data.map(|datum| graph.first_version(datum).0).collect();
    first.sort_unstable();
    first.dedup();
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::abilities;
    use crate::graphs::figure_6;
    use crate::machine::MachineStore;
    use crate::runtime::sim::{Sim, SimOptions};

    fn simulator() -> Sim {
        let machine = MachineStore::at("/nonexistent")
            .find("k40")
            .expect("a machine");
        Sim::new(&machine, SimOptions::default()).expect("a simulator")
    }

    #[test]
    fn the_paper_s_figure_in_numbers() {
        let graph = figure_6();
        let parts: Vec<Vec<KernelId>> = [0..1, 1..6, 6..7]
            .map(|range| range.map(KernelId).collect())
            .to_vec();
        let components = Components::new(&graph, &parts).expect("components");
        let sim = simulator();
        let able = abilities(&graph, &components, sim.devices());
        // Its kernels have no OpenCL implementation.
        assert!(able.iter().all(|row| row[0] && !row[1]));
        let mut times: KernelTimes = vec![vec![Some(1.0), None]; 7];
        times[1][0] = Some(10.0);
        let problem = problem(&graph, &components, &sim, &able, &times);
        assert_eq!(problem.devices[0].bandwidth, None);
        assert!(problem.devices[1].bandwidth.is_some());
        let middle = &problem.tasks[1];
        assert_eq!(middle.seconds, [Some(14.0), None]);
        assert_eq!((&middle.predecessors[..], middle.level), (&[0][..], 1));
        // k0, k1, k3 and the last, with copies of a few bytes between them.
        assert!((middle.rank - 13.0).abs() < 1e-6, "{}", middle.rank);
    }

    #[test]
    fn a_gpu_is_expected_to_be_faster_than_a_few_cores() {
        let sim = simulator();
        let devices = sim.devices();
        assert!(rate(&devices[1]).0 > rate(&devices[0]).0);
    }
}
