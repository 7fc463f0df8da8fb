//! Seconds of every kernel on every device, measured one by one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::numbers::{Times, problem};
use super::{Control, GraphRunError, Options, Plan, abilities};
use crate::graph::{Components, Kernel, TaskGraph};
use crate::policy::Clustering;
use crate::runtime::Runtime;

/// Measures every kernel by itself on every device that can run the whole graph:
/// the graph runs `times` times there, on one queue and after one run that does
/// not count, and a kernel's least time is taken, since only what comes in
/// between makes it longer.
///
/// Kernels with one codelet, the same units and the same cost share what is
/// measured, so that noise does not rank equal kernels.
///
/// When `stop` is set, what has not been measured by then has no times.
///
/// # Errors
/// As [`Plan::run`]. A device that is lost on the way has no times.
pub fn measure(
    runtime: &mut dyn Runtime,
    graph: &Arc<TaskGraph>,
    times: usize,
    stop: &AtomicBool,
) -> Result<Times, GraphRunError> {
    let devices = runtime.devices().to_vec();
    // One component, unless kernels are meant for different kinds of device.
    let whole = Components::by(graph, |_| ());
    let whole = Arc::new(whole.unwrap_or_else(|_| Components::single_kernels(graph)));
    let able = abilities(graph, &whole, &devices);
    let numbers = problem(graph, &whole, &devices, &able, &Vec::new());
    // By device and kernel.
    let mut measured = vec![vec![None; graph.kernels().len()]; devices.len()];
    for (device, measured) in measured.iter_mut().enumerate() {
        let Ok(mut policy) = Clustering::new(numbers.clone(), vec![device; whole.len()]) else {
            continue;
        };
        let mut plan = Plan::new(runtime, Arc::clone(graph), Arc::clone(&whole))?;
        let options = Options {
            trace: true,
            ..Options::queues(vec![1; devices.len()])
        };
        for run in 0..=times.max(1) {
            let mut control = Control {
                stop,
                progress: &mut |_, _| {},
            };
            let outcome = plan.run(runtime, &mut policy, &options, &mut control);
            let outcome = match outcome {
                Ok(outcome) if outcome.losses.is_empty() => outcome,
                Ok(_) | Err(GraphRunError::Lost { .. }) => break,
                Err(error) => {
                    plan.release(runtime);
                    return Err(error);
                }
            };
            if outcome.interrupted {
                break;
            }
            if run == 0 {
                continue;
            }
            for launched in &outcome.launches {
                let seconds = launched.ended.saturating_sub(launched.started) as f64 / 1e9;
                let least = &mut measured[launched.kernel.0];
                *least = Some(least.map_or(seconds, |least: f64| least.min(seconds)));
            }
        }
        plan.release(runtime);
    }
    let kernels = 0..graph.kernels().len();
    let mut times: Times = kernels
        .map(|kernel| measured.iter().map(|device| device[kernel]).collect())
        .collect();
    share(graph, &mut times);
    Ok(times)
}

/// Gives kernels that compute the same the mean of what was measured of them.
fn share(graph: &TaskGraph, times: &mut Times) {
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
