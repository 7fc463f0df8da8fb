//! Specifications of kernels and of graphs of them, in the form of PySchedCL's
//! authors (section 4 of the paper, Figure 8, and the files of their two
//! repositories), with optional fields of our own.
//!
//! * [`KernelSpec`] is a kernel file: `raw` has its fields, `fields` the forms in
//!   which they are written, `arguments` turns its lists into arguments. With
//!   values of its symbols it becomes a [`Kernel`] (`resolve`, `compiled`).
//! * [`dag`] reads graphs, in three forms, and `check` checks them.
//! * `agree` compares a kernel file with its source and with a compiler's answers;
//!   [`mod@infer`] makes a kernel file from a source.
//! * [`task`] builds the task graph that runs.
//! * [`fill`] makes the initial contents of buffers.
//! * [`source`] reads OpenCL C as far as specifications need it.
//!
//! docs/specifications.md describes every field. Files are read here, but nothing is
//! run. Every error is a [`SpecError`] with its file and location.

mod agree;
mod arguments;
#[cfg(test)]
mod changed_tests;
mod check;
mod compiled;
pub mod dag;
mod error;
mod fields;
pub mod fill;
pub mod infer;
mod kernel;
mod raw;
mod repeated;
mod resolve;
pub mod scalar;
pub mod source;
pub mod task;

pub use agree::Described;
pub use dag::{DagSpec, Specification, load};
pub use error::SpecError;
pub use kernel::{ArgumentKind, ArgumentSpec, Direction, KernelSpec};
pub use resolve::{Argument, Buffer, Kernel, Sizes, check_required, check_sizes};
