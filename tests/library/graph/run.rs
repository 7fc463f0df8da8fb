//! Runs a case, and checks what holds for every run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fastrand::Rng;
use pdawl_api::engine::graph::problem::problem;
use pdawl_api::engine::graph::{
    Control, GraphOutcome, GraphRunError, Options, PreparedGraph, abilities,
};
use pdawl_api::graph::KernelId;
use pdawl_api::policy::{
    Adaptive, Clustering, Eager, Heft, NamedPolicy, Policy, PolicyOptions, Problem,
};
use pdawl_api::runtime::{DeviceId, PeerPath, Runtime};

use super::random::Case;

/// The problem that policies are given: a case on these devices.
pub fn numbers(runtime: &dyn Runtime, case: &Case) -> Problem {
    let able = abilities(&case.graph, &case.components, runtime.devices());
    problem(&case.graph, &case.components, runtime, &able, &Vec::new())
}

/// Policies for tasks that share data.
const SHARING: [&str; 11] = [
    "eager",
    "dmdar",
    "dmdar+luf",
    "partition",
    "mhfp+luf",
    "darts",
    "darts+luf",
    "darts+luf+3inputs",
    "locality",
    "auto-fit",
    "round-robin",
];

/// A random policy; a clustering gets a random map.
pub fn policy(rng: &mut Rng, problem: Problem) -> Box<dyn Policy> {
    match rng.u8(0..8) {
        0 => Box::new(Eager::new(problem)),
        // The devices' windows load and store data.
        5.. => {
            let name = rng.choice(SHARING).expect("a name");
            let policy: NamedPolicy = name.parse().expect("a policy");
            let options = PolicyOptions {
                window: Some(rng.usize(1..6)),
                seed: rng.u64(..),
                ..PolicyOptions::default()
            };
            policy.policy(problem, &options).expect("no map is needed")
        }
        1 => Box::new(Heft::new(problem)),
        2 => Box::new(Adaptive::new(problem)),
        _ => {
            let map = (0..problem.tasks.len()).map(|component| {
                let able: Vec<usize> = (0..problem.devices.len())
                    .filter(|d| problem.able(component, *d))
                    .collect();
                able[rng.usize(0..able.len())]
            });
            let map = map.collect();
            Box::new(Clustering::new(problem, map).expect("a map"))
        }
    }
}

/// Random options for this number of devices. Half of them have no trace, so that
/// most kernels do not notify of their end.
pub fn options(rng: &mut Rng, devices: usize) -> Options {
    Options {
        queues: (0..devices).map(|_| rng.usize(1..6)).collect(),
        widths: (0..devices).map(|_| rng.usize(1..6)).collect(),
        trace: rng.bool(),
        keep: rng.bool(),
        trial: false,
    }
}

/// Chooses random ways of copies between devices: through host memory, known or not, or
/// directly.
pub fn connect(rng: &mut Rng, runtime: &mut dyn Runtime) {
    let has_own = |device: &usize| !runtime.devices()[*device].shares_host_memory;
    let own: Vec<usize> = (0..runtime.devices().len()).filter(has_own).collect();
    for from in &own {
        for to in own.iter().filter(|to| *to != from) {
            let path = PeerPath {
                bandwidth: 1e9,
                through_host: rng.bool(),
            };
            if rng.u8(0..3) > 0 {
                let set = runtime.set_peer_path(DeviceId(*from), DeviceId(*to), path);
                set.expect("devices of one context");
            }
        }
    }
}

/// Runs a plan once.
pub fn once(
    prepared: &mut PreparedGraph,
    runtime: &mut dyn Runtime,
    policy: &mut dyn Policy,
    options: &Options,
) -> Result<GraphOutcome, GraphRunError> {
    let stop = AtomicBool::new(false);
    let mut reported = Vec::new();
    let mut control = Control {
        stop: &stop,
        progress: &mut |done, all| reported.push((done, all)),
    };
    let outcome = prepared.run(runtime, policy, options, &mut control)?;
    let all = prepared.components().len();
    assert_eq!(reported.first(), Some(&(0, all)));
    assert_eq!(reported.last(), Some(&(all, all)));
    Ok(outcome)
}

