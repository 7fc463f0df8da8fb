//! An OpenCL platform and layer: unmodified OpenCL programs see one platform, `pdawl`,
//! whose command queues are mapped to the devices of all drivers.
//!
//! * `layer` puts the platform in front of programs through the loader; `platform` is
//!   also an installable client driver. `drivers` opens the drivers of the machine.
//! * `handle` has the objects that programs hold by pointer; `status` and `answer` the
//!   forms of results at the C boundary; `table` all functions.
//! * `context`, `queue`, `mem`, `program`, `kernel`, `sampler` and `event` are OpenCL's
//!   objects. One of ours has an object of each driver that needs one.
//! * `command` gives commands to drivers where their data are; `transfer`, `rect`, `map`,
//!   `launch`, `native_kernel` and `synchronize` are the kinds of commands.
//! * `image`, `image_transfer` and `image_map` are images; `placement` sends commands that
//!   use one to the place where it lives.
//! * `order` has the order of a queue's commands over several places, `host_view` results
//!   in the memory of programs for CPUs, and `clock` one clock for all drivers' times.
//! * `properties` maps functions of later versions to those of 1.2, and `absent` answers
//!   for what this platform does not have, `version` questions about that. `ending` tells programs when an object is gone;
//!   `leaks` says what they have left, and `process_end` ends what this library does itself.
//!
//! * `scheduling` is MultiCL's interface for programs that know us (`include/CL/cl_pdawl.h`).
//! * `schedule` decides where commands go: it measures kernels, predicts, and maps queues.
//! * `divide` runs the parts of one launch at several places.
//! * `report` has what all did, for `pdawl exec`.
//!
//! Calls go to the drivers on the program's own threads, so that a command costs little
//! more than the driver takes. Nothing that enqueues blocks.

#![allow(clippy::missing_safety_doc)] // OpenCL's specification is each function's contract.
#![allow(clippy::too_many_arguments)] // OpenCL's signatures.

mod absent;
mod answer;
mod argument;
mod callbacks;
mod clock;
mod command;
mod context;
mod device;
mod divide;
mod drivers;
mod ending;
mod event;
mod extension;
mod handle;
mod host_memory;
mod host_view;
mod image;
mod image_map;
mod image_transfer;
mod kernel;
mod late;
mod launch;
mod layer;
mod leaks;
mod map;
mod mem;
mod native;
mod native_kernel;
mod order;
mod pinned;
mod placement;
mod platform;
mod process_end;
mod program;
mod properties;
mod queue;
mod rect;
mod report;
mod sampler;
mod schedule;
mod scheduling;
mod settings;
mod shape;
mod status;
mod sub_device;
mod synchronize;
mod table;
mod transfer;
mod transit;
mod variant;
mod version;
