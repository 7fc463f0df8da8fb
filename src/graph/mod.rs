//! Task graphs: kernels, the data that they hand on, and the order that
//! follows.
//!
//! A *datum* is written by one kernel or comes from the host, and never
//! changes; an argument that is both input and output is two data, the version
//! before and the version after, in one storage. So who waits for whom follows
//! from who reads and writes what. This folder is pure: it knows neither
//! devices nor clocks.
//!
//! * [`GraphBuilder`] takes [`Datum`]s and [`Kernel`]s and checks them;
//!   [`TaskGraph`] answers who makes, reads and follows what.
//! * [`Components`] divides the kernels among task components, each of which
//!   runs on one device: FRONT, IN and END (PySchedCL, definitions 1 to 3).
//! * [`CommandQueues`] is what is enqueued for a component on a device of so
//!   many queues, and what of it waits for what (definition 4, E_Q).
//! * [`bottom_levels`] ranks kernels by the time that is left below them.
//! * [`spec`] reads and checks users' specifications of kernels and graphs.

mod build;
mod components;
mod datum;
mod error;
mod kernel;
mod queues;
mod rank;
pub mod spec;
mod task_graph;

#[cfg(test)]
pub(crate) mod testbed;

pub use build::GraphBuilder;
pub use components::{Component, Components};
pub use datum::{Contents, Datum, DatumId};
pub use error::GraphError;
pub use kernel::{Argument, Kernel, KernelId};
pub use queues::{CommandQueues, Place, Planned, Transfers};
pub use rank::bottom_levels;
pub use task_graph::{Edge, TaskGraph};
