//! The seconds of tasks on each device, measured on a few of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter::repeat;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::problem::KernelTimes;
use super::{GraphRunError, times};
use crate::codelet::{Cost, Name};
use crate::machine::Device;
use crate::policy::Problem;
use crate::runtime::Runtime;
use pdawl_core::graph::{Kernel, TaskGraph};

/// Runs in which the sample is measured.
const RUNS: usize = 3;

/// The seconds of kinds of kernels by device.
#[derive(Clone, Debug, Default)]
pub struct KernelSeconds {
    kinds: Vec<Kind>,
    /// By device, of this process for a command.
    commands: Vec<Option<f64>>,
}

/// Kernels that take the same time.
#[derive(Clone, Debug)]
struct Kind {
    /// The graph in which they were measured: kernels of another one have tiles of another length.
    sample: usize,
    codelet: Name,
    units: Range<u64>,
    cost: Cost,
    /// By device; `None` where it cannot run or was not measured.
    seconds: Vec<Option<f64>>,
}

impl Kind {
    fn is_of(&self, kernel: &Kernel) -> bool {
        self.codelet == kernel.codelet.name
            && self.units == kernel.units
            && self.cost == kernel.cost
    }
}

impl KernelSeconds {
    /// Measures the kernels of a graph.
    ///
    /// # Errors
    /// As [`times::measure`].
    pub fn measure(
        runtime: &mut dyn Runtime,
        graph: &Arc<TaskGraph>,
        stop: &AtomicBool,
    ) -> Result<Self, GraphRunError> {
        let mut measured = Self::default();
        measured.learn(runtime, graph, &|_| true, stop)?;
        Ok(measured)
    }

    /// Measures the kernels of another graph, too, on these devices, unless they are known.
    ///
    /// # Errors
    /// As [`times::measure`].
    pub fn learn(
        &mut self,
        runtime: &mut dyn Runtime,
        graph: &Arc<TaskGraph>,
        on: &dyn Fn(&Device) -> bool,
        stop: &AtomicBool,
    ) -> Result<(), GraphRunError> {
        let wanted: Vec<bool> = runtime.devices().iter().map(on).collect();
        let is_known = |kernel| {
            let known = self.alike(kernel);
            let known = known.iter().flat_map(|seconds| seconds.iter().zip(&wanted));
            let mut known = known.peekable();
            known.peek().is_some() && known.all(|(seconds, wanted)| seconds.is_some() || !wanted)
        };
        if graph.kernels().iter().all(is_known) {
            return Ok(());
        }
        let (times, commands) = times::measure(runtime, graph, None, RUNS, on, stop)?;
        self.commands.resize(commands.len(), None);
        for (known, command) in self.commands.iter_mut().zip(commands) {
            *known = command.or(*known);
        }
        let sample = self.kinds.last().map_or(0, |kind| kind.sample + 1);
        for (kernel, seconds) in graph.kernels().iter().zip(times) {
            self.kinds.push(Kind {
                sample,
                codelet: kernel.codelet.name.clone(),
                units: kernel.units.clone(),
                cost: kernel.cost,
                seconds,
            });
        }
        Ok(())
    }

    /// Has a problem's commands take as long as they did.
    pub fn set_commands(&self, problem: &mut Problem) {
        for (device, command) in problem.devices.iter_mut().zip(&self.commands) {
            device.costs.enqueue = command.unwrap_or(device.costs.enqueue);
        }
    }

    /// Whether all kernels of a graph were measured.
    pub fn knows(&self, graph: &TaskGraph) -> bool {
        let mut kernels = graph.kernels().iter();
        kernels.all(|kernel| self.alike(kernel).is_some())
    }

    /// The times of a graph's kernels. A kernel of a cost that was not measured gets the
    /// times of its codelet, scaled by operations, and so do devices on which it was not.
    pub fn of(&self, graph: &TaskGraph) -> KernelTimes {
        let kernels = graph.kernels().iter();
        // Those first that have the most kinds in common: tiles are as long there. Later ones have
        // longer tiles.
        let is_here = |kind: &Kind| kernels.clone().any(|kernel| kind.is_of(kernel));
        let mut samples: BTreeMap<usize, usize> = BTreeMap::new();
        for kind in &self.kinds {
            *samples.entry(kind.sample).or_default() += usize::from(is_here(kind));
        }
        let mut samples: Vec<(usize, usize)> = samples.into_iter().collect();
        samples.sort_by_key(|(sample, common)| Reverse((*common, *sample)));
        kernels
            .map(|kernel| {
                let measured = self.alike(kernel).unwrap_or_default();
                if !measured.is_empty() && measured.iter().all(Option::is_some) {
                    return measured;
                }
                let measured = measured.into_iter().chain(repeat(None));
                let both = measured.zip(self.scaled(kernel, &samples));
                both.map(|(measured, scaled)| measured.or(scaled)).collect()
            })
            .collect()
    }

    /// The measured times of kernels like this one.
    pub fn alike(&self, kernel: &Kernel) -> Option<Vec<Option<f64>>> {
        let kinds = self.kinds.iter().filter(|kind| kind.is_of(kernel));
        kinds.map(|kind| kind.seconds.clone()).reduce(|one, other| {
            let both = one.into_iter().zip(other);
            both.map(|(one, other)| one.or(other)).collect()
        })
    }

    /// The seconds between those of the least and the most costly kernel of its codelet, by
    /// operations: a part of them does not depend on the size. These are of the first of the samples
    /// in which a device was measured.
    fn scaled(&self, kernel: &Kernel, samples: &[(usize, usize)]) -> Vec<Option<f64>> {
        let same = || (self.kinds.iter()).filter(|kind| kind.codelet == kernel.codelet.name);
        let devices = same().map(|kind| kind.seconds.len()).max().unwrap_or(0);
        let flops = kernel.cost.flops;
        let measured = |device: usize, sample: usize| {
            let of_sample = same().filter(|kind| kind.sample == sample);
            let seconds =
                of_sample.filter_map(|kind| Some((kind.cost.flops, kind.seconds[device]?)));
            let mut seconds: Vec<(f64, f64)> = seconds.collect();
            seconds.sort_by(|one, other| one.0.total_cmp(&other.0));
            Some((*seconds.first()?, *seconds.last()?))
        };
        (0..devices)
            .map(|device| {
                let mut samples = samples.iter();
                let of = samples.find_map(|(sample, _)| measured(device, *sample));
                let ((least, short), (most, long)) = of?;
                let by_rate = long * flops / most;
                if flops >= most || least == most || long <= short {
                    return (most > 0.0).then_some(by_rate);
                }
                let each = (long - short) / (most - least);
                Some((short + each * (flops - least)).max(by_rate))
            })
            .collect()
    }
}
