//! The host backend: native codelets on pools of pinned threads.
//!
//! This folder owns the worker threads, the memory that they compute on and
//! the order of their commands. Each pool is one device.
//!
//! * [`HostBackend`] (in `backend`) checks a command, resolves its arguments to
//!   addresses and hands it over as a job.
//! * `board` knows which jobs may run: queues in order, waits for events.
//! * `crew` is the workers: they claim tiles of the first runnable job that
//!   has some left, and those without a tile go on to the next job.
//! * `errand` is what each of them does once, beside its tiles.
//! * `job` hands a command's tiles (`runtime::tiles`) out, first to each worker
//!   from a run of its own and then from the others', so that one that the
//!   operating system holds back delays nobody; and tells the last one.
//! * `memories` knows what memory commands may name, `region` maps it.
//! * `affinity` decides which worker runs on which core, and `driver` where the
//!   thread stays that submits and waits.

mod affinity;
mod backend;
mod board;
mod crew;
mod driver;
mod errand;
mod job;
mod memories;
mod region;

pub use backend::{HostBackend, PoolSpec};
pub use crew::SPIN;

#[cfg(test)]
mod tests;
