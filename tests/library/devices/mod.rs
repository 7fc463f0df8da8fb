//! The engine on real devices: the host's cores and an OpenCL CPU device (PoCL).
//! The OpenCL device is used in host memory and, with `=own`, as a device with
//! device memory, so that held units, streams, halos and moves are tested on a
//! machine without a GPU.
//!
//! `harness` runs grids. `strategies` covers stencils under every strategy,
//! `products` sparse matrices, `dense` dense ones, `transformers` their graphs,
//! `losses` lost devices, `random` random balancers, `profile` profiling, and
//! `compiler` a kernel that does not compile.

mod compiler;
mod dense;
mod harness;
mod losses;
mod products;
mod profile;
mod random;
mod strategies;
mod transformers;
