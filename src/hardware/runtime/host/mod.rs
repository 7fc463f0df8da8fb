//! The host backend: native codelets on pools of pinned worker threads.
//!
//! This folder owns the worker threads, the memory that they compute on and
//! the order of their commands. Each pool is one device.
//!
//! * [`HostBackend`] (in `backend`) checks a command, resolves its arguments to
//!   addresses and submits it as a job.
//! * `run_queue` knows which jobs may run: queues in order, waits for events.
//! * `worker_threads` holds the workers. They claim tiles of the first runnable
//!   job that has some left; those without a tile continue with the next job.
//! * `job` assigns a command's tiles (`runtime::tiles`). Each worker claims its
//!   own run of tiles first and then those of others, so that a worker that the
//!   operating system preempts delays nobody. The last one completes the job.
//!   Workers of a pool are threads of one `rayon` pool: a codelet that divides its work by
//!   itself (`HostCode::Shared`) is called once, by the worker that comes first, and those
//!   that come meanwhile compute the pieces that it leaves to them.
//! * `memory_table` knows what memory commands may name, `region` maps it.
//! * `affinity` decides which worker runs on which core, and where
//!   the thread stays that submits and waits.

pub(in crate::runtime) mod affinity;
mod backend;
mod job;
mod memory_table;
mod region;
mod run_queue;
mod worker_threads;

pub use backend::{HostBackend, PoolSpec};
#[cfg(any(feature = "cuda", feature = "opencl"))]
pub(super) use region::map as map_memory;
pub use worker_threads::SPIN;

#[cfg(test)]
mod tests;
