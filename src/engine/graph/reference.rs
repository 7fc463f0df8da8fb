//! What a graph computes, one kernel after the other on one device: each with
//! buffers of its own, written before it and read after it, and nothing in
//! flight in between. Slow, and with nothing that could go wrong in the order.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::codelet::{Memory, Value};
use crate::graph::{Argument, Contents, DatumId, TaskGraph};
use crate::runtime::{
    BufferId, Command, DeviceId, DeviceSpan, HostMemoryId, HostSpan, Launch, QueueId, Runtime,
    RuntimeError, Status, Tag,
};

use super::GraphRunError;

/// The contents of every datum when all kernels have run, by its id; `None` if
/// `stop` was set meanwhile.
///
/// # Errors
/// When memory does not suffice, or a kernel does not compile or fails.
pub fn reference(
    runtime: &mut dyn Runtime,
    graph: &TaskGraph,
    device: usize,
    stop: &AtomicBool,
) -> Result<Option<Vec<Vec<u8>>>, GraphRunError> {
    let given = |datum: &crate::graph::Datum| {
        let mut bytes = vec![0; datum.bytes as usize];
        match &datum.contents {
            Some(Contents::Bytes(given)) => bytes.copy_from_slice(given),
            Some(Contents::Filled(fill)) => fill(&mut bytes),
            None => {}
        }
        bytes
    };
    let mut data: Vec<Vec<u8>> = graph.data().iter().map(given).collect();
    let device = DeviceId(device);
    let shares = (runtime.devices().get(device.0)).ok_or(GraphRunError::NoDevice)?;
    let shares = shares.shares_host_memory;
    let queue = runtime.queue(device)?;
    let mut one = One {
        runtime,
        device,
        queue,
        shares,
        memories: Vec::new(),
    };
    let mut done = Ok(());
    let mut interrupted = false;
    for kernel in graph.order() {
        interrupted = stop.load(Ordering::Relaxed);
        if interrupted {
            break;
        }
        done = one.kernel(graph, kernel.0, &mut data);
        one.release();
        if done.is_err() {
            break;
        }
    }
    one.runtime.free_queue(queue);
    done.map(|()| (!interrupted).then_some(data))
}

/// One kernel at a time.
struct One<'a> {
    runtime: &'a mut dyn Runtime,
    device: DeviceId,
    queue: QueueId,
    shares: bool,
    memories: Vec<(HostMemoryId, Option<BufferId>)>,
}

impl One<'_> {
    fn kernel(
        &mut self,
        graph: &TaskGraph,
        index: usize,
        data: &mut [Vec<u8>],
    ) -> Result<(), GraphRunError> {
        let kernel = &graph.kernels()[index];
        let mut args = Vec::new();
        let mut written: Vec<(DatumId, usize)> = Vec::new();
        for argument in &kernel.arguments {
            let (from, to) = match argument {
                Argument::Value(value) => {
                    args.push(*value);
                    continue;
                }
                Argument::Input(datum) => (Some(*datum), None),
                Argument::Output(datum) => (None, Some(*datum)),
                Argument::InOut { from, to } => (Some(*from), Some(*to)),
            };
            let Some(datum) = from.or(to) else { continue };
            let memory = self.memory(&data[datum.0])?;
            written.extend(to.map(|to| (to, self.memories.len() - 1)));
            args.push(Value::Memory(memory));
        }
        self.submit(Command::Launch(Launch {
            codelet: std::sync::Arc::clone(&kernel.codelet),
            units: kernel.units.clone(),
            args,
            cost: kernel.cost,
        }))?;
        for (datum, memory) in written {
            let (host, buffer) = self.memories[memory];
            let bytes = data[datum.0].len();
            if let Some(buffer) = buffer {
                self.submit(Command::Read {
                    from: DeviceSpan { buffer, offset: 0 },
                    to: span(host, bytes),
                })?;
            }
            data[datum.0] = self.runtime.host_bytes(host)?[..bytes].to_vec();
        }
        Ok(())
    }

    /// Memory with these contents, where the device computes.
    fn memory(&mut self, contents: &[u8]) -> Result<Memory, GraphRunError> {
        let bytes = contents.len();
        let host = self.runtime.alloc_host(bytes as u64)?;
        self.memories.push((host, None));
        self.runtime.host_bytes(host)?[..bytes].copy_from_slice(contents);
        if self.shares {
            return Ok(Memory::Host(host));
        }
        let buffer = self.runtime.alloc(self.device, bytes as u64)?;
        if let Some(last) = self.memories.last_mut() {
            last.1 = Some(buffer);
        }
        self.submit(Command::Write {
            from: span(host, bytes),
            to: DeviceSpan { buffer, offset: 0 },
        })?;
        Ok(Memory::Device(buffer))
    }

    /// A command, and its end.
    fn submit(&mut self, command: Command) -> Result<(), GraphRunError> {
        let tag = Tag {
            step: 0,
            label: "reference".into(),
            units: 0..1,
        };
        self.runtime.submit(self.queue, command, &[], tag)?;
        while let Some(completion) = self.runtime.wait(None)? {
            if let Status::Failed(why) | Status::DeviceLost(why) = completion.status {
                return Err(RuntimeError::Call {
                    device: self.runtime.devices()[self.device.0].name.clone(),
                    call: "the reference",
                    why,
                }
                .into());
            }
        }
        Ok(())
    }

    fn release(&mut self) {
        for (host, buffer) in self.memories.drain(..) {
            if let Some(buffer) = buffer {
                self.runtime.free(buffer);
            }
            self.runtime.free_host(host);
        }
    }
}

fn span(memory: HostMemoryId, bytes: usize) -> HostSpan {
    HostSpan {
        memory,
        offset: 0,
        bytes: bytes as u64,
    }
}
