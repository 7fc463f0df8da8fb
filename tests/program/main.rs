//! Tests that start the program `pdawl` as its users do.
//!
//! `cli` covers the command line itself; each of the other modules covers a
//! command or a kind of file. `command` starts the program, and
//! `synthetic_models` provides models.

mod command;
#[path = "../fixtures/own_home.rs"]
mod own_home;
#[path = "../fixtures/synthetic_models.rs"]
mod synthetic_models;

mod adaptive;
mod best_part;
mod chart;
mod cli;
mod cli_spmv;
mod cluster;
mod clusters;
mod dense;
mod drivers;
mod exec;
mod matrix;
mod models;
mod mpi;
mod other_drivers;
mod packaged;
mod places;
mod policies;
mod precision;
mod predict;
mod product_models;
mod profile;
mod report_page;
mod schemas;
mod specifications;
mod stencil_files;
mod stencil_until;
mod superstep_auto;
mod tasks;
mod tutorial;
mod ui;
