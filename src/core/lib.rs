//! What is to be done, and who does it: decisions and descriptions, without a device.
//!
//! A [`workload`] is made of codelets over a [`matrix`], a grid or a task [`graph`]. A balancer
//! ([`balance`]) or a policy ([`policy`], with [`residency`]) says who computes what; [`spread`]
//! and [`cluster`] say it of nodes. [`verify`] checks results, and a [`trace`] has what was run.
//! [`expression`] is the arithmetic of specifications.

use pdawl_base::{exact, installed, parallel, quantity, random, time};
use pdawl_codelet as codelet;
use pdawl_hardware::{machine, runtime};

pub mod balance;
pub mod cluster;
pub mod expression;
pub mod graph;
pub mod matrix;
pub mod policy;
pub mod residency;
pub mod spread;
pub mod trace;
pub mod verify;
pub mod workload;

// Fixtures that unit tests share with the integration tests refer to the library by name.
#[cfg(test)]
extern crate self as pdawl_core;
#[cfg(test)]
#[path = "../../tests/fixtures/changed.rs"]
mod changed;
#[cfg(test)]
#[path = "../../tests/fixtures/matrices.rs"]
mod matrices;
#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;
#[cfg(test)]
#[path = "../../tests/fixtures/spans.rs"]
mod spans;
