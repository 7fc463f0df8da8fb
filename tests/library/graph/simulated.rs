//! Properties of random graphs in the simulator, which computes their data.

use std::ops::Range;

use fastrand::Rng;
use pdawl_api::machine::{MachineFile, MachineStore, PeerSpec};
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};

use super::random::{Case, case};
use super::run::{
    check_memory, check_order, check_results, limit_memory, numbers, once, options, policy,
    prepared,
};

/// A host with many cores and two GPUs.
pub fn machine() -> MachineFile {
    let store = MachineStore::at("/nonexistent");
    let mut machine = store.find("k20-40").expect("a shipped machine");
    let mut second = machine.devices[0].clone();
    second.name = "gpu1".into();
    machine.devices.push(second);
    machine.peers = [("gpu0", "gpu1"), ("gpu1", "gpu0")]
        .map(|(from, to)| PeerSpec {
            from: from.to_owned(),
            to: to.to_owned(),
            bandwidth: 24e9,
            latency_ns: 10_000,
            through_host: false,
        })
        .to_vec();
    machine
}

/// The same, with a way between the GPUs that depends on the seed: through host memory,
/// known or not, or direct, and not always the same in both directions.
pub fn machine_of(seed: u64) -> MachineFile {
    let mut machine = machine();
    machine.peers[0].through_host = seed % 2 == 1;
    machine.peers[1].through_host = seed % 3 == 1;
    if seed % 5 == 1 {
        machine.peers.pop();
    }
    machine
}

/// One to four devices: groups of cores, and GPUs.
pub fn devices(rng: &mut Rng) -> Vec<SimDevice> {
    let mut all = vec![
        SimDevice::Named("gpu0".into()),
        SimDevice::Host { cores: Some(2) },
        SimDevice::Named("gpu1".into()),
        SimDevice::Host { cores: Some(3) },
    ];
    rng.shuffle(&mut all);
    all.truncate(rng.usize(1..=4));
    all
}

/// The seeds to test: some hundreds, or `FIRST..END` from GRAPH_SEEDS to search
/// longer or to repeat one.
pub fn seeds() -> Range<u64> {
    let given = std::env::var("GRAPH_SEEDS").ok();
    let given = given.and_then(|text| {
        let (first, end) = text.split_once("..")?;
        Some(first.parse().ok()?..end.parse().ok()?)
    });
    given.unwrap_or(0..400)
}

fn seeded(seed: u64) -> (Rng, Sim, Case) {
    let mut rng = Rng::with_seed(seed);
    let sim = Sim::new(
        &machine_of(seed),
        SimOptions {
            seed,
            noise: Some(0.3),
            data: true,
            graphs: rng.bool(),
            devices: Some(devices(&mut rng)),
            ..SimOptions::default()
        },
    );
    let case = case(&mut rng, 14);
    (rng, sim.expect("a simulator"), case)
}

/// Under every policy, on one to four devices with one to five queues, a graph's
/// results equal the sequential ones. One plan runs three times, since it keeps its
/// memory, perhaps data on devices, and command graphs.
#[test]
fn random_graphs_are_right_and_in_order() {
    for seed in seeds() {
        let (mut rng, mut sim, case) = seeded(seed);
        let mut policy = policy(&mut rng, numbers(&sim, &case));
        let options = options(&mut rng, sim.devices().len());
        let mut prepared = prepared(&mut sim, &case);
        let limit = limit_memory(&mut rng, &mut prepared);
        for run in 0..3 {
            let what = format!(
                "seed {seed}, run {run}, {}, {options:?}, {limit} bytes",
                policy.name()
            );
            let outcome = once(&mut prepared, &mut sim, policy.as_mut(), &options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(outcome.losses.is_empty() && !outcome.interrupted, "{what}");
            check_order(&outcome, &options, &case, 0, &what);
            check_results(&prepared, &mut sim, &case, &what);
            check_memory(&prepared, limit, sim.devices().len(), &what);
        }
        prepared.release(&mut sim);
    }
}
