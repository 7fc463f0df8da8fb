//! Acting: the only drivers of a runtime.
//!
//! [`outcome`] is what an engine returns; [`measure`] drives a runtime to
//! measure the machine behind it, and [`scope`] releases what it allocates. [`first_launch`] examines users' kernels in a process
//! of their own.
//! `membership` decides which devices take part.

use pdawl_base::{parallel, quantity, random, time};
use pdawl_codelet as codelet;
use pdawl_core::{balance, matrix, policy, residency, spread, trace, verify, workload};
use pdawl_hardware::{machine, runtime};

pub mod cluster;
pub mod corun;
pub mod first_launch;
pub mod graph;
mod in_flight;
pub mod measure;
mod membership;
pub mod oracle;
pub mod outcome;
pub mod scope;

#[cfg(test)]
#[path = "../../tests/fixtures/changed.rs"]
mod changed;
#[cfg(test)]
#[path = "../../tests/fixtures/graphs.rs"]
mod graphs;
#[cfg(test)]
#[path = "../../tests/fixtures/matrices.rs"]
mod matrices;
#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;

pub use outcome::{DeviceRecord, Loss, Outcome, StepRecord};
