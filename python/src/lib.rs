//! The part of the Python package that is Rust: sessions on a thread of their own, matrices in
//! NumPy's memory, runs, kernels and graphs, policies and balancers that are Python objects, and
//! the program.
//! The package's Python code checks arguments, and makes arrays and reports of what this returns.

mod arrays;
mod balancer;
mod caller;
mod cluster;
mod divider;
mod errors;
mod graph;
mod kernel;
mod matrix;
mod policy;
mod program;
mod run;
mod session;
mod worker;

use pyo3::prelude::*;

#[pymodule]
fn _pdawl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<errors::Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(session::gpu_of, module)?)?;
    module.add_function(wrap_pyfunction!(program::loaded, module)?)?;
    module.add_function(wrap_pyfunction!(program::program, module)?)?;
    module.add_class::<divider::Divider>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<cluster::Cluster>()?;
    module.add_class::<matrix::Matrix>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<run::Run>()
}
