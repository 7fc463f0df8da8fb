//! OpenCL devices as a [`Backend`](super::Backend).
//!
//! This folder owns every OpenCL call. The loader is searched for when the
//! program runs, so it starts where no OpenCL is installed.
//!
//! * [`discover()`] lists devices and warnings (`discover`, `warnings`), and
//!   [`examine_loader`] describes the loader (`loader`).
//! * [`OpenClBackend`] opens a selection of them: `partition` decides on
//!   sub-devices, `open` makes one context for each platform, `device` holds
//!   an open device, and `backend` implements the trait.
//! * `submit` enqueues a command through `queue` (transfers) or `launch` (kernels,
//!   which `program` compiles). `queue_program`
//!   gives each queue its own program where a driver confuses them;
//!   `without_event` saves the events of commands that a later one covers,
//!   `series` most events of commands that share a completion, and `repeat` the
//!   preparation of a launch that was made before.
//! * `completion` turns an event into a completion, with times that `stamps`
//!   reads. `bridged_event` carries an event into another
//!   platform's context, `polling` polls the events of drivers whose callbacks are
//!   costly, and `in_flight` detects commands that a driver lost silently.
//! * `ptx_compiler` compiles kernels that run through CUDA, and `identity` tells which GPU
//!   a device is.
//! * `memory` pins host memory, and lets kernels work on it where a device
//!   shares it. `handle` owns OpenCL objects, `failure` explains error codes.
//!
//! A queue in which a command failed stays failed, since everything behind the
//! failure would compute on missing data; a new queue starts afresh.

mod backend;
mod batch;
mod bridged_event;
mod completion;
mod device;
mod discover;
mod drivers;
mod failure;
mod handle;
mod identity;
mod in_flight;
mod inspect;
mod launch;
mod loader;
mod memory;
mod open;
mod partition;
mod polling;
mod program;
mod ptx_compiler;
mod queue;
mod queue_program;
mod repeat;
mod series;
mod stamps;
mod submit;
mod threads;
mod warnings;
mod without_event;

pub use backend::OpenClBackend;
pub use discover::{Discovery, Found, discover};
pub use loader::{LAYERS, ListedPlatform, Loader, examine as examine_loader};
pub use partition::{OWN, Selected};
pub use ptx_compiler::PtxCompiler;
pub use threads::confine;
