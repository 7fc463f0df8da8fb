//! Graphs under policies: [`tasks`] that share data under policies for small memories, and the
//! results of [`dense`] operations. A [`Division`] is a graph divided into components, ready on a
//! runtime, with what policies know of it.

pub mod dense;
mod division;
pub mod tasks;

pub use division::Division;
