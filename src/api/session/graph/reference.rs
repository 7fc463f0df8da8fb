//! What the results of a graph are compared with.

use std::sync::atomic::AtomicBool;

use crate::engine::graph::{GraphRunError, PreparedGraph, reference::reference};
use crate::graph::spec::scalar::Base;
use crate::graph::{DatumId, TaskGraph};
use crate::machine::DeviceKind;
use crate::runtime::Runtime;
use crate::workload::kernel::compare::compare;
use crate::workload::transformer::{Layers, Transformer};

/// A reference of a graph's results.
pub enum Reference {
    /// Its kernels one after the other on one device. These data are compared, of such elements:
    /// bit for bit if all devices are of one model.
    Sequential(Vec<(DatumId, Base)>),
    /// That of a transformer, in double precision.
    Transformer(Box<(Transformer, Layers)>),
}

impl Reference {
    /// Bytes of host memory that a comparison needs beside the graph's data.
    pub fn memory(&self, graph: &TaskGraph) -> u64 {
        match self {
            // It keeps every datum.
            Self::Sequential(_) => {
                let sizes = graph.data().iter().map(|datum| datum.bytes);
                sizes.fold(0, u64::saturating_add)
            }
            Self::Transformer(of) => of.0.verification_memory(),
        }
    }

    /// Whether the results of the last run are right, and the greatest error; `None` if `stop`
    /// was set meanwhile.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub(super) fn compare(
        &self,
        prepared: &PreparedGraph,
        runtime: &mut dyn Runtime,
        stop: &AtomicBool,
    ) -> Result<Option<(bool, f64)>, GraphRunError> {
        match self {
            Self::Sequential(results) => sequential(results, prepared, runtime, stop),
            Self::Transformer(of) => {
                let (transformer, layers) = &**of;
                let bytes = |datum| prepared.bytes(runtime, datum).map(<[u8]>::to_vec);
                let results = layers.results(bytes)?;
                let verification = transformer.verify(&results, stop);
                Ok(verification.map(|found| (found.right(), found.error)))
            }
        }
    }
}

fn sequential(
    results: &[(DatumId, Base)],
    prepared: &PreparedGraph,
    runtime: &mut dyn Runtime,
    stop: &AtomicBool,
) -> Result<Option<(bool, f64)>, GraphRunError> {
    let devices = runtime.devices();
    let alike = devices
        .iter()
        .all(|device| device.model == devices[0].model);
    let best = (devices.iter()).position(|device| device.kind != DeviceKind::Cpu);
    let Some(made) = reference(runtime, prepared.graph(), best.unwrap_or(0), stop)? else {
        return Ok(None);
    };
    let (mut right, mut largest) = (true, 0.0f64);
    for (datum, base) in results {
        let ours = prepared.bytes(runtime, *datum)?;
        let difference = compare(*base, ours, &made[datum.0], alike);
        right &= difference.right;
        largest = largest.max(difference.largest);
    }
    Ok(Some((right, largest)))
}
