//! Comparisons of a simulated run with single devices.

use std::sync::atomic::AtomicBool;

use pdawl::balance::Strategy;
use pdawl::engine::corun::Tracing;
use pdawl::machine::DeviceKind;
use pdawl::report::run::corun::Single;

use super::Session;
use crate::failure::Failure;

impl Session {
    /// Runs the workload on single devices for comparison. Only simulations without
    /// faults do so: real devices take too long.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn compare(&mut self, strategy: &Strategy, stop: &AtomicBool) -> Result<(), Failure> {
        let data = match self.machine.simulation() {
            Some((_, sim)) if sim.faults.is_empty() => std::mem::replace(&mut sim.data, false),
            _ => return Ok(()),
        };
        let options = self.options;
        self.options.verify = false;
        self.options.trace = Tracing::None;
        for single in self.singles() {
            if single == *strategy {
                continue;
            }
            let outcome = self.run(&single, stop, &mut |_, _| {})?;
            if !outcome.interrupted {
                self.comparison.push(Single {
                    strategy: single.to_string(),
                    throughput: (self.workload.described())
                        .throughput(self.points(), outcome.seconds),
                });
            }
        }
        self.options = options;
        if let Some((_, sim)) = self.machine.simulation() {
            sim.data = data;
        }
        Ok(())
    }

    /// `cpu` and `gpu`, if the machine has such a device.
    fn singles(&self) -> Vec<Strategy> {
        let has = |cpu: bool| {
            let mut devices = self.machine.machine.devices.iter();
            devices.any(|d| (d.kind == DeviceKind::Cpu) == cpu)
        };
        [(Strategy::Cpu, has(true)), (Strategy::Gpu, has(false))]
            .into_iter()
            .filter_map(|(strategy, possible)| possible.then_some(strategy))
            .collect()
    }
}
