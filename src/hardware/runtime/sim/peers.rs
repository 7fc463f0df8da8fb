//! Direct links from one simulated device to another.

use super::bandwidth_sharing::{Fluid, Resource, Use};
use super::schedule::{Demand, Engine, Schedule};
use crate::machine::PeerSpec;

/// A direct link from a device to another. Copies over it take turns. It uses neither
/// the host's bus nor its memory, and the devices' memories are faster.
pub(super) struct PeerLink {
    spec: PeerSpec,
    link: Resource,
    engine: Engine,
}

impl PeerLink {
    pub fn new(spec: &PeerSpec, to: &mut Schedule) -> Self {
        Self {
            spec: spec.clone(),
            link: to.fluid().resource(spec.bandwidth),
            engine: to.engine(1),
        }
    }

    /// What a copy of `bytes` bytes needs, `noise` times as much as described.
    pub fn copy(&self, bytes: u64, noise: f64) -> Demand {
        Demand {
            engine: self.engine,
            other: None,
            slots: None,
            gap: 0,
            delay: None,
            latency: self.spec.latency_ns,
            uses: vec![Use::of(self.link, bytes as f64 * noise)],
        }
    }

    /// From now on it is `factor` times slower than described.
    pub fn slow(&self, factor: f64, fluid: &mut Fluid) {
        fluid.set_capacity(self.link, self.spec.bandwidth / factor);
    }
}
