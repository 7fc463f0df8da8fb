//! Dividers: the division of loops of the user's.

use std::ops::Range;

use pdawl::balance::Strategy;
use pdawl::divider::{Divider as Core, DividerError, Options};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyRange, PyRangeMethods, PyString, PyTuple, PyType};

use crate::caller::method;

/// Divides the units of a loop among parts (threads, processes, GPUs, nodes) so that all end
/// together, and corrects that by what each step took. It knows no device, thread or clock.
#[pyclass(module = "pdawl")]
pub struct Divider {
    divider: Core,
    /// A balancer of the user's, and the number of its next step.
    balancer: Option<(Py<PyAny>, u64)>,
    /// The ranges of the present step.
    units: Vec<u64>,
}

fn wrong(error: DividerError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn range<'py>(py: Python<'py>, range: &Range<u64>) -> PyResult<Bound<'py, PyRange>> {
    let [start, end] =
        [range.start, range.end].map(|unit| isize::try_from(unit).unwrap_or(isize::MAX));
    PyRange::new(py, start, end)
}

#[pymethods]
impl Divider {
    #[new]
    #[pyo3(signature = (
        units, parts, *, granularity = 1, limits = None, weights = None, sizes = None, rates = None,
        steps = None, move_seconds = None, hysteresis = None, balancer = None
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the keywords of the constructor"
    )]
    fn new(
        units: u64,
        parts: usize,
        granularity: u64,
        limits: Option<Vec<Option<u64>>>,
        weights: Option<Vec<f64>>,
        sizes: Option<Vec<u64>>,
        rates: Option<Vec<f64>>,
        steps: Option<u64>,
        move_seconds: Option<f64>,
        hysteresis: Option<f64>,
        balancer: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let defaults = Options::new(units, parts);
        let options = Options {
            granularity,
            limits: limits.unwrap_or_default(),
            weights: weights.unwrap_or_default(),
            sizes: sizes.unwrap_or_default(),
            rates: rates.unwrap_or_default(),
            steps,
            move_seconds,
            hysteresis: hysteresis.unwrap_or(defaults.hysteresis),
            ..defaults
        };
        let named = balancer
            .as_ref()
            .and_then(|balancer| balancer.cast::<PyString>().ok());
        let own = balancer.as_ref().filter(|_| named.is_none());
        let divider = match named {
            Some(name) => {
                let strategy: Result<Strategy, _> = name.to_cow()?.parse();
                let strategy =
                    strategy.map_err(|error| PyValueError::new_err(error.to_string()))?;
                Core::with_strategy(options, &strategy)
            }
            None => Core::new(options),
        };
        Ok(Self {
            divider: divider.map_err(wrong)?,
            balancer: own.map(|own| (own.clone().unbind(), 0)),
            units: Vec::new(),
        })
    }

    /// The ranges of the next step, one a part, together all units or those given.
    #[pyo3(signature = (units = None))]
    fn next<'py>(
        &mut self,
        py: Python<'py>,
        units: Option<Bound<'py, PyRange>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let divider = &mut self.divider;
        let ranges = match (&self.balancer, units) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err(
                    "units: a balancer of one's own divides all of them",
                ));
            }
            (Some((balancer, step)), None) => {
                let plan = method(balancer.bind(py), intern!(py, "plan"), (*step,))?;
                divider.next_by(&plan.extract::<Vec<f64>>()?)
            }
            (None, Some(units)) => {
                if units.step()? != 1 {
                    return Err(PyValueError::new_err(
                        "units: a range of every unit is needed",
                    ));
                }
                let bound = |name| units.getattr(name)?.extract::<u64>();
                divider.next_of(bound(intern!(py, "start"))?..bound(intern!(py, "stop"))?)
            }
            (None, None) => divider.next(),
        };
        let ranges = ranges.map_err(wrong)?;
        self.units.clear();
        self.units
            .extend(ranges.iter().map(|range| range.end - range.start));
        let ranges = ranges.iter().map(|one| range(py, one));
        PyList::new(py, ranges.collect::<PyResult<Vec<_>>>()?)
    }

    /// The step has ended: the seconds of each part, None where it is lost, and of moving units
    /// before it. Returns what lost parts had, with the part that computes it now.
    #[pyo3(signature = (seconds, moving = None))]
    fn took<'py>(
        &mut self,
        py: Python<'py>,
        seconds: Vec<Option<f64>>,
        moving: Option<f64>,
    ) -> PyResult<Vec<(usize, Bound<'py, PyRange>)>> {
        let again = self.divider.took_moving(&seconds, moving).map_err(wrong)?;
        if let Some((balancer, step)) = &mut self.balancer {
            let balancer = balancer.bind(py);
            if balancer.hasattr(intern!(py, "step_ended"))? {
                let arguments = (*step, self.units.clone(), seconds);
                method(balancer, intern!(py, "step_ended"), arguments)?;
            }
            *step += 1;
        }
        let again = again.iter().map(|(part, one)| Ok((*part, range(py, one)?)));
        again.collect()
    }

    /// Without barriers: the units that a free part computes next, or None.
    fn take<'py>(&mut self, py: Python<'py>, part: usize) -> PyResult<Option<Bound<'py, PyRange>>> {
        let taken = self.divider.take(part).map_err(wrong)?;
        taken.map(|taken| range(py, &taken)).transpose()
    }

    /// A part has computed what it had taken, in so many seconds.
    fn done(&mut self, part: usize, seconds: f64) -> PyResult<()> {
        self.divider.done(part, seconds).map_err(wrong)
    }

    /// A part is lost.
    fn lost(&mut self, part: usize) -> PyResult<()> {
        self.divider.lost(part).map_err(wrong)
    }

    /// A part that was lost is back.
    fn back(&mut self, part: usize) -> PyResult<()> {
        self.divider.back(part).map_err(wrong)
    }

    /// Whether all units of a step that parts take from are computed.
    #[getter]
    fn is_done(&self) -> bool {
        self.divider.is_done()
    }

    /// Units of work a second of each part; 0 where nothing is known.
    #[getter]
    fn rates(&self) -> Vec<f64> {
        self.divider.rates()
    }

    /// Why the parts have the ranges that they have.
    fn why(&self) -> String {
        self.divider.why()
    }

    /// The state, to go on elsewhere or later.
    fn to_json(&self) -> PyResult<String> {
        match &self.balancer {
            None => self.divider.to_json().map_err(wrong),
            Some(_) => Err(PyValueError::new_err(
                "a divider with a balancer of one's own is not written",
            )),
        }
    }

    /// A divider with the state that another one wrote.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let divider = Core::from_json(text).map_err(wrong)?;
        Ok(Self {
            divider,
            balancer: None,
            units: Vec::new(),
        })
    }

    /// For `pickle`.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let class: Bound<'py, PyType> = slf.get_type();
        let state = (slf.borrow().to_json()?,);
        (class.getattr("from_json")?, state).into_pyobject(slf.py())
    }

    fn __repr__(&self) -> String {
        self.divider.why()
    }
}
