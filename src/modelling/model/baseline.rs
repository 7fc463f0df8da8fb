//! The baselines that a trained model must beat: predictions that need no training.
//!
//! Both read a machine file's peaks alone: no efficiency of a codelet, no
//! overheads, no overlap other than said here.

use super::case::{Case, Derived, DevicePart};
use super::descriptors::Descriptors;

/// The baselines' names, in the order of [`all`].
pub const NAMES: [&str; 2] = ["naive", "roofline"];

/// Seconds of a step by each baseline, in the order of [`NAMES`].
pub fn all(case: &Case, descriptors: &Descriptors) -> [f64; 2] {
    [naive(case, descriptors), roofline(case, descriptors)]
}

/// Equations 1 and 2 of the PDAWL paper:
///
/// ```text
/// GPU = memcpy to the device + Compute / NumThreads + memcpy to the host
/// CPU = Compute / NumThreads
/// ```
///
/// `Compute` is the step's operations at the peak of one thread, and
/// `NumThreads` how many there are: the workers of a pool, each with a core's
/// part of the host's peak; the compute units of a device, each with its part
/// of the device's (with any finer threads the quotient is the same). Where
/// the machine file gives no peak, a thread computes as quickly as its part of
/// the bandwidth brings operands. The copies are of the units streamed in a
/// step, each way at the link's rate alone: held ones cross the link once a
/// run. As published, nothing overlaps.
pub fn naive(case: &Case, descriptors: &Descriptors) -> f64 {
    let derived = Derived::of(case, descriptors);
    let host = &descriptors.host;
    let operands = |bandwidth: f64| match derived.traffic_bytes > 0.0 {
        true => derived.flops * bandwidth / derived.traffic_bytes,
        false => f64::INFINITY,
    };
    let compute = match (case.part, &descriptors.device) {
        (DevicePart::Host { workers, .. }, None) => {
            let cores = f64::from(host.cores.max(1));
            let peak = host.flops.unwrap_or_else(|| operands(host.bandwidth));
            derived.flops / (peak / cores) / f64::from(workers.max(1))
        }
        (_, device) => {
            let device = device.unwrap_or_default();
            let peak = device.flops.unwrap_or_else(|| operands(device.bandwidth));
            derived.flops / peak
        }
    };
    let (to, from) = copies(case, descriptors);
    to + compute + from
}

/// The roofline: operations at the peak rate, bytes at the memory's bandwidth
/// (for a pool, that of its workers), and bytes over the link each way;
/// whatever takes longest.
pub fn roofline(case: &Case, descriptors: &Descriptors) -> f64 {
    let derived = Derived::of(case, descriptors);
    let host = &descriptors.host;
    let (peak, bandwidth) = match (case.part, &descriptors.device) {
        (DevicePart::Host { workers, .. }, None) => {
            let workers = f64::from(workers.max(1));
            let part = workers / f64::from(host.cores.max(1));
            let bandwidth = (workers * host.core_bandwidth).min(host.bandwidth);
            (host.flops.map(|all| all * part), bandwidth)
        }
        (_, device) => {
            let device = device.unwrap_or_default();
            (device.flops, device.bandwidth)
        }
    };
    let compute = peak.map_or(0.0, |peak| derived.flops / peak);
    let memory = derived.traffic_bytes / bandwidth;
    let (to, from) = copies(case, descriptors);
    compute.max(memory).max(to).max(from)
}

/// Seconds of the streamed units' way to the device and back.
fn copies(case: &Case, descriptors: &Descriptors) -> (f64, f64) {
    let link = descriptors.device.and_then(|device| device.link);
    match (case.part, link) {
        (DevicePart::Discrete { streamed, .. }, Some(link)) => {
            let bytes = streamed as f64 * case.work.unit_bytes as f64;
            (bytes / link.h2d, bytes / link.d2h)
        }
        _ => (0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StepWork;
    use crate::model::fixtures::{grid, machine};

    fn case(part: DevicePart) -> Case {
        let work = StepWork::of(&grid(1000));
        Case { work, part }
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-12
    }

    #[test]
    fn the_equations_by_hand() {
        let machine = machine("k40");
        let on_host = Descriptors::of(&machine, None, "stencil5-f64", true);
        let device = Some(&machine.devices[0]);
        let on_device = Descriptors::of(&machine, device, "stencil5-f64", true);
        let pool = case(DevicePart::Host {
            workers: 2,
            sockets: 1,
            units: 1000,
            chunk: 1000,
        });
        // 5 operations a point; 218 GFLOP/s on 8 cores; two reach 20.5 GB/s.
        assert!(close(naive(&pool, &on_host), 5e6 / (218e9 / 4.0)));
        assert!(close(roofline(&pool, &on_host), 16e6 / 20.5e9));
        let streamed = case(DevicePart::Discrete {
            held: 400,
            slots: 2003,
            streamed: 600,
            chunk: 100,
            queues: 3,
            solo: false,
        });
        let copy = 600.0 * 8000.0 / 10.3e9;
        assert!(close(
            naive(&streamed, &on_device),
            2.0 * copy + 5e6 / 1.43e12
        ));
        assert!(close(roofline(&streamed, &on_device), copy));
    }

    #[test]
    fn without_a_peak_they_go_by_bandwidth() {
        let mut machine = machine("k40");
        machine.host.flops = None;
        machine.devices[0].flops_f64 = None;
        let pool = case(DevicePart::Host {
            workers: 8,
            sockets: 1,
            units: 1000,
            chunk: 1000,
        });
        let on_host = Descriptors::of(&machine, None, "stencil5-f64", true);
        assert!(close(naive(&pool, &on_host), 16e6 / 20.5e9));
        assert!(close(roofline(&pool, &on_host), 16e6 / 20.5e9));
        let device = Some(&machine.devices[0]);
        let on_device = Descriptors::of(&machine, device, "stencil5-f64", true);
        let held = case(DevicePart::Discrete {
            held: 1000,
            slots: 2003,
            streamed: 0,
            chunk: 100,
            queues: 3,
            solo: true,
        });
        assert!(close(naive(&held, &on_device), 16e6 / 216e9));
        assert!(close(roofline(&held, &on_device), 16e6 / 216e9));
    }
}
