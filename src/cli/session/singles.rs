//! The strategies that the devices allow, and comparisons with single devices.

use std::sync::atomic::AtomicBool;

use pdawl::balance::Strategy;
use pdawl::engine::corun::Tracing;
use pdawl::machine::{Device, DeviceKind};
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

    /// The strategies that use one device: `cpu` or `gpu` for the only device of that
    /// kind, else a share of 1 for one device and 0 for the others.
    pub fn single_devices(&self) -> Vec<Strategy> {
        let devices = &self.machine.machine.devices;
        let is_cpu = |d: &Device| d.kind == DeviceKind::Cpu;
        let alone = |i: usize| {
            let kind = is_cpu(&devices[i]);
            match (devices.iter().filter(|d| is_cpu(d) == kind).count(), kind) {
                (1, true) => Strategy::Cpu,
                (1, false) => Strategy::Gpu,
                _ => Strategy::alone(i, devices.len()),
            }
        };
        (0..devices.len()).map(alone).collect()
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

    /// The strategies of a comparison on these devices.
    pub fn strategies(&self) -> Vec<Strategy> {
        let mut all = self.singles();
        for single in self.single_devices() {
            if !all.contains(&single) {
                all.push(single);
            }
        }
        all.extend([Strategy::Guided, Strategy::Dawl]);
        all.extend(self.has_model().then_some(Strategy::Pdawl));
        all.push(Strategy::Oracle);
        all
    }
}
