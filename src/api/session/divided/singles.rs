//! Comparisons of a simulated run with single devices.

use std::sync::atomic::AtomicBool;

use super::{Chosen, DividedRun, Error};
use crate::balance::{Setup, Strategy};
use crate::engine::corun::{Options, Tracing};
use crate::machine::DeviceKind;
use crate::report::run::Details;
use crate::report::run::corun::Single;
use crate::session::Run;

impl DividedRun<'_> {
    /// Runs the workload on the CPU and on the GPUs alone, and adds what they reach to the report
    /// of `run`. Only simulations without faults do so: real devices take too long.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn compare(&mut self, run: &mut Run, stop: &AtomicBool) -> Result<(), Error> {
        let faults = !self.divided.faults.is_empty();
        let data = match self.session.devices.simulation() {
            Some((_, sim)) if !faults => std::mem::replace(&mut sim.data, false),
            _ => return Ok(()),
        };
        let options = Options {
            verify: false,
            trace: Tracing::None,
            each_step: None,
            ..self.options
        };
        let points = u64::from(self.divided.supersteps.steps());
        let described = self.divided.described();
        let points = points.saturating_mul(described.points());
        for single in self.singles() {
            let make = |setup: &Setup| Ok(single.build(setup)?);
            let outcome = self.corun(make, options, None, stop, &mut |_, _| {})?;
            if let (false, Details::CoRun(of)) = (outcome.interrupted, run.details_mut()) {
                of.comparison.push(Single {
                    strategy: single.to_string(),
                    throughput: described.throughput(points, outcome.seconds),
                });
            }
        }
        if let Some((_, sim)) = self.session.devices.simulation() {
            sim.data = data;
        }
        Ok(())
    }

    /// `cpu` and `gpu`, if there is such a device, but for the strategy of the run itself.
    fn singles(&self) -> Vec<Strategy> {
        let has = |cpu: bool| {
            let mut devices = self.devices.iter();
            devices.any(|device| (device.kind == DeviceKind::Cpu) == cpu)
        };
        let possible = [(Strategy::Cpu, has(true)), (Strategy::Gpu, has(false))];
        let singles = possible.into_iter().filter_map(|(single, has)| {
            let is_own = matches!(&self.chosen, Chosen::By(own) if *own == single);
            (has && !is_own).then_some(single)
        });
        singles.collect()
    }
}
