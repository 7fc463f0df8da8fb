//! The best clustering of a transformer by measuring, as in the paper's
//! experiment 1.

use super::{Bout, Contender, ExperimentError};
use crate::engine::graph::Control;
use crate::machine::DeviceKind;
use crate::policy::{Configuration, Search, Space};
use crate::runtime::Runtime;

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    pub best: Configuration,
    /// The median of its runs.
    pub seconds: f64,
    /// Configurations that were measured.
    pub tried: usize,
    /// Cut short on request: the best of what was tried until then.
    pub interrupted: bool,
}

/// The paper's space, mc = (q_gpu, q_cpu, h_cpu), as far as the devices go: up
/// to `queues` queues a GPU and two a CPU, whose pool computes one kernel after
/// the other with all its cores; up to `on_cpu` heads on CPUs, and all of them
/// if there is no GPU. A head has a queue for itself or spreads over all.
pub fn space(runtime: &dyn Runtime, heads: usize, queues: usize, on_cpu: usize) -> Space {
    let kinds = || runtime.devices().iter().map(|device| device.kind);
    let gpus = kinds().any(|kind| kind != DeviceKind::Cpu);
    let cpus = kinds().any(|kind| kind == DeviceKind::Cpu);
    Space {
        q_gpu: match gpus {
            true => (1..=queues.max(1)).collect(),
            false => vec![1],
        },
        q_cpu: match cpus {
            true => vec![1, 2],
            false => vec![1],
        },
        h_cpu: match (cpus, gpus) {
            (true, true) => (0..=on_cpu.min(heads)).collect(),
            (true, false) => vec![heads],
            (false, _) => vec![0],
        },
        widths: vec![1, usize::MAX],
    }
}

impl Bout {
    /// Measures every configuration of a space, and the better ones again in
    /// later rounds.
    ///
    /// # Errors
    /// As [`Bout::run`].
    pub fn search(
        &mut self,
        runtime: &mut dyn Runtime,
        space: &Space,
        rounds: usize,
        control: &mut Control,
    ) -> Result<Option<Searched>, ExperimentError> {
        let configurations = space.configurations(self.heads());
        if let Some(first) = configurations.first() {
            // Kernels are built, and memory touched, before anything counts.
            self.run(runtime, Contender::Clustering(*first), false, control)?;
        }
        let all = configurations.len();
        let mut search = Search::new(configurations, rounds);
        let (mut done, mut interrupted) = (0, false);
        while let Some(configuration) = search.next() {
            let mut quiet = Control {
                stop: control.stop,
                progress: &mut |_, _| {},
            };
            let contender = Contender::Clustering(configuration);
            let outcome = self.run(runtime, contender, false, &mut quiet)?;
            if outcome.interrupted {
                interrupted = true;
                break;
            }
            search.tell(outcome.seconds);
            done += 1;
            (control.progress)(done.min(all), all);
        }
        let tried = search.results().len();
        Ok(search.best().map(|(best, seconds)| Searched {
            best,
            seconds,
            tried,
            interrupted,
        }))
    }
}
