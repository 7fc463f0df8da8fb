//! Runs over several machines: one process on each, and all run the same program.

pub mod wire;
