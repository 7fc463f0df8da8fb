//! An OpenCL platform and layer: unmodified OpenCL programs see one platform, `pdawl`,
//! whose command queues are mapped to the devices of all drivers.
//!
//! # Layers
//!
//! A module may use only those that follow it in this table, in its row or below. The test
//! `layers` compares the table with the imports. A folder counts as one module, but where the
//! table names a module in it.
//!
//! | module | what the row is |
//! |---|---|
//! | `layer`, `table`, `leaks`, `absent` | What loaders call, and the table of all functions. It ties the rest together: it tells parts below what to ask of those above. `layer` puts the platform in front of programs; `leaks` says which objects they have left, and `absent` answers for what this platform does not have. |
//! | `extension`, `properties`, `scheduling/calls`, `context/calls`, `queue/calls`, `event/calls`, `program/compile`, `program/calls`, `mem/calls`, `platform/calls`, `device/calls` | Functions of objects. `properties` maps functions of later versions to those of 1.2, and `scheduling/calls` has MultiCL's interface for programs that know us (`include/CL/cl_pdawl.h`). |
//! | `map`, `image`, `transfer`, `synchronize`, `launch/calls` | The kinds of commands, and images. |
//! | `submit` | Takes commands. |
//! | `schedule` | Decides where commands go: it measures kernels, predicts, and maps queues. |
//! | `divide` | Runs the parts of one launch at several places. |
//! | `issue`, `order`, `mem/bring`, `late` | Give commands to drivers where their data are, after hidden copies, in the order of their queue. |
//! | `host_view` | Results in the memory of programs for CPUs. |
//! | `report` | What all did, for `pdawl exec`. |
//! | `device_profile` | What devices can do, measured. |
//! | `command`, `event`, `launch`, `kernel` | What programs ask for. |
//! | `records` | What is known of launches, in this process and before. |
//! | `argument`, `program`, `sampler`, `mem`, `queue`, `context`, `platform`, `device` | OpenCL's objects. One of ours has an object of each driver that needs one. |
//! | `scheduling`, `answer`, `known`, `handle` | The objects that programs hold by pointer, and what they say. |
//! | `boundary`, `process_end` | The C boundary, threads, and the end of objects and of the process. |
//! | `clock`, `host_memory`, `own_queue`, `call`, `variant`, `native`, `domain`, `drivers` | Drivers: their devices, contexts, queues, events and memory, and one clock for their times. |
//! | `own_time`, `settings`, `shape`, `form`, `status`, `dispatch`, `lock` | Settings, the shapes of launches and of their parts, results, the address of the table, and locks. |
//!
//! # Locks
//!
//! A thread takes a lock only if its rank is above those of all that it holds. `lock` checks
//! that in builds with debug assertions.
//!
//! | lock | what it guards | rank |
//! |---|---|---|
//! | `ISSUING` | The giving of commands to drivers, in a context: the hidden copies of one command do not mix with those of another. Never held during a callback. | 1 |
//! | `QUEUE` | What changes in a command queue. Who holds `ISSUING` may take several. | 2 |
//! | `EVENT` | The state of an event. | 3 |
//! | `TRANSIT` | The pinned memory of a driver's context. | 4 |
//! | `COUNTS` | What a queue did. | 5 |
//! | `REPORT` | What the process did. | 6 |
//! | `KERNEL_RECORDS` | The records of a kernel's launches. | 7 |
//! | `NATIVE_KERNEL` | The arguments of a function of the program. | 8 |
//! | `KERNEL` | The drivers' kernels of a kernel. | 9 |
//! | `ARGUMENTS` | A kernel's arguments. | 10 |
//! | `SHAPES` | The shapes of a kernel's launches by device. | 11 |
//! | `PROGRAM` | The drivers' programs of a program. | 12 |
//! | `SEPARATE_GROUPS` | What a program's text tells of its kernels. | 13 |
//! | `COPIES` | The copies of a memory object. | 14 |
//! | `VIEW` | The commands that wrote a buffer in the program's memory. | 15 |
//! | `MAPS` | The mapped ranges of a memory object. | 16 |
//! | `SHOWN` | A driver's answer about a mapped image. | 17 |
//! | `VARIANTS` | The numbers of a context's variants of programs. | 18 |
//! | `RECORDS` | All records. | 19 |
//! | `RECORD` | What is known of launches with one key. | 20 |
//! | `ENTRIES` | What is known of dividing launches with one key. | 21 |
//! | `ENTRY` | What is known of dividing launches that write the same bytes. | 22 |
//! | `STORE` | The machine's file. | 23 |
//! | `BRIDGES` | The user events of other drivers that end with an event. | 24 |
//! | `OWN` | What this library does on its own. | 25 |
//! | `ENDING` | The callbacks for the end of an object. | 26 |
//! | `ONCE_ALL_ENDED` | What is done when all of several events have ended. | 27 |
//! | `HANDLES` | A context's queues and shown buffers. | 28 |
//! | `REGISTRY` | The objects of a kind that are alive. | 29 |
//!
//! # Threads
//!
//! Calls go to the drivers on the program's own threads, so that a command costs little
//! more than the driver takes. Nothing that enqueues blocks.

#![allow(clippy::missing_safety_doc)] // OpenCL's specification is each function's contract.
#![allow(clippy::too_many_arguments)] // OpenCL's signatures.

mod absent;
mod answer;
mod argument;
mod boundary;
mod call;
mod clock;
mod command;
mod context;
mod device;
mod device_profile;
mod dispatch;
mod divide;
mod domain;
mod drivers;
mod event;
mod extension;
mod form;
mod handle;
mod host_memory;
mod host_view;
mod image;
mod issue;
mod kernel;
mod known;
mod late;
mod launch;
mod layer;
mod leaks;
mod lock;
mod map;
mod mem;
mod native;
mod order;
mod own_queue;
mod own_time;
mod platform;
mod process_end;
mod program;
mod properties;
mod queue;
mod records;
mod report;
mod sampler;
mod schedule;
mod scheduling;
mod settings;
mod shape;
mod status;
mod submit;
mod synchronize;
mod table;
mod transfer;
mod variant;

#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;
