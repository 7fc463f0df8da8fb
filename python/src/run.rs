//! A run's report and trace.

use pdawl::report::Printed;
use pdawl::session;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A run. The package's class of this name makes objects and tables of it.
#[pyclass(frozen)]
pub struct Run(pub session::Run);

#[pymethods]
impl Run {
    /// The report as `pdawl run --format json` prints it.
    fn report_json(&self) -> PyResult<String> {
        serde_json::to_string(&Printed::from(self.0.report())).map_err(failed)
    }

    fn shares(&self) -> Vec<f64> {
        self.0.shares()
    }

    /// The commands with their times, in Perfetto's form.
    fn trace_json(&self) -> PyResult<String> {
        let mut text = Vec::new();
        self.0.chrome_trace(&mut text).map_err(failed)?;
        String::from_utf8(text).map_err(failed)
    }

    fn gantt_html(&self) -> PyResult<String> {
        let mut text = Vec::new();
        self.0.gantt_html(&mut text).map_err(failed)?;
        String::from_utf8(text).map_err(failed)
    }

    fn gantt_svg(&self) -> PyResult<String> {
        let mut text = Vec::new();
        self.0.gantt_svg(&mut text).map_err(failed)?;
        String::from_utf8(text).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
