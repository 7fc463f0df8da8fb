//! Kernels that users bring, divided over devices: whatever the division, the
//! results are those of the undivided launch, bit for bit.

mod case;
mod harness;
mod losses;
mod refusals;
mod splits;
mod strategies;
mod suite;
mod tight;
