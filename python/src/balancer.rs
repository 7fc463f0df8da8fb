//! Balancers that are Python objects.

use pdawl::balance::{Balancer, Next, Setup, StepPlan, StepReport, StepState, largest_remainder};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::caller::{Caller, call, method};

/// A balancer of the user's. The package's `Balancer` documents its methods.
pub struct PyBalancer {
    balancer: Option<Py<PyAny>>,
    setup: Setup,
    lost: Vec<bool>,
    caller: Caller,
}

impl PyBalancer {
    /// Calls `make` with the units, the steps and the devices.
    pub fn new(make: &Py<PyAny>, setup: &Setup, caller: Caller) -> Self {
        let balancer = caller.call(None, |py| {
            Ok(Some(
                call(make.bind(py), (described(py, setup)?,))?.unbind(),
            ))
        });
        Self {
            balancer,
            lost: vec![false; setup.devices.len()],
            setup: setup.clone(),
            caller,
        }
    }

    fn call<R: Send>(
        &self,
        otherwise: R,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R> + Send,
    ) -> R {
        match &self.balancer {
            Some(balancer) => self.caller.call(otherwise, |py| call(balancer.bind(py))),
            None => otherwise,
        }
    }

    /// What fits a device's own memory is held there, the rest is streamed.
    fn plan_of(&self, units: &[u64]) -> StepPlan {
        let capacities = self
            .setup
            .devices
            .iter()
            .map(|device| device.capacity.unwrap_or(0));
        let held: Vec<u64> = units
            .iter()
            .zip(capacities)
            .map(|(units, most)| most.min(*units))
            .collect();
        let pooled = units
            .iter()
            .zip(&held)
            .map(|(units, held)| units - held)
            .collect();
        StepPlan { held, pooled }
    }
}

fn described<'py>(py: Python<'py>, setup: &Setup) -> PyResult<Bound<'py, PyDict>> {
    let devices = setup.devices.iter().map(|device| {
        let of = PyDict::new(py);
        of.set_item("kind", device.kind.name())?;
        of.set_item("compute_units", device.compute_units)?;
        of.set_item("capacity", device.capacity)?;
        Ok(of)
    });
    let all = PyDict::new(py);
    all.set_item("units", setup.units)?;
    all.set_item("steps", setup.steps)?;
    all.set_item(
        "devices",
        PyList::new(py, devices.collect::<PyResult<Vec<_>>>()?)?,
    )?;
    Ok(all)
}

impl Balancer for PyBalancer {
    fn name(&self) -> String {
        "python".to_owned()
    }

    /// By the shares that the balancer answers; they need not sum to 1.
    fn plan(&mut self, step: u32) -> StepPlan {
        let shares = self.call(None, |balancer| {
            let shares: Vec<f64> =
                method(balancer, intern!(balancer.py(), "plan"), (step,))?.extract()?;
            let devices = self.setup.devices.len();
            let is_share = |share: &f64| share.is_finite() && *share >= 0.0;
            if shares.len() != devices || !shares.iter().all(is_share) {
                return Err(PyValueError::new_err(format!(
                    "balancer: `plan` answered {shares:?}; it answers a share of 0 or more for \
                     each of the {devices} devices"
                )));
            }
            Ok(Some(shares))
        });
        let alive = |shares: &[f64]| -> Vec<f64> {
            let shares = shares.iter().zip(&self.lost);
            shares
                .map(|(share, lost)| if *lost { 0.0 } else { *share })
                .collect()
        };
        let mut shares = alive(&shares.unwrap_or_default());
        if shares.iter().sum::<f64>() <= 0.0 {
            let units = self
                .setup
                .devices
                .iter()
                .map(|device| f64::from(device.compute_units.max(1)));
            shares = alive(&units.collect::<Vec<_>>());
        }
        self.plan_of(&largest_remainder(self.setup.units, &shares))
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        match state.left[device] {
            0 => Next::Done,
            left => Next::Take(left),
        }
    }

    fn step_ended(&mut self, report: &StepReport) {
        self.call((), |balancer| {
            let Some(step_ended) = balancer.getattr_opt("step_ended")? else {
                return Ok(());
            };
            let units: Vec<u64> = report
                .devices
                .iter()
                .map(|of| of.held + of.pooled)
                .collect();
            let seconds = report.devices.iter().map(|of| of.finished as f64 / 1e9);
            let seconds: Vec<f64> = seconds.collect();
            call(&step_ended, (report.step, units, seconds))?;
            Ok(())
        });
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
    }

    fn returned(&mut self, device: usize, _step: u32) {
        self.lost[device] = false;
    }
}
