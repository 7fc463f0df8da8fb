//! The objects that a program leaves alive.
//!
//! With `PDAWL_CHECK_LEAKS` in the environment, their numbers are printed when the process
//! ends. Objects that only wait for drivers' last callbacks get a moment to go.

use std::thread;
use std::time::Duration;

use crate::context::Context;
use crate::device::Device;
use crate::event::Event;
use crate::handle::Kind;
use crate::kernel::Kernel;
use crate::mem::Mem;
use crate::platform::platform;
use crate::process_end;
use crate::program::Program;
use crate::queue::Queue;
use crate::sampler::Sampler;

/// Has the numbers printed when the process ends, if the user wants them.
pub fn watch() {
    if std::env::var_os("PDAWL_CHECK_LEAKS").is_some() {
        // SAFETY: the function stays loaded: drivers' handles keep this library in use.
        unsafe { libc::atexit(print) };
    }
}

/// How many objects are alive, by kind, in words.
fn alive() -> Vec<String> {
    let own = platform().devices.len();
    let numbers = [
        ("contexts", Context::registry().count()),
        ("command queues", Queue::registry().count()),
        ("memory objects", Mem::registry().count()),
        ("programs", Program::registry().count()),
        ("kernels", Kernel::registry().count()),
        ("samplers", Sampler::registry().count()),
        ("events", Event::registry().count()),
        (
            "parts of devices",
            Device::registry().count().saturating_sub(own),
        ),
    ];
    let left = numbers.into_iter().filter(|(_, number)| *number > 0);
    left.map(|(kind, number)| format!("{number} {kind}"))
        .collect()
}

extern "C" fn print() {
    if process_end::is_forked() {
        return;
    }
    for _ in 0..100 {
        if alive().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let left = alive();
    match left.is_empty() {
        true => eprintln!("pdawl: no objects are left"),
        false => eprintln!("pdawl: objects are left: {}", left.join(", ")),
    }
}
