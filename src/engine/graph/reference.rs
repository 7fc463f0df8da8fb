//! The sequential reference of a graph: one kernel after the other on one device,
//! each with buffers of its own, which are written before it and read after it.
//! Nothing else is in flight, so the order cannot be wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::GraphRunError;
use crate::codelet::Value;
use crate::runtime::{Command, DeviceId, Launch, Runtime};
use crate::scope::RuntimeScope;
use pdawl_core::graph::{Argument, KernelId, TaskGraph};

/// A moment of a launch, for somebody who tells a compiler's failure from a kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The kernel is compiled and its buffers, the last memory that was allocated, are
    /// filled. The launch follows.
    Begins,
    /// It has ended well, and its buffers are still there.
    Ended,
}

/// The contents of every datum, by id, when all kernels have run; `None` if `stop`
/// was set meanwhile. Data begin with their contents, or with zeros.
///
/// # Errors
/// When memory does not suffice, and when a kernel does not compile or fails.
pub fn reference(
    runtime: &mut dyn Runtime,
    graph: &TaskGraph,
    device: usize,
    stop: &AtomicBool,
) -> Result<Option<Vec<Vec<u8>>>, GraphRunError> {
    watched(runtime, graph, device, stop, &mut |_, _| {})
}

/// As [`reference()`]. `watch` receives every launch.
///
/// # Errors
/// As [`reference()`].
pub fn watched(
    runtime: &mut dyn Runtime,
    graph: &TaskGraph,
    device: usize,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(KernelId, Moment),
) -> Result<Option<Vec<Vec<u8>>>, GraphRunError> {
    if device >= runtime.devices().len() {
        return Err(GraphRunError::NoDevice);
    }
    let device = DeviceId(device);
    let mut data: Vec<Vec<u8>> = Vec::new();
    for datum in graph.data() {
        let mut bytes = vec![0; datum.bytes as usize];
        if let Some(contents) = &datum.contents {
            contents.write(&mut bytes);
        }
        data.push(bytes);
    }
    let mut scope = RuntimeScope::on(runtime);
    let queue = scope.queue(device)?;
    for id in graph.order() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let kernel = graph.kernel(*id);
        let mut arrays = RuntimeScope::on(&mut *scope);
        let mut args = Vec::new();
        let mut outputs = Vec::new();
        for argument in &kernel.arguments {
            if let Argument::Value(value) = argument {
                args.push(*value);
            }
            let Some(datum) = argument.reads().or(argument.writes()) else {
                continue;
            };
            let contents = &data[datum.0];
            let array = arrays.array(device, contents.len() as u64)?;
            arrays.fill(queue, &array, contents)?;
            outputs.extend(argument.writes().map(|datum| (datum, array)));
            args.push(Value::Memory(array.memory()));
        }
        let launch = Launch {
            codelet: Arc::clone(&kernel.codelet),
            units: kernel.units.clone(),
            args,
            cost: kernel.cost,
        };
        arrays.load(queue, &kernel.codelet)?;
        watch(*id, Moment::Begins);
        arrays.run(queue, Command::Launch(launch))?;
        watch(*id, Moment::Ended);
        for (datum, array) in outputs {
            data[datum.0] = arrays.contents(queue, &array)?.to_vec();
        }
    }
    Ok(Some(data))
}
