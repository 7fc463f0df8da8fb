//! How devices share the host's memory while all of them use it.
//!
//! Kernels of host pools and transfers of streams are flows, each with a rate that it
//! reaches alone. Flows that meet on a full resource (the memory, the bus of all links, or a
//! link that is busy both ways) slow by one factor; a flow that another resource limits more leaves
//! the rest to the others. The simulator solves this for whole machines, and here it does for
//! one moment.

use crate::runtime::sim::bandwidth_sharing::Filling;

/// A flow that may be active together with others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Bytes a second of the host's memory that it uses alone; 0 for an inactive flow.
    pub alone: f64,
    /// The fraction of that to which its own link limits it while busy both ways.
    pub own_limit: f64,
    /// Whether it is of transfers, which use the bus.
    pub is_transfers: bool,
}

/// What flows share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Bytes a second of the host's memory, and of its bus.
    pub memory: f64,
    pub bus: f64,
}

/// The fraction of its own rate that each flow reaches together with the others.
pub fn shares(shared: Shared, flows: &[Flow]) -> Vec<f64> {
    let mut filling = Filling::default();
    filling.resource(shared.memory);
    filling.resource(shared.bus);
    for (link, flow) in flows.iter().enumerate() {
        filling.resource(flow.own_limit * flow.alone);
        let bus = flow.is_transfers.then_some((1, flow.alone));
        filling.flow(
            [(0, flow.alone), (link + 2, flow.alone)]
                .into_iter()
                .chain(bus),
        );
    }
    filling.fill().to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flow(alone: f64, own_limit: f64) -> Flow {
        Flow {
            alone,
            own_limit,
            is_transfers: false,
        }
    }

    fn of_memory(memory: f64, flows: &[Flow]) -> Vec<f64> {
        let bus = f64::INFINITY;
        shares(Shared { memory, bus }, flows)
    }

    #[test]
    fn the_shares_of_a_measured_machine() {
        // 16 cores take 88 GB/s, a link 55 GB/s each way alone and 46 while
        // both are busy; the memory gives 132.
        let shares = of_memory(132e9, &[flow(88e9, 1.0), flow(110e9, 46.0 / 55.0)]);
        assert!((shares[0] - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(shares[0], shares[1]);
    }

    #[test]
    fn who_is_held_up_elsewhere_leaves_the_rest() {
        let together = [flow(20e9, 1.0), flow(20e9, 0.5)];
        assert_eq!(of_memory(25e9, &together), [0.75, 0.5]);
        assert_eq!(of_memory(40e9, &together), [1.0, 0.5]);
        assert_eq!(of_memory(16e9, &together), [0.4, 0.4]);
        assert_eq!(
            of_memory(25e9, &[flow(20e9, 1.0), flow(0.0, 0.5)]),
            [1.0, 1.0]
        );
        assert!(of_memory(25e9, &[]).is_empty());
    }

    #[test]
    fn transfers_share_a_bus() {
        let transfers = |alone| Flow {
            is_transfers: true,
            ..flow(alone, 1.0)
        };
        let shared = Shared {
            memory: 100e9,
            bus: 12e9,
        };
        let flows = [flow(50e9, 1.0), transfers(20e9), transfers(20e9)];
        assert_eq!(shares(shared, &flows), [1.0, 0.3, 0.3]);
    }

    proptest! {
        /// Nobody gets more than it may, the memory is not exceeded, and it is
        /// full if anyone is held up by it.
        #[test]
        fn shares_are_max_min_fair(
            bandwidth in 1.0f64..100.0,
            flows in prop::collection::vec((0.0f64..50.0, 0.1f64..1.0), 0..6),
        ) {
            let flows: Vec<Flow> = flows.into_iter().map(|(a, l)| flow(a, l)).collect();
            let shares = of_memory(bandwidth, &flows);
            let used: f64 = flows.iter().zip(&shares).map(|(f, s)| f.alone * s).sum();
            prop_assert!(used <= bandwidth * (1.0 + 1e-9));
            let active = || flows.iter().zip(&shares).filter(|(f, _)| f.alone > 0.0);
            for (flow, share) in active() {
                prop_assert!(*share <= flow.own_limit + 1e-12);
            }
            let held_up: Vec<f64> = active()
                .filter(|(f, s)| **s < f.own_limit - 1e-9)
                .map(|(_, s)| *s)
                .collect();
            if !held_up.is_empty() {
                prop_assert!(used >= bandwidth * (1.0 - 1e-9));
                let first = held_up[0];
                prop_assert!(held_up.iter().all(|s| (s - first).abs() < 1e-9));
            }
        }
    }
}
