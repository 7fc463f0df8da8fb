//! From a codelet, a size and a configuration to features, and from features
//! to predicted seconds and plans.
//!
//! * [`case`] is one device's part in a step of a workload, and [`descriptors`]
//!   what a machine file says of the device: together, everything that is known
//!   before a run.
//! * [`datasets`] is where measured runs are kept.

pub mod case;
pub mod datasets;
pub mod descriptors;

pub use case::{Case, Part, Work};
pub use datasets::DatasetShelf;
pub use descriptors::Descriptors;
