//! An OpenCL platform and layer: unmodified OpenCL programs see one platform, `pdawl`,
//! whose command queues are mapped to the devices of all drivers.
//!
//! * `layer` puts the platform in front of programs through the loader; `platform` is
//!   also an installable client driver. `drivers` opens the drivers of the machine.
//! * `handle` has the objects that programs hold by pointer; `status` and `answer` the
//!   forms of results at the C boundary; `table` all functions.
//! * `context`, `queue`, `mem`, `program`, `kernel`, `sampler` and `event` are OpenCL's
//!   objects. One of ours has an object of each driver that needs one.
//! * `command` gives commands to drivers where their data are; `transfer`, `map`,
//!   `launch` and `synchronize` are the kinds of commands.
//!
//! * `schedule` decides where commands go: it measures kernels, predicts, and maps queues.
//! * `report` has what all did, for `pdawl exec`.
//!
//! Calls go to the drivers on the program's own threads, so that a command costs little
//! more than the driver takes. Nothing that enqueues blocks.

#![allow(clippy::missing_safety_doc)] // OpenCL's specification is each function's contract.
#![allow(clippy::too_many_arguments)] // OpenCL's signatures.

mod answer;
mod callbacks;
mod command;
mod context;
mod device;
mod drivers;
mod event;
mod extension;
mod handle;
mod host_memory;
mod kernel;
mod launch;
mod layer;
mod map;
mod mem;
mod native;
mod platform;
mod program;
mod queue;
mod report;
mod sampler;
mod schedule;
mod settings;
mod status;
mod synchronize;
mod table;
mod transfer;
mod variant;
