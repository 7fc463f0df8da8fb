//! OpenCL devices as a [`Backend`](super::Backend).
//!
//! This folder owns every OpenCL call. The loader is looked for when the
//! program runs, so it starts where no OpenCL is installed.
//!
//! * [`discover()`] lists devices and what would hurt (`discover`, `warnings`).
//! * [`OpenClBackend`] opens a selection of them: `partition` decides on
//!   sub-devices, `open` makes one context for each platform, `device` holds
//!   what is open, and `backend` puts it behind the trait.
//! * A command goes through `queue` (transfers) or `launch` (kernels, which
//!   `program` compiles and `shape` fits to the device; `apart` keeps queues'
//!   programs from one another where a driver confuses them; `quiet` spares an
//!   event where nobody is to hear of the end, `series` some of several that are
//!   told of as one, and `repeat` what was done before). It leaves a token with
//!   the driver, out of which `completion` makes the completion, with times
//!   that `clock` brings onto the runtime's clock. `bridge` carries an event
//!   into another platform's context. `watch` looks for the ends of commands
//!   whose driver had better not call back. `flight` knows what is on its way, and
//!   finds out what a driver has lost without a word.
//! * `memory` pins host memory, and lets kernels work on it where a device
//!   shares it. `handle` owns OpenCL objects, `failure` explains error codes.
//!
//! A queue in which a command failed stays failed, since everything behind the
//! failure would compute on what is not there; a new queue starts afresh.

mod apart;
mod backend;
mod batch;
mod bridge;
mod clock;
mod completion;
mod device;
mod discover;
mod failure;
mod flight;
mod handle;
mod inspect;
mod launch;
mod memory;
mod open;
mod partition;
mod program;
mod queue;
mod quiet;
mod repeat;
mod series;
mod shape;
mod threads;
mod warnings;
mod watch;

pub use backend::OpenClBackend;
pub use discover::{Discovery, Found, discover};
pub use partition::{OWN, Selected};
pub use threads::confine;
