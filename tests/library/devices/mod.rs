//! The engine on real devices: the host's cores, and an OpenCL CPU device
//! (PoCL) as it is and taken for a device with memory of its own, so that held
//! rings, streams, halos and moves run on a machine without a GPU.
//!
//! `harness` runs grids. `strategies` runs every strategy, `products` does so on
//! matrices, `dense` tries dense ones, `transformers` graphs of them, `losses`
//! devices that fail on the way, `random` arbitrary balancers, `profile` a profile
//! of one, and `compiler` a kernel that does not compile.

mod compiler;
mod dense;
mod harness;
mod losses;
mod products;
mod profile;
mod random;
mod strategies;
mod transformers;
