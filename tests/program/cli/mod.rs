//! The program as its users meet it.
//!
//! `usage` is what it says of itself and of wrong words, `machines` and
//! `devices` what it lists, `runs` what it runs and compares, `output` where
//! all that is written, and `interrupts` how it is ended early.

mod devices;
mod interrupts;
mod machines;
mod output;
mod runs;
mod usage;

const SIMULATED: &str = "run stencil --machine k40 --size 256 --steps 5";
