//! Implements [`Divisible`] for a user's kernel.

use std::ops::Range;
use std::sync::Arc;

use super::UserKernel;
use crate::codelet::{Codelet, Cost};
use crate::workload::{Data, Divisible};

impl Divisible for UserKernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn units(&self) -> u64 {
        self.axis.units()
    }

    fn unit_bytes(&self) -> u64 {
        (self.bytes() / self.units()).max(1)
    }

    fn fp64(&self) -> bool {
        self.info.fp64
    }

    fn codelet(&self) -> Arc<Codelet> {
        Arc::clone(&self.codelet)
    }

    /// The units' part of the buffers. The number of operations is unknown.
    fn cost(&self, units: &Range<u64>) -> Cost {
        let part = (units.end - units.start) as f64 / self.units() as f64;
        Cost {
            flops: 0.0,
            bytes: self.bytes() as f64 * part,
        }
    }

    fn data(&self) -> Data<'_> {
        Data::Kernel(self)
    }
}
