//! SCHED_AUTO_STATIC: a map from the rates of devices alone.

use crate::machine::MachineFile;

/// What limits the kernels of a queue, as its user says (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// SCHED_COMPUTE_BOUND: the instruction rate.
    Compute,
    /// SCHED_MEM_BOUND: the bandwidth of the device's memory.
    Memory,
    /// SCHED_IO_BOUND: the bandwidth of the link to the host.
    Io,
}

/// The rates of a device: the static profile of section 5.1.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceRates {
    /// Single-precision operations a second; 0 if unknown.
    pub flops: f64,
    /// Bytes a second of a copy within its memory.
    pub memory: f64,
    /// Bytes a second from the host's memory, and to it. A device that computes there has
    /// the bandwidth of that memory.
    pub h2d: f64,
    pub d2h: f64,
}

impl DeviceRates {
    /// The rates of the host's cores and of every other device of a machine file, by name.
    /// The cores are called `host`.
    ///
    /// A machine file is the profile cache of section 5.1.1: `pdawl machine save` measures
    /// it once, and its fingerprint tells whether it describes this machine.
    pub fn of(machine: &MachineFile) -> Vec<(String, Self)> {
        let host = &machine.host;
        let cores = Self {
            flops: 2.0 * host.flops.unwrap_or(0.0),
            memory: host.memory_bandwidth,
            h2d: host.memory_bandwidth,
            d2h: host.memory_bandwidth,
        };
        let devices = machine.devices.iter().map(|device| {
            let link = device.link.as_ref();
            let rates = Self {
                flops: device.flops_f32.unwrap_or(0.0),
                memory: device.memory_bandwidth,
                h2d: link.map_or(device.memory_bandwidth, |link| link.h2d),
                d2h: link.map_or(device.memory_bandwidth, |link| link.d2h),
            };
            (device.name.clone(), rates)
        });
        std::iter::once(("host".to_owned(), cores))
            .chain(devices)
            .collect()
    }

    /// The rate that matters for a hint.
    pub fn rate(&self, hint: Hint) -> f64 {
        match hint {
            Hint::Compute => self.flops,
            Hint::Memory => self.memory,
            // As many bytes each way: the mean time decides.
            Hint::Io => 2.0 / (1.0 / self.h2d + 1.0 / self.d2h),
        }
    }
}

/// A queue with SCHED_AUTO_STATIC, or one with SCHED_OFF.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticQueue {
    pub hint: Hint,
    /// By device: whether it can run the queue's kernels.
    pub able: Vec<bool>,
    /// The device of a queue with SCHED_OFF.
    pub pinned: Option<usize>,
}

/// By queue: its device; `None` if no device can run it.
///
/// Section 5.2: "The MultiCL runtime uses the command queue properties (compute intensive,
/// memory intensive, or I/O intensive) as the selection criterion and chooses the best
/// available device for the given command queue." Queues count as equal work. Each goes,
/// in order, to the device on which it and the queues there end first by the rates, so
/// devices get queues in proportion to their rates. Pinned queues are counted first.
/// Where no device's rate is known, devices count as equally fast.
pub fn static_map(queues: &[StaticQueue], devices: &[DeviceRates]) -> Vec<Option<usize>> {
    let seconds = |queue: &StaticQueue, device: usize| {
        let best = devices
            .iter()
            .map(|d| d.rate(queue.hint))
            .fold(0.0, f64::max);
        match best > 0.0 {
            true => best / devices[device].rate(queue.hint),
            false => 1.0,
        }
    };
    let mut load = vec![0.0; devices.len()];
    for queue in queues {
        if let Some(device) = queue.pinned.filter(|device| *device < devices.len()) {
            load[device] += seconds(queue, device);
        }
    }
    let mut choose = |queue: &StaticQueue| {
        if queue.pinned.is_some() {
            return queue.pinned.filter(|device| *device < devices.len());
        }
        let able = (0..devices.len()).filter(|d| queue.able.get(*d).copied().unwrap_or(false));
        let ends = able.map(|device| (device, load[device] + seconds(queue, device)));
        let (device, end) = ends.min_by(|one, other| one.1.total_cmp(&other.1))?;
        load[device] = end;
        Some(device)
    };
    queues.iter().map(&mut choose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineStore;

    fn devices() -> Vec<DeviceRates> {
        let rates = |flops, memory, link| DeviceRates {
            flops,
            memory,
            h2d: link,
            d2h: link,
        };
        vec![rates(1e12, 1e11, 1e11), rates(4e12, 2e11, 1e10)]
    }

    fn queue(hint: Hint) -> StaticQueue {
        StaticQueue {
            hint,
            able: vec![true; 2],
            pinned: None,
        }
    }

    fn counts(queues: &[StaticQueue]) -> [usize; 2] {
        let map = static_map(queues, &devices());
        [0, 1].map(|device| map.iter().filter(|d| **d == Some(device)).count())
    }

    #[test]
    fn queues_are_divided_in_proportion() {
        assert_eq!(counts(&vec![queue(Hint::Compute); 10]), [2, 8]);
        assert_eq!(counts(&vec![queue(Hint::Memory); 9]), [3, 6]);
        assert_eq!(counts(&vec![queue(Hint::Io); 11]), [10, 1]);
    }

    #[test]
    fn a_single_queue_gets_the_best_device_that_can_run_it() {
        let only = StaticQueue {
            able: vec![true, false],
            ..queue(Hint::Compute)
        };
        let pinned = StaticQueue {
            pinned: Some(0),
            ..queue(Hint::Compute)
        };
        let none = StaticQueue {
            able: Vec::new(),
            ..queue(Hint::Compute)
        };
        let map = static_map(&[queue(Hint::Compute), only, pinned, none], &devices());
        assert_eq!(map, [Some(1), Some(0), Some(0), None]);
    }

    #[test]
    fn unknown_rates_count_as_equal() {
        let mut devices = devices();
        devices.iter_mut().for_each(|device| device.flops = 0.0);
        let map = static_map(&vec![queue(Hint::Compute); 4], &devices);
        assert_eq!(map, [Some(0), Some(1), Some(0), Some(1)]);
    }

    #[test]
    fn a_machine_file_has_the_rates() {
        let machine = MachineStore::at("/nonexistent")
            .find("v100x2")
            .expect("a machine");
        let rates = DeviceRates::of(&machine);
        let names: Vec<&str> = rates.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["host", "gpu0", "gpu1"]);
        assert_eq!(rates[0].1.rate(Hint::Compute), 2.8e12);
        assert_eq!(rates[1].1.rate(Hint::Memory), 750e9);
        assert!(rates[1].1.rate(Hint::Io) < 12.4e9);
    }
}
