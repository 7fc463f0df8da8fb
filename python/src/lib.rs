//! The part of the Python package that is Rust: sessions on a thread of their own, matrices in
//! NumPy's memory, runs, kernels and graphs, and policies and balancers that are Python objects.
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
mod run;
mod session;
mod worker;

use pyo3::prelude::*;

#[pymodule]
fn _pdawl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<errors::Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<divider::Divider>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<cluster::Cluster>()?;
    module.add_class::<matrix::Matrix>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<run::Run>()
}
