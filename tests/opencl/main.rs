//! The OpenCL backend and its kernels on a real device: PoCL's CPU.
//!
//! `harness` opens devices and waits for completions. `stencil` compares the
//! kernels with plain loops, `commands` covers queues, events and failures,
//! `memory` buffers and host memory, `devices` discovery and sub-devices.

mod commands;
mod devices;
mod harness;
mod memory;
mod stencil;
