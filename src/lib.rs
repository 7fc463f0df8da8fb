//! pdawl splits data-parallel work across the CPU and the GPUs of one machine
//! so that all of them finish together, and keeps refining the split while the
//! work runs.
//!
//! A co-run needs four things: a *machine* to run on (a [`runtime`]), a
//! [`workload`] of units that can be divided, a balancer from [`balance`] that
//! says who does how many of them, and the engine ([`engine::corun`]) that acts
//! on it. Back comes an [`engine::Outcome`], which [`report`] and [`trace`]
//! turn into what people and programs read. A task [`graph`] is run by
//! [`engine::graph`], which has an example, under a [`policy`]. ARCHITECTURE.md, in the
//! repository, says what each part owns and must not know.
//!
//! # Example
//!
//! A stencil on a simulated machine of eight cores and a Tesla K40. The
//! simulation carries data, so the result can be compared with the sequential
//! reference; its times are virtual.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use pdawl::balance::Strategy;
//! use pdawl::codelet::stencil::Precision;
//! use pdawl::engine::corun::{Control, Corun, Options, Stream};
//! use pdawl::machine::MachineStore;
//! use pdawl::runtime::sim::{Sim, SimOptions};
//! use pdawl::workload::stencil::Stencil;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Real devices instead: pdawl::runtime::select::open(None, true)?.
//! let machine = MachineStore::of_user().find("k40")?;
//! let mut runtime = Sim::new(&machine, SimOptions { data: true, ..SimOptions::default() })?;
//!
//! // 300 rows of 200 points; a row is what devices share.
//! let stencil = Stencil::new(200, 300, None, Precision::F64, 1)?;
//! let options = Options {
//!     steps: 5,
//!     gpu_memory: None,
//!     stream: Stream::default(),
//!     verify: true,
//!     trace: false,
//! };
//! let stop = AtomicBool::new(false);
//! let mut control = Control { stop: &stop, progress: &mut |_done, _steps| {} };
//!
//! let corun = Corun::open(&mut runtime, &stencil, &options)?;
//! let balancer = Strategy::Dawl.build(corun.setup())?;
//! let outcome = corun.run(balancer, &mut control)?;
//!
//! assert_eq!(outcome.verified, Some(true));
//! for step in &outcome.steps {
//!     let rows: u64 = step.devices.iter().map(|device| device.units).sum();
//!     assert_eq!(rows, 300);
//! }
//! # Ok(())
//! # }
//! ```

pub mod balance;
pub mod codelet;
pub mod engine;
pub mod experiment;
pub mod expression;
pub mod graph;
pub mod machine;
pub mod matrix;
pub mod model;
pub mod policy;
pub mod profile;
pub mod quantity;
mod random;
pub mod report;
pub mod runtime;
mod shelf;
pub mod time;
pub mod trace;
pub mod workload;

// So that what tests share with the tests within the library has one name.
#[cfg(test)]
extern crate self as pdawl;
#[cfg(test)]
#[path = "../tests/fixtures/matrices.rs"]
mod matrices;
