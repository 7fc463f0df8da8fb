//! The OpenCL backend and its kernels on a real device: PoCL's CPU.
//!
//! `harness` opens devices and waits for completions. `stencil` compares the
//! kernels with plain loops, `spmv` those of products with the reference, `commands` covers queues, events and failures,
//! `memory` buffers and host memory, `devices` discovery and sub-devices.

mod commands;
mod devices;
mod harness;
mod kernels;
mod memory;
mod spmv;
mod stencil;
