//! The OpenCL backend and its kernels on a real device: PoCL's CPU.
//!
//! `harness` opens devices and waits for completions. `stencil`, `spmv`, `tiles` and
//! `around_libraries` compare the program's kernels with references, `kernels` covers those of
//! users, `commands` queues, events and failures, `memory` buffers and host memory, and
//! `devices` discovery and sub-devices.

mod around_libraries;
mod commands;
mod devices;
mod harness;
mod kernels;
mod memory;
mod peers;
mod spmv;
mod stencil;
mod tiles;
