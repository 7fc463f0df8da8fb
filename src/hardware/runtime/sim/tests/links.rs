//! The host's bus and the direct links, by the demands that the devices' model makes.

use std::collections::HashMap;

use super::*;
use crate::runtime::sim::options::Selected;
use crate::runtime::sim::schedule::Demand;

/// Bytes of 3840 rows of 960 f32.
const BLOCK: u64 = 3840 * 960 * 4;

/// A machine's schedule and devices, without drivers and memory.
struct Model {
    schedule: Schedule,
    devices: Vec<DeviceModel>,
}

impl Model {
    /// The GPUs of a shipped machine.
    fn gpus(name: &str) -> Self {
        let machine = machine(name);
        let all: Vec<Selected> = (0..machine.devices.len()).map(Selected::Device).collect();
        let mut schedule = Schedule::default();
        let devices = device_model::add(&machine, &all, &mut schedule);
        Self { schedule, devices }
    }

    fn load(&self, device: usize) -> Demand {
        let demand = self.devices[device].transfer(CommandKind::Write, BLOCK, 1.0);
        demand.expect("a link")
    }

    fn store(&self, device: usize) -> Demand {
        let demand = self.devices[device].transfer(CommandKind::Read, BLOCK, 1.0);
        demand.expect("a link")
    }

    fn peer_copy(&self, from: usize, to: usize) -> Demand {
        let demand = self.devices[from].peer_copy(to, BLOCK, 1.0);
        demand.expect("a direct link")
    }

    /// Nanoseconds from now until each of these jobs ends, begun together.
    fn run<const N: usize>(&mut self, jobs: [Demand; N]) -> [Nanos; N] {
        let ids = jobs.map(|demand| self.schedule.submit(0, demand, &[], false));
        let mut ends = HashMap::new();
        while let Some(at) = self.schedule.next_change() {
            self.schedule.advance(at);
            ends.extend(
                self.schedule
                    .take_ended()
                    .map(|ended| (ended.job, ended.at)),
            );
        }
        ids.map(|id| ends[&id])
    }
}

#[track_caller]
fn assert_ends<const N: usize>(ends: [Nanos; N], expected: [f64; N]) {
    for (end, expected) in ends.into_iter().zip(expected) {
        assert_near(end as f64 * 1e-9, expected, 1e-6);
    }
}

/// Seconds of a transfer at so many bytes a second, latency included.
fn at(latency: f64, rate: f64) -> f64 {
    latency + BLOCK as f64 / rate
}

#[test]
fn one_transfer_is_limited_by_its_link_and_the_bus() {
    for (way, rate) in [
        (Model::load as fn(&Model, usize) -> Demand, 10.8e9),
        (Model::store, 12.39e9),
    ] {
        let mut model = Model::gpus("v100x1");
        let alone = way(&model, 0);
        assert_ends(model.run([alone]), [at(8e-6, rate)]);
    }
}

#[test]
fn four_loads_share_the_bus() {
    let mut model = Model::gpus("v100x4");
    let loads = [0, 1, 2, 3].map(|gpu| model.load(gpu));
    let together = at(8e-6, 12.39e9 / 4.0);
    assert_near(together, 4.0 * 1.19e-3, 0.003);
    assert_ends(model.run(loads), [together; 4]);
}

#[test]
fn both_directions_share_the_bus() {
    let mut model = Model::gpus("v100x2");
    let ends = model.run([model.load(0), model.store(0), model.load(1), model.store(1)]);
    let all = at(8e-6, 12.39e9 / 4.0);
    assert_near(
        ends.into_iter().max().expect("ends") as f64 * 1e-9,
        all,
        1e-3,
    );
}

#[test]
fn a_direct_copy_neither_slows_loads_nor_is_slowed() {
    let mut model = Model::gpus("v100x4");
    let jobs = [
        model.peer_copy(0, 1),
        model.peer_copy(1, 0),
        model.load(0),
        model.load(1),
        model.load(2),
        model.load(3),
    ];
    let direct = at(10e-6, 24e9);
    let load = at(8e-6, 12.39e9 / 4.0);
    assert_ends(model.run(jobs), [direct, direct, load, load, load, load]);
}

#[test]
fn copies_over_one_direct_link_take_turns_and_have_no_effect_on_other_pairs() {
    let mut model = Model::gpus("v100x4");
    let jobs = [
        model.peer_copy(0, 1),
        model.peer_copy(0, 1),
        model.peer_copy(0, 2),
    ];
    let one = at(10e-6, 24e9);
    assert_ends(model.run(jobs), [one, 2.0 * one, one]);
}

#[test]
fn direct_links_are_those_of_the_file() {
    let mut machine = machine("v100x2");
    let gpus = [Selected::Device(1), Selected::Pool(4), Selected::Device(0)];
    let linked = |machine: &MachineFile, selected: &[Selected]| {
        let devices = device_model::add(machine, selected, &mut Schedule::default());
        let pairs =
            (0..devices.len()).flat_map(|from| (0..devices.len()).map(move |to| (from, to)));
        let is_linked =
            |(from, to): &(usize, usize)| devices[*from].peer_copy(*to, 1, 1.0).is_some();
        pairs.filter(is_linked).collect::<Vec<_>>()
    };
    assert_eq!(linked(&machine, &gpus), [(0, 2), (2, 0)]);
    assert_eq!(linked(&machine, &gpus[..2]), []);
    machine.peers.pop();
    assert_eq!(
        linked(&machine, &gpus),
        [(2, 0)],
        "one direction, from gpu0"
    );
}

#[test]
fn a_slowed_device_slows_its_direct_links() {
    let mut model = Model::gpus("v100x2");
    model.devices[0].slow(2.0, model.schedule.fluid());
    let jobs = [model.peer_copy(0, 1), model.peer_copy(1, 0)];
    assert_ends(model.run(jobs), [at(10e-6, 12e9), at(10e-6, 24e9)]);
}

#[test]
fn a_task_of_the_paper_takes_553_us() {
    let cost = Cost {
        flops: 2.0 * 960.0 * 960.0 * 3840.0,
        bytes: 2.0 * BLOCK as f64 + 960.0 * 960.0 * 4.0,
    };
    let mut codelet = (*increment()).clone();
    if let Some(kernel) = &mut codelet.opencl {
        kernel.fp64 = false;
    }
    let mut model = Model::gpus("v100x1");
    let kernel = model.devices[0].launch(
        &Launch {
            codelet: Arc::new(codelet),
            units: 0..1,
            args: Vec::new(),
            cost,
        },
        1.0,
    );
    assert_ends(model.run([kernel]), [553e-6]);
}
