//! Measuring kernels: the seconds of every kernel on every device, one by one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::outcome::GraphOutcome;
use super::problem::{KernelTimes, problem};
use super::{Control, GraphRunError, Options, PreparedGraph, abilities};
use crate::machine::Device;
use crate::policy::Clustering;
use crate::runtime::Runtime;
use crate::time::Nanos;
use pdawl_core::graph::{Components, Kernel, TaskGraph};

/// Measures every kernel by itself on every device of those `on` which it is wanted that can run
/// the whole graph.
/// The graph runs `times` times there, on one queue and after one run that is not
/// measured. The least time of a kernel counts, since disturbances only make it
/// longer. With `memory`, at most so many bytes of a device's own memory are used.
///
/// Kernels with the same codelet, units and cost get the mean of their times, so
/// that noise does not rank equal kernels.
///
/// When `stop` is set, kernels that were not measured by then have no times. The second result has
/// by device the seconds of this process for a command.
///
/// # Errors
/// As [`PreparedGraph::run`]. A device that is lost meanwhile has no times.
pub fn measure(
    runtime: &mut dyn Runtime,
    graph: &Arc<TaskGraph>,
    memory: Option<u64>,
    times: usize,
    on: &dyn Fn(&Device) -> bool,
    stop: &AtomicBool,
) -> Result<(KernelTimes, Vec<Option<f64>>), GraphRunError> {
    let devices = runtime.devices().to_vec();
    // One component, unless kernels are meant for different kinds of device, or not all
    // data have room at once.
    let bytes: u64 = graph.data().iter().map(|datum| datum.bytes).sum();
    let own = devices.iter().filter(|device| !device.shares_host_memory);
    let least = own.map(|device| device.memory).chain(memory).min();
    let whole = Components::by(graph, |_| ()).ok();
    let whole = whole.filter(|_| least.is_none_or(|least| bytes <= least));
    let whole = Arc::new(whole.unwrap_or_else(|| Components::single_kernels(graph)));
    let able = abilities(graph, &whole, &devices);
    let problem = problem(graph, &whole, runtime, &able, &Vec::new());
    // By device and kernel.
    let mut measured = vec![vec![None; graph.kernels().len()]; devices.len()];
    let mut commands: Vec<Option<f64>> = vec![None; devices.len()];
    for (device, measured) in measured.iter_mut().enumerate() {
        if !on(&devices[device]) {
            continue;
        }
        let Ok(mut policy) = Clustering::new(problem.clone(), vec![device; whole.len()]) else {
            continue;
        };
        let mut prepared = PreparedGraph::new(runtime, Arc::clone(graph), Arc::clone(&whole))?;
        if let Some(bytes) = memory {
            prepared.limit_memory(bytes);
        }
        let options = Options {
            trace: true,
            trial: true,
            ..Options::queues(vec![1; devices.len()])
        };
        for run in 0..=times.max(1) {
            let mut control = Control {
                stop,
                progress: &mut |_, _| {},
            };
            let outcome = prepared.run(runtime, &mut policy, &options, &mut control);
            let outcome = match outcome {
                Ok(outcome) if outcome.losses.is_empty() => outcome,
                Ok(_) | Err(GraphRunError::Lost { .. }) => break,
                Err(error) => {
                    prepared.release(runtime);
                    return Err(error);
                }
            };
            if outcome.interrupted {
                break;
            }
            if run == 0 {
                continue;
            }
            // A pool's commands may wait for each other.
            if !devices[device].shares_host_memory {
                let least = &mut commands[device];
                *least = least
                    .iter()
                    .copied()
                    .chain(command(&outcome))
                    .reduce(f64::min);
            }
            for launched in &outcome.launches {
                let seconds = launched.ended.saturating_sub(launched.started) as f64 / 1e9;
                let least = &mut measured[launched.kernel.0];
                *least = Some(least.map_or(seconds, |least: f64| least.min(seconds)));
            }
        }
        prepared.release(runtime);
    }
    let kernels = 0..graph.kernels().len();
    let mut times: KernelTimes = kernels
        .map(|kernel| measured.iter().map(|device| device[kernel]).collect())
        .collect();
    share(graph, &mut times);
    Ok((times, commands))
}

/// Seconds from one command to the next, as long as the device need not end the one for the other:
/// the median. A call of a library may take much longer.
fn command(outcome: &GraphOutcome) -> Option<f64> {
    let mut queued: Vec<Nanos> = outcome.trace.spans.iter().map(|span| span.queued).collect();
    queued.sort_unstable();
    let mut gaps: Vec<Nanos> = queued.windows(2).map(|two| two[1] - two[0]).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).map(|gap| *gap as f64 / 1e9)
}

/// Gives kernels that compute the same the mean of their times.
fn share(graph: &TaskGraph, times: &mut KernelTimes) {
    let alike = |one: &Kernel, other: &Kernel| {
        Arc::ptr_eq(&one.codelet, &other.codelet)
            && one.units == other.units
            && one.cost == other.cost
    };
    let kernels = graph.kernels();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let group = groups
            .iter_mut()
            .find(|group| alike(&kernels[group[0]], kernel));
        match group {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    for group in groups {
        for device in 0..times[group[0]].len() {
            let known: Vec<f64> = group.iter().filter_map(|k| times[*k][device]).collect();
            let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
            for kernel in &group {
                times[*kernel][device] = times[*kernel][device].map(|_| mean);
            }
        }
    }
}
