//! Kernels of users, divided over devices: for every division the results equal
//! those of the undivided launch, bit for bit.

mod case;
mod changing;
pub mod harness;
mod losses;
mod refusals;
mod splits;
mod strategies;
pub mod suite;
mod tight;
