//! Task graphs: kernels, the data that they exchange, and the order that follows.
//!
//! A *datum* is written by one kernel or comes from the host, and never changes. An
//! argument that is both input and output is two data, the version before and the
//! version after, in one buffer. So the precedences of kernels follow from what
//! they read and write. This folder is pure: it knows neither devices nor clocks.
//!
//! * [`GraphBuilder`] takes [`Datum`]s and [`Kernel`]s and checks them;
//!   [`TaskGraph`] knows what makes, reads and follows what.
//! * A datum may have a [`Place`] in a [`HostSpace`], such as a block of a matrix.
//! * A graph [grows](TaskGraph::grow) where tasks arrive while others run.
//! * [`Components`] divides the kernels among task components, each of which
//!   runs on one device: FRONT, IN and END (PySchedCL, definitions 1 to 3).
//! * [`CommandQueues`] is what a component enqueues on the queues of a device, and
//!   which command waits for which (definition 4, E_Q).
//! * [`bottom_levels`] ranks kernels by the time left until the graph's end.
//! * [`spec`] reads and checks specifications of kernels and graphs.

mod build;
mod components;
mod datum;
mod error;
mod growth;
mod kernel;
mod queues;
pub mod spec;
mod task_graph;
mod topology;

#[cfg(test)]
#[path = "../../../tests/fixtures/graphs.rs"]
pub(crate) mod fixtures;

pub use build::GraphBuilder;
pub use components::{Component, Components};
pub use datum::{Contents, Datum, DatumId, HostSpace, HostSpaceId, Piece, Place, SpaceContents};
pub use error::GraphError;
pub use kernel::{Argument, Kernel, KernelId};
pub use queues::{CommandQueues, QueueCommand, QueueSlot, Transfers};
pub use task_graph::{Edge, MOST_TASKS, TaskGraph, check_tasks, go_on};
pub use topology::bottom_levels;
