//! pdawl divides data-parallel work among the CPU and the GPUs of one machine so that
//! all devices finish at the same time. It corrects the division while the work runs.
//!
//! There are two kinds of work:
//!
//! * A [`workload`] consists of units that can be divided, such as the rows of a grid
//!   or of a sparse matrix. A balancer from [`balance`] decides how many units each
//!   device computes, and [`engine::corun`] runs them.
//! * A task [`graph`] consists of kernels that depend on each other. A [`policy`]
//!   decides which device runs which kernels, and when. [`engine::graph`] runs them; its
//!   page has an example.
//!
//! Both run on a [`runtime`]: on OpenCL devices and the cores of the host, or in a
//! simulator of a [`machine`]. A run returns an [`engine::Outcome`], from which
//! [`report`] and [`trace`] make reports and charts. A cost [`model`], trained on the
//! measured runs of a [`profile`], can predict the first division.
//!
//! Over several machines, [`engine::cluster::Cluster`] runs programs: tasks over shared
//! spaces, computed by functions and OpenCL kernels of the user's.
//!
//! ARCHITECTURE.md in the repository describes the parts and their dependencies.
//!
//! # Features
//!
//! All are on unless asked otherwise. A library needs few of them:
//! `default-features = false, features = ["opencl", "cuda"]` has the balancers, the engines, the
//! host, the GPUs and the simulator, and builds 59 packages in place of 199.
//!
//! | feature | what it has |
//! |---|---|
//! | `cli` | the program, and reports as text; all below but `cuda` |
//! | `csv` | traces as CSV ([`trace::csv`]) |
//! | `cuda` | NVIDIA GPUs through CUDA's driver ([`runtime::cuda`]) |
//! | `dense` | libraries for dense products and Fourier transforms on the host. Without them its products are several times as slow, and it has no transform |
//! | `matrix-files` | NPY files ([`matrix::npy`]), and Matrix Market files that are compressed, in archives, or not in UTF-8 |
//! | `models` | profiles of machines ([`profile`]) and cost models ([`model`]) |
//! | `opencl` | OpenCL devices ([`runtime::opencl`]) |
//!
//! # Example
//!
//! This example runs a stencil on a simulated machine of eight cores and a Tesla K40.
//! The simulator also computes the data, so that the result can be compared with the
//! sequential reference. Its times are virtual.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use pdawl::balance::Strategy;
//! use pdawl::codelet::stencil::Precision;
//! use pdawl::engine::corun::{Control, Corun, Options};
//! use pdawl::machine::MachineStore;
//! use pdawl::runtime::sim::{Sim, SimOptions};
//! use pdawl::workload::stencil::Stencil;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // pdawl::runtime::select::open(None, true) opens the devices of this machine instead.
//! let machine = MachineStore::of_user().find("k40")?;
//! let mut runtime = Sim::new(&machine, SimOptions { data: true, ..SimOptions::default() })?;
//!
//! // A grid of 300 rows of 200 points. A unit is a row.
//! let stencil = Stencil::new(200, 300, None, Precision::F64, 1)?;
//! let options = Options { verify: true, ..Options::of_steps(5) };
//! let stop = AtomicBool::new(false);
//! let mut control = Control { stop: &stop, progress: &mut |_done, _steps| {} };
//!
//! // DAWL learns the shares of the devices during the run.
//! let corun = Corun::open(&mut runtime, &stencil, &options)?;
//! let balancer = Strategy::Dawl.build(corun.setup())?;
//! let outcome = corun.run(balancer, &mut control)?;
//!
//! // The result is right, and each step computed every row once.
//! assert_eq!(outcome.verified, Some(true));
//! for step in &outcome.steps {
//!     let rows: u64 = step.devices.iter().map(|device| device.units).sum();
//!     assert_eq!(rows, 300);
//! }
//! # Ok(())
//! # }
//! ```

pub mod balance;
pub mod cluster;
pub mod codelet;
pub mod engine;
pub mod experiment;
pub mod expression;
mod file_store;
pub mod graph;
pub mod installed;
pub mod machine;
pub mod matrix;
#[cfg(feature = "models")]
pub mod model;
mod parallel;
pub mod policy;
pub mod profile;
pub mod quantity;
mod random;
pub mod report;
pub mod residency;
pub mod runtime;
pub mod spread;
pub mod time;
pub mod trace;
pub mod verify;
pub mod workload;

// Fixtures that unit tests share with the integration tests refer to the crate by name.
#[cfg(test)]
extern crate self as pdawl;
#[cfg(test)]
#[path = "../tests/fixtures/matrices.rs"]
mod matrices;
#[cfg(test)]
#[path = "../tests/fixtures/tile_cases.rs"]
mod tile_cases;
