//! The backend over CUDA's driver, against a driver of our own (`fake/`, a C library whose
//! streams are threads and whose memory is the host's), as few machines have a GPU. Its
//! kernels are C functions with the names of the entries of PTX.
//!
//! `machine` opens it. `order` has queues and events, `copies` rows and other devices, `arrays` those
//! of the user's on a GPU,
//! `kernels` arguments and sizes, `libraries` codelets by CUDA's libraries, `graphs` command
//! graphs, `engine` task graphs, `failures` what goes wrong, `program` the command line.

#![cfg(target_os = "linux")]

mod arrays;
mod copies;
mod engine;
mod failures;
mod graphs;
mod kernels;
mod libraries;
mod library;
mod machine;
mod order;
#[path = "../fixtures/own_home.rs"]
mod own_home;
mod program;