/// Limits the memory of devices, or not: at least to what the largest component needs.
/// Returns the limit.
pub fn limit_memory(rng: &mut Rng, prepared: &mut PreparedGraph) -> u64 {
    if rng.bool() {
        return u64::MAX;
    }
    let limit = prepared.least_memory() * rng.u64(10..20) / 10;
    prepared.limit_memory(limit);
    limit
}

/// Asserts that no device has more memory than the limit.
pub fn check_memory(prepared: &PreparedGraph, limit: u64, devices: usize, what: &str) {
    for device in 0..devices {
        assert!(prepared.device_bytes(device) <= limit, "{what}");
    }
}

/// A case made ready to run.
pub fn prepared(runtime: &mut dyn Runtime, case: &Case) -> PreparedGraph {
    let (graph, components) = (Arc::clone(&case.graph), Arc::clone(&case.components));
    PreparedGraph::new(runtime, graph, components).expect("a prepared graph")
}

/// Asserts that every wanted datum equals the sequential result.
pub fn check_results(prepared: &PreparedGraph, runtime: &mut dyn Runtime, case: &Case, what: &str) {
    for (datum, expected) in &case.expected {
        let bytes = prepared.bytes(runtime, *datum).expect("its bytes");
        let found: &[u64] = bytemuck::cast_slice(bytes);
        let name = &case.graph.datum(*datum).name;
        assert_eq!(found, expected, "{name}, {what}");
    }
}

/// Asserts that each kernel ran once, after its predecessors, and each component
/// once, on one device. `slack` is the allowed difference of devices' clocks, in
/// nanoseconds. Without a trace only results show the order.
pub fn check_order(outcome: &GraphOutcome, options: &Options, case: &Case, slack: u64, what: &str) {
    let kernels = case.graph.kernels().len();
    if !options.trace {
        assert!(outcome.launches.is_empty(), "{what}");
        assert!(
            outcome.uses.iter().all(|u| u.busy_seconds.is_none()),
            "{what}"
        );
        assert!(outcome.kernels() >= kernels as u64, "{what}");
        assert_eq!(outcome.placements.len(), case.components.len(), "{what}");
        return;
    }
    let mut launched = vec![None; kernels];
    for launch in &outcome.launches {
        let before = launched[launch.kernel.0].replace(*launch);
        assert!(
            before.is_none() || !outcome.losses.is_empty(),
            "{what}: kernel {} twice",
            launch.kernel.0
        );
    }
    let missing = launched.iter().position(Option::is_none);
    assert_eq!(missing, None, "{what}: a kernel that never ran");
    let launched: Vec<_> = launched.into_iter().flatten().collect();
    // Data that only a lost device had are computed again, perhaps after their
    // readers have run.
    let first = |kernel: KernelId| {
        let launches = outcome.launches.iter().filter(|l| l.kernel == kernel);
        launches.map(|l| l.ended).min().expect("a launch")
    };
    for launch in &outcome.launches {
        for before in case.graph.predecessors(launch.kernel) {
            let ended = first(*before);
            assert!(
                ended <= launch.started + slack,
                "{what}: {before:?}, ended at {ended}, and {launch:?}"
            );
        }
    }
    let mut placed = vec![None; case.components.len()];
    for placement in &outcome.placements {
        let before = placed[placement.component].replace(placement.device);
        assert_eq!(before, None, "{what}: a component twice");
    }
    for launch in &launched {
        let component = case.components.of(launch.kernel);
        assert_eq!(placed[component], Some(launch.device), "{what}");
    }
    for (before, after) in &outcome.trace.flows {
        let spans = &outcome.trace.spans;
        assert!(
            spans[*before].ended <= spans[*after].started + slack,
            "{what}"
        );
        assert!(
            spans[*before].ended <= spans[*after].ready + slack,
            "{what}"
        );
    }
}
