//! A workload over spaces on one machine by itself, run once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::cluster::record::ClusterOutcome;
use pdawl_api::engine::cluster::{Alone, ClusterError, Control};
use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::engine::graph::{
    Control as GraphControl, Division, GraphOutcome, Options, Repetition,
};
use pdawl_api::graph::Components;
use pdawl_api::policy::{NamedPolicy, PolicyOptions};
use pdawl_api::runtime::Runtime;

/// Runs it by a policy, a window and the most bytes of each device's own memory.
pub fn run_alone(
    alone: &Alone,
    runtime: &mut dyn Runtime,
    seconds: &KernelSeconds,
    (policy, window, memory): (&str, usize, Option<u64>),
    control: &mut Control,
) -> Result<(ClusterOutcome, GraphOutcome), ClusterError> {
    let policy: NamedPolicy = policy.parse().expect("a policy");
    let kernels = Arc::new(Components::single_kernels(alone.graph()));
    let times = seconds.of(alone.graph());
    let mut division = Division::new(runtime, alone.graph(), kernels, &times, memory)?;
    let of_policy = PolicyOptions {
        window: Some(window),
        seed: 1,
        ..PolicyOptions::default()
    };
    let make = |problem| policy.policy(problem, &of_policy);
    let options = Options::of_tasks(alone.graph(), runtime.devices());
    let stop = AtomicBool::new(false);
    let mut of_graph = GraphControl {
        stop: &stop,
        progress: &mut |_, _| {},
    };
    let ran = division.repeat(runtime, make, &options, &Repetition::ONCE, &mut of_graph);
    let finished = match &ran {
        Ok(_) => alone.finish(&division.prepared, runtime, true, control),
        Err(_) => Ok(Default::default()),
    };
    division.release(runtime);
    let ran = ran?.last;
    Ok((alone.outcome("the test", &ran, finished?), ran))
}
