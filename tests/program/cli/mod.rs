//! The command line.
//!
//! `usage` covers help and wrong arguments, `machines` and `devices` the lists,
//! `runs` runs and comparisons, `output` files and pipes, and `interrupts`
//! Ctrl-C.

mod devices;
mod interrupts;
mod machines;
mod output;
mod runs;
mod usage;

const SIMULATED: &str = "run stencil --machine k40 --size 256 --steps 5";
