//! Problems and a simple machine, for the tests of policies.

use super::{DeviceModel, Finished, Policy, Problem, Task};
use crate::machine::DeviceKind;
use crate::time::Nanos;

/// A CPU in host memory, and a GPU with memory of its own.
pub fn devices() -> Vec<DeviceModel> {
    vec![
        DeviceModel {
            kind: DeviceKind::Cpu,
            bandwidth: None,
            memory: None,
        },
        DeviceModel {
            kind: DeviceKind::Gpu,
            bandwidth: Some(1e9),
            memory: Some(1 << 30),
        },
    ]
}

/// Layers of equal components, each of which waits for all of the layer before.
pub fn layers(layers: usize, components: usize, seconds: [f64; 2]) -> Problem {
    let task = |index: usize| {
        let level = index / components;
        let before = (level.max(1) - 1) * components..level * components;
        Task {
            level,
            predecessors: before.collect(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            rank: (layers - level) as f64,
            weight: 1.0,
            seconds: seconds.map(Some).to_vec(),
            prefers: None,
        }
    };
    Problem {
        tasks: (0..layers * components).map(task).collect(),
        data: Vec::new(),
        devices: devices(),
    }
}

/// The next component that the policy gives away: the device with the fewest
/// components is asked first.
fn next(
    policy: &mut dyn Policy,
    running: &[Finished],
    devices: usize,
    now: Nanos,
) -> Option<(usize, usize)> {
    let count = |device: &usize| running.iter().filter(|f| f.device == *device).count();
    let room = |device: &usize| policy.window().is_none_or(|window| count(device) < window);
    let mut order: Vec<usize> = (0..devices).filter(room).collect();
    order.sort_by_key(count);
    let mut all = order.into_iter();
    all.find_map(|device| Some((device, policy.next(device, now)?)))
}

/// Runs a policy. A device runs one component after the other and takes
/// `seconds(device, n)` for its `n`-th one of a level. Returns the seconds of each
/// level, and the components of each device.
pub fn run(
    policy: &mut dyn Policy,
    problem: &Problem,
    seconds: impl Fn(usize, usize) -> f64,
) -> Vec<(f64, Vec<usize>)> {
    policy.begin();
    let devices = problem.devices.len();
    let mut now: Nanos = 0;
    let mut told = Vec::new();
    for level in problem.levels() {
        let began = now;
        let mut free = vec![now; devices];
        let mut had = vec![0; devices];
        for component in &level {
            policy.ready(*component, now);
        }
        let mut running: Vec<Finished> = Vec::new();
        let mut left = level.len();
        while left > 0 {
            while let Some((device, component)) = next(policy, &running, devices, now) {
                had[device] += 1;
                let took = (seconds(device, had[device]) * 1e9) as Nanos;
                free[device] = free[device].max(now) + took;
                running.push(Finished {
                    component,
                    device,
                    dispatched: now,
                    ended: free[device],
                    written: 0,
                });
            }
            running.sort_by_key(|f| std::cmp::Reverse(f.ended));
            let finished = running.pop().expect("something runs");
            now = finished.ended;
            policy.finished(&finished);
            left -= 1;
        }
        told.push(((now - began) as f64 / 1e9, had));
    }
    told
}
