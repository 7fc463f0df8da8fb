//! Task graphs on every kind of device.
//!
//! `random` makes graphs whose kernels mix integers, so that a result tells
//! every kernel and every version that went into it, and computes them one
//! kernel after the other; `run` executes them and compares. `simulated` and
//! `devices` are the properties in the simulator and on real devices, `losses`
//! what happens when one is lost, `limits` what is copied and what cannot be.

mod adaptive;
mod devices;
mod limits;
mod losses;
mod random;
mod run;
mod simulated;
