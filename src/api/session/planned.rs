//! Divisions that a cost model of the machine plans, and that the run then corrects.

use std::sync::Arc;

use super::{Division, Error, MakeBalancer, Modelled, OpenDevices};
use crate::balance::Dawl;
use crate::model::StepWork;
use crate::model::serving::{ModelSearch, StreamBuffers};
use crate::workload::Divisible;

impl Modelled<'_> {
    fn divisible(&self) -> &dyn Divisible {
        match self {
            Self::Stencil(stencil) => *stencil,
            Self::Product(spmv) => *spmv,
        }
    }

    fn work(&self) -> StepWork {
        match self {
            Self::Stencil(stencil) => StepWork::of(*stencil),
            Self::Product(spmv) => StepWork::of_product(spmv),
        }
    }
}

/// The division that the model of these devices plans, how devices stream under it, and what
/// the user should know of the model.
///
/// # Errors
/// When there is no model of the machine, or it has no plan.
pub fn division(
    devices: &OpenDevices,
    modelled: &Modelled,
    gpu_memory: Option<u64>,
) -> Result<Division, Error> {
    let file = devices.file();
    let search = ModelSearch {
        file: file.as_deref(),
        simulated: devices.machine.simulated,
        devices: &devices.machine.devices,
        // The cores are open already.
        chosen: true,
        codelet: &modelled.divisible().codelet().name,
        fp64: modelled.divisible().fp64(),
        work: &|| Ok(modelled.work()),
        gpu_memory,
    };
    let mut notes = Vec::new();
    let serving = search
        .find(None, &mut |broken| notes.push(broken.to_owned()))
        .map_err(|missing| Error::Model(missing.to_string()))?;
    if !serving.has_buffers() {
        return Err(Error::Model(StreamBuffers.to_string()));
    }
    notes.extend(serving.notes.iter().cloned());
    let stream = serving.plan.stream;
    let make: MakeBalancer = Arc::new(move |setup| match serving.balancer(setup) {
        Ok(balancer) => balancer,
        // It was found above that there are buffers.
        Err(_) => Box::new(Dawl::new(setup)),
    });
    Ok((make, stream, notes))
}
