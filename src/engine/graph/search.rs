//! Trying configurations of a clustering, and keeping the best.

use super::{Control, GraphRunError, Options, Plan};
use crate::machine::DeviceKind;
use crate::policy::{Clustering, Configuration, Problem, Search};
use crate::runtime::Runtime;
use std::sync::atomic::Ordering;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The best, and its median seconds; `None` if nothing could run, or the
    /// search was stopped before anything had.
    pub best: Option<(Configuration, f64)>,
    /// Every configuration that was tried, with its median seconds.
    pub all: Vec<(Configuration, f64)>,
}

/// Options of a run by a configuration.
pub fn options(configuration: &Configuration, problem: &Problem, base: &Options) -> Options {
    let by_kind = |gpu: usize, cpu: usize| {
        let kinds = problem.spots.iter().map(|spot| spot.kind);
        kinds
            .map(|kind| if kind == DeviceKind::Cpu { cpu } else { gpu })
            .collect()
    };
    Options {
        queues: by_kind(configuration.q_gpu, configuration.q_cpu),
        widths: by_kind(configuration.width, configuration.q_cpu),
        ..base.clone()
    }
}

/// The policy of a configuration.
///
/// # Errors
/// When a component can run nowhere.
pub fn policy(
    configuration: &Configuration,
    problem: &Problem,
) -> Result<Clustering, GraphRunError> {
    let map = Clustering::map(problem, configuration.h_cpu)?;
    Ok(Clustering::new(problem.clone(), map)?)
}

/// Runs the graph as the search says, until that is over or `control.stop` is
/// set. Each configuration runs once more before it is first timed, so that
/// no setup is counted. `control.progress` is told the runs so far and 0.
///
/// # Errors
/// As [`Plan::run`]. A configuration whose memory does not fit counts as one
/// that cannot run.
pub fn search(
    runtime: &mut dyn Runtime,
    plan: &mut Plan,
    problem: &Problem,
    mut search: Search,
    base: &Options,
    control: &mut Control,
) -> Result<Found, GraphRunError> {
    let mut warm: Vec<Configuration> = Vec::new();
    let mut runs = 0;
    while let Some(configuration) = search.propose() {
        if control.stop.load(Ordering::Relaxed) {
            break;
        }
        let options = options(&configuration, problem, base);
        let mut policy = policy(&configuration, problem)?;
        let mut quiet = Control {
            stop: control.stop,
            progress: &mut |_, _| {},
        };
        let mut once = || plan.run(runtime, &mut policy, &options, &mut quiet);
        if !warm.contains(&configuration) {
            match once() {
                Ok(_) => warm.push(configuration),
                Err(GraphRunError::Memory { .. }) => {
                    search.tell(f64::INFINITY);
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        let outcome = once()?;
        if outcome.interrupted {
            break;
        }
        search.tell(outcome.seconds);
        runs += 1;
        (control.progress)(runs, 0);
    }
    Ok(Found {
        best: search.best(),
        all: search.results(),
    })
}
