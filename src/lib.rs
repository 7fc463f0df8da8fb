//! pdawl splits data-parallel work across the CPU and the GPUs of one machine
//! so that all of them finish together, and keeps refining the split while the
//! work runs.

pub mod balance;
pub mod codelet;
pub mod engine;
pub mod machine;
pub mod quantity;
pub mod report;
pub mod runtime;
pub mod time;
pub mod trace;
pub mod workload;
