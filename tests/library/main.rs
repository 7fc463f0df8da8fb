//! Tests that call the library in this process.
//!
//! `corun`, `wide_halo` and `spmv` run the engine in arbitrary order of commands,
//! `host_tiles` computes tiles and `stencil_commands` stencils by single commands, `graph` runs task graphs, `cluster` nodes that are threads, with `cluster_losses`,
//! `cluster_tolerance`, `cluster_kernels`, `cluster_division`, `cluster_touch` and `lu`; `alone` has one machine by itself, and `session` the
//! interface of programs, with `checked_kernels` and `session_panics`. `session`, `adopted`, `devices`,
//! `kernels` and `opencl` need an OpenCL CPU device (PoCL), `returning_devices` has
//! faults of simulated devices, and `simulated`, `modelled`, `spmv_adaptive` and `two_gpus` judge
//! balancing on simulated machines, `divider` the division of other loops. The other modules are shared by these.

mod codelet_cases;
mod comparison;
#[path = "../fixtures/matrices.rs"]
mod matrices;
#[path = "../fixtures/own_home.rs"]
mod own_home;
mod own_process;
mod pocl;
mod random;
mod random_balancer;
mod shuffled_runtime;
mod simulated_machines;
#[path = "../fixtures/synthetic_models.rs"]
mod synthetic_models;
mod taking_part;
mod tight_runtime;
#[path = "../fixtures/tile_cases.rs"]
mod tile_cases;

mod adopted;
mod alone;
mod arrays;
mod checked_kernels;
mod cluster;
mod cluster_bands;
mod cluster_division;
mod cluster_functions;
mod cluster_kernels;
mod cluster_losses;
mod cluster_programs;
mod cluster_tasks;
mod cluster_tolerance;
mod cluster_touch;
mod corun;
mod dense_references;
mod devices;
mod divider;
mod examples;
mod graph;
mod host_tiles;
mod kernels;
mod lu;
mod modelled;
mod opencl;
mod returning_devices;
mod run_alone;
mod session;
mod session_panics;
mod simulated;
mod spmv;
mod spmv_adaptive;
mod stencil_commands;
mod two_gpus;
mod wide_halo;
