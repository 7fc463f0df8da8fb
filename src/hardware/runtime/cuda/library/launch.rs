//! Prepares a launch by a library: its calls, and the kernels of ours between them.

use std::sync::Arc;

use super::calls::{Place, prepare};
use crate::codelet::LibraryKernel;
use crate::codelet::library::{LibraryLaunch, LibraryStep};
use crate::runtime::cuda::launch::{
    Argument, LaunchEnv, LaunchPart, Prepared, QueueMemory, lend, step, value,
};
use crate::runtime::driven::KeepAlive;
use crate::runtime::{Launch, RuntimeError};

/// Prepares a launch by calls of a library.
///
/// # Errors
/// Why the library does not serve, or what is wrong with the launch or the device.
pub(in crate::runtime::cuda) fn prepare_library(
    launch: &Launch,
    (kernel, described): (&LibraryKernel, &LibraryLaunch),
    scratch: &mut QueueMemory,
    env: &mut LaunchEnv<'_>,
) -> Result<Result<Prepared, String>, RuntimeError> {
    let mut keep_alive: Vec<KeepAlive> = Vec::new();
    let mut values = Vec::with_capacity(launch.args.len() + 1);
    for arg in &launch.args {
        values.push(value(arg, &mut keep_alive, env)?);
    }
    let addresses: Vec<u64> = (values.iter())
        .map(|value| match value {
            Argument::Memory(address) => *address,
            Argument::Plain(_) | Argument::Local(_) => 0,
        })
        .collect();
    let mut place = Place {
        arguments: &addresses,
        scratch: 0,
    };
    if described.scratch > 0 {
        let memory = match lend(scratch, described.scratch, env.device) {
            Ok(memory) => memory,
            Err(error) => return or_ours(error),
        };
        place.scratch = memory.address();
        values.push(Argument::Memory(memory.address()));
        keep_alive.push(memory as KeepAlive);
    }
    let mut prepared = Prepared {
        parts: Vec::new(),
        harmless: 0,
        room: 0,
        is_of_queue: described.scratch > 0,
        keep_alive: Arc::new(()),
    };
    let mut is_harmless = true;
    for one in &described.steps {
        match one {
            LibraryStep::Kernel {
                kernel: index,
                sizes,
                prepares,
            } => {
                let source = &kernel.kernels[*index];
                let to = (&mut keep_alive, &mut prepared.parts);
                match step(source, sizes, &values, to, env) {
                    Ok(()) => {}
                    Err(error) => return or_ours(error),
                }
                is_harmless &= prepares;
            }
            LibraryStep::Call(call) => {
                let Some(libraries) = env.libraries.as_deref_mut() else {
                    return Ok(Err("CUDA's libraries are not used".to_owned()));
                };
                let on = (env.index, &*env.device);
                let call = match prepare(libraries, on, call, &place) {
                    Ok(call) => call,
                    Err(why) => return Ok(Err(why)),
                };
                prepared.room = prepared.room.max(call.room);
                prepared.parts.push(LaunchPart::Call(call));
                is_harmless = false;
            }
        }
        if is_harmless {
            prepared.harmless = prepared.parts.len();
        }
    }
    prepared.keep_alive = Arc::new(keep_alive);
    Ok(Ok(prepared))
}

/// What our own implementation may still be able to do without, as a refusal.
fn or_ours<T>(error: RuntimeError) -> Result<Result<T, String>, RuntimeError> {
    match error {
        RuntimeError::DeviceLost { .. } => Err(error),
        other => Ok(Err(other.to_string())),
    }
}
