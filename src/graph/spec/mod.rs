//! Specifications of kernels and of graphs of them, in the form of PySchedCL's
//! authors (section 4 of the paper, Figure 8, and the files of their two
//! repositories), with optional fields of our own.
//!
//! * [`KernelSpec`] is a kernel file as it was read: `raw` has its fields,
//!   `fields` the forms in which they are written, `arguments` what it makes
//!   of its lists. With values of its symbols it becomes a [`Kernel`]
//!   (`resolve`, `compiled`).
//! * [`dag`] reads graphs, in three forms; `check` is what must hold of them.
//! * `agree` compares a kernel file with its source, and with what a compiler
//!   tells of it; [`mod@infer`] makes a kernel file of a source.
//! * [`task`] makes a task graph of it that can run.
//! * [`fill`] makes what buffers begin with.
//! * [`source`] reads OpenCL C as far as specifications need it.
//!
//! docs/specifications.md describes every field. Nothing here runs anything;
//! files are read, and every fault is a [`SpecError`] with its file and place.

mod agree;
mod arguments;
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

pub use dag::{DagSpec, Specification, load};
pub use error::SpecError;
pub use kernel::{ArgumentKind, ArgumentSpec, Direction, KernelSpec};
pub use resolve::{Argument, Buffer, Kernel};
