//! Operations on dense matrices and vectors: products, factorisations, transforms and sorts.
//!
//! * A [`DenseMatrix`] is what they take and return, and [`ArrayRun`] an operation that is
//!   about to run.
//! * `tiled` runs a product or a Cholesky factorisation as tasks on tiles, and `spaces` an LU
//!   factorisation, a transform or a sort as tasks over spaces. [`Nodes`] runs the operations
//!   over the nodes of a cluster.
//! * `known` keeps what was measured of tasks for the next operation of the same sizes.

mod known;
mod matrix;
mod nodes;
mod run;
mod spaces;
mod tiled;

pub use known::KnownTasks;
pub use matrix::{Complex, DenseMatrix};
pub use nodes::{NodeRun, Nodes};
pub use run::{ArrayResult, ArrayRun};
pub use spaces::Factors;
