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
//! * [`spec`] reads and checks specifications of kernels and graphs, and recordings of runs.

mod build;
mod components;
mod datum;
mod kernel;
mod queues;
pub mod spec;
mod task_graph;

#[cfg(test)]
#[path = "../../../tests/fixtures/graphs.rs"]
pub(crate) mod fixtures;

pub use build::GraphBuilder;
pub use components::{Component, Components};
pub use datum::{Contents, Datum, DatumId, HostSpace, HostSpaceId, Piece, Place, SpaceContents};
pub use kernel::{Argument, Kernel, KernelId};
pub use queues::{CommandQueues, QueueCommand, QueueSlot, Transfers};
pub use task_graph::{Edge, MOST_TASKS, TaskGraph, bottom_levels, check_tasks, go_on};

use thiserror::Error;

use crate::quantity::Bytes;

/// What is wrong with a graph, or with its division into components.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    #[error("there is no datum number {0}; data are counted from 0 as they are added")]
    NoDatum(usize),

    #[error("there is no kernel number {0}; kernels are counted from 0 as they are added")]
    NoKernel(usize),

    #[error("the graph has no kernels; add at least one")]
    Empty,

    #[error("datum `{0}` has no bytes; give it at least one")]
    NoBytes(String),

    #[error("datum `{datum}` has {wanted} bytes, but contents of {given} bytes; make both equal")]
    Contents {
        datum: String,
        wanted: u64,
        given: u64,
    },

    #[error(
        "kernel `{kernel}` reads datum `{datum}` (argument {argument}), which no kernel makes \
         and which has no contents; connect it to an output, or give it contents"
    )]
    NoProducer {
        kernel: String,
        argument: usize,
        datum: String,
    },

    #[error("datum `{datum}` {why}; give it the place of a block of its space")]
    Place { datum: String, why: &'static str },

    #[error("datum `{0}` is wanted, but no kernel makes it, and it has no contents")]
    NeverMade(String),

    #[error(
        "datum `{datum}` is written by kernel `{first}` and by kernel `{second}` (argument \
         {argument}); a datum is written once, so give each its own"
    )]
    TwoProducers {
        datum: String,
        first: String,
        second: String,
        argument: usize,
    },

    #[error(
        "datum `{datum}` has contents and is written by kernel `{kernel}` (argument \
         {argument}); make it an in-out argument with a datum of its own for the result"
    )]
    Overwritten {
        datum: String,
        kernel: String,
        argument: usize,
    },

    #[error(
        "kernel `{kernel}`, argument {argument}: `{from}` has {from_bytes} bytes and `{to}` \
         {to_bytes}; an in-out argument keeps its length"
    )]
    Length {
        kernel: String,
        argument: usize,
        from: String,
        from_bytes: u64,
        to: String,
        to_bytes: u64,
    },

    #[error(
        "datum `{datum}` is overwritten by kernel `{first}` and by kernel `{second}`; let the \
         second take what the first leaves"
    )]
    TwoOverwriters {
        datum: String,
        first: String,
        second: String,
    },

    #[error(
        "kernel `{kernel}`, argument {argument} is memory by value; memory is passed as a datum"
    )]
    MemoryValue { kernel: String, argument: usize },

    #[error("the kernels {} wait for one another in a cycle; remove one of these edges", chain(.0))]
    Cycle(Vec<String>),

    #[error("component {component} has no kernels; remove it")]
    EmptyComponent { component: usize },

    #[error("kernel `{kernel}` is in no component; add it to one")]
    NoComponent { kernel: String },

    #[error("kernel `{kernel}` is in component {first} and in component {second}; keep one")]
    TwoComponents {
        kernel: String,
        first: usize,
        second: usize,
    },

    #[error(
        "component {component} mixes kernel `{first}`, meant for {first_kind}, with kernel \
         `{second}`, meant for {second_kind}; a component runs on one device, so divide it"
    )]
    MixedComponent {
        component: usize,
        first: String,
        first_kind: &'static str,
        second: String,
        second_kind: &'static str,
    },

    #[error(
        "the components {} wait for one another in a cycle; join them, or divide one",
        .0.iter().map(usize::to_string).collect::<Vec<_>>().join(" -> ")
    )]
    ComponentCycle(Vec<usize>),

    #[error(
        "{tasks} tasks are too many for a graph, which has at most {MOST_TASKS}; larger tiles \
         or a smaller size make fewer"
    )]
    TooManyTasks { tasks: u64 },

    #[error(
        "a graph of {tasks} tasks needs {} of memory beside its data, and {} are free; larger \
         tiles or a smaller size make fewer",
        Bytes(*needed),
        Bytes(*free)
    )]
    NoMemory { tasks: u64, needed: u64, free: u64 },

    #[error("interrupted")]
    Stopped,
}

fn chain(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" -> ")
}
