//! The times of copies between places.

use crate::policy::Problem;

/// The time of a copy from any place to any other: a latency in seconds, and bytes a
/// second.
///
/// A copy goes directly, or through the host's memory where that is faster or the only
/// way. Section 5.3.3 describes the latter: "each D2D transfer is performed as a D2H-H2D
/// double operation via the host memory".
#[derive(Clone, Debug, PartialEq)]
pub struct TransferCosts {
    places: usize,
    /// By source and destination.
    ways: Vec<Option<Way>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    latency: f64,
    bandwidth: f64,
}

impl TransferCosts {
    /// The places of so many devices and of the host, without ways between them.
    pub fn new(devices: usize) -> Self {
        let places = devices + 1;
        Self {
            places,
            ways: vec![None; places * places],
        }
    }

    /// The places of a problem's devices. A device without a bandwidth computes in the
    /// host's memory.
    pub fn of(problem: &Problem) -> Self {
        let devices = problem.devices.len();
        let mut costs = Self::new(devices);
        let host = costs.host();
        for (device, model) in problem.devices.iter().enumerate() {
            let bandwidth = model.bandwidth.unwrap_or(f64::INFINITY);
            costs.set(host, device, 0.0, bandwidth);
            costs.set(device, host, 0.0, bandwidth);
            for to in (0..devices).filter(|to| *to != device) {
                if let Some(bandwidth) = problem.links.peer(device, to) {
                    costs.set(device, to, 0.0, bandwidth);
                }
            }
        }
        costs
    }

    /// Sets the time of direct copies. An infinite bandwidth is that of places in the same
    /// memory.
    ///
    /// # Panics
    /// When a place does not exist.
    pub fn set(&mut self, from: usize, to: usize, latency: f64, bandwidth: f64) {
        assert!(from < self.places && to < self.places, "{from} to {to}");
        self.ways[from * self.places + to] = Some(Way { latency, bandwidth });
    }

    pub fn devices(&self) -> usize {
        self.places - 1
    }

    /// The place that is the host's memory.
    pub fn host(&self) -> usize {
        self.places - 1
    }

    /// Seconds of the fastest copy of so many bytes, and whether it leaves a copy in the
    /// host's memory on its way. Infinite if there is no way.
    pub fn copy(&self, from: usize, to: usize, bytes: u64) -> (f64, bool) {
        let direct = self.direct(from, to, bytes);
        let host = self.host();
        if from == host || to == host {
            return (direct, false);
        }
        let through = self.direct(from, host, bytes) + self.direct(host, to, bytes);
        match through < direct {
            true => (through, true),
            false => (direct, false),
        }
    }

    /// Seconds of a direct copy; infinite if there is none.
    pub fn direct(&self, from: usize, to: usize, bytes: u64) -> f64 {
        if from == to || bytes == 0 {
            return 0.0;
        }
        let way = self.ways[from * self.places + to];
        way.map_or(f64::INFINITY, |way| {
            way.latency + bytes as f64 / way.bandwidth
        })
    }

    /// Whether two devices' places have the same ways.
    pub(super) fn are_alike(&self, one: usize, other: usize) -> bool {
        let way = |from: usize, to: usize| self.ways[from * self.places + to];
        way(one, other) == way(other, one)
            && (0..self.places)
                .filter(|place| *place != one && *place != other)
                .all(|place| {
                    way(one, place) == way(other, place) && way(place, one) == way(place, other)
                })
    }

    /// A latency or bandwidth that no copy has.
    pub(super) fn fault(&self) -> Option<(usize, usize, f64)> {
        let wrong = |way: &Way| {
            if !(way.latency >= 0.0 && way.latency.is_finite()) {
                return Some(way.latency);
            }
            (way.bandwidth.is_nan() || way.bandwidth <= 0.0).then_some(way.bandwidth)
        };
        let mut all = self.ways.iter().enumerate();
        all.find_map(|(index, way)| {
            let value = wrong(way.as_ref()?)?;
            Some((index / self.places, index % self.places, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_the_faster_way() {
        let mut costs = TransferCosts::new(2);
        assert_eq!(costs.copy(0, 1, 10), (f64::INFINITY, false));
        for device in [0, 1] {
            costs.set(device, 2, 1.0, 10.0);
            costs.set(2, device, 1.0, 10.0);
        }
        assert_eq!(costs.copy(0, 1, 10), (4.0, true));
        assert_eq!(costs.copy(0, 2, 10), (2.0, false));
        costs.set(0, 1, 0.5, 20.0);
        assert_eq!(costs.copy(0, 1, 10), (1.0, false));
        assert_eq!(costs.copy(1, 0, 10), (4.0, true));
        assert_eq!(costs.copy(0, 1, 0), (0.0, false));
    }
}
