//! The search for the best clustering, by running configurations.

use super::{Control, GraphRunError, Options, PreparedGraph};
use crate::machine::DeviceKind;
use crate::policy::{Clustering, Configuration, Problem, Search};
use crate::runtime::Runtime;
use std::sync::atomic::Ordering;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The best configuration and its median seconds; `None` if none could run, or
    /// the search was stopped before any had.
    pub best: Option<(Configuration, f64)>,
    /// Every configuration that ran, with its median seconds.
    pub all: Vec<(Configuration, f64)>,
}

/// The options of a run by a configuration.
pub fn options(configuration: &Configuration, problem: &Problem, base: &Options) -> Options {
    let by_kind = |gpu: usize, cpu: usize| {
        let kinds = problem.devices.iter().map(|spot| spot.kind);
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

/// Runs the graph as the search proposes, until the search is over or
/// `control.stop` is set. Each configuration has one more run before its first
/// timed one, so that no setup is counted. `control.progress` receives the runs so
/// far, and 0.
///
/// # Errors
/// As [`PreparedGraph::run`]. A configuration whose memory does not fit is not an
/// error; it counts as infinitely slow.
pub fn search(
    runtime: &mut dyn Runtime,
    prepared: &mut PreparedGraph,
    problem: &Problem,
    mut search: Search,
    base: &Options,
    control: &mut Control,
) -> Result<SearchResult, GraphRunError> {
    let base = &Options {
        trial: true,
        ..base.clone()
    };
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
        let mut once = || prepared.run(runtime, &mut policy, &options, &mut quiet);
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
    Ok(SearchResult {
        best: search.best(),
        all: search.results(),
    })
}
