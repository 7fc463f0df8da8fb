//! Work that is made of several kernels, and how users describe it.
//!
//! * [`spec`] reads and checks specifications of kernels and of graphs of them.

pub mod spec;
