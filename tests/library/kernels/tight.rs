//! A run on a device whose memory is just large enough for a kernel's buffers.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use pdawl::balance::Strategy;
use pdawl::codelet::Codelet;
use pdawl::machine::Device;
use pdawl::runtime::union::Union;
use pdawl::runtime::{
    BufferId, Command, Completion, DeviceId, Devices, EventId, HostMemoryId, Nanos, QueueId,
    QueueKind, Runtime, RuntimeError,
};

use super::harness::{corun, examined, open, seed};
use super::suite::Case;

/// A runtime whose devices have `left` bytes of memory together.
struct Tight {
    inner: Union,
    left: u64,
    taken: HashMap<BufferId, u64>,
}

impl Devices for Tight {
    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.left = (self.left.checked_sub(bytes)).ok_or_else(|| RuntimeError::OutOfMemory {
            device: "tight".to_owned(),
            requested: bytes,
            why: format!("{} are free", self.left),
        })?;
        let buffer = self.inner.alloc(device, bytes)?;
        self.taken.insert(buffer, bytes);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.left += self.taken.remove(&buffer).unwrap_or(0);
        self.inner.free(buffer);
    }

    fn devices(&self) -> &[Device] {
        self.inner.devices()
    }

    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError> {
        self.inner.open_queue(device, kind)
    }

    fn free_queue(&mut self, queue: QueueId) {
        self.inner.free_queue(queue);
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        self.inner.load(queue, codelet)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        self.inner.submit(queue, command, wait, event)
    }
}

impl Runtime for Tight {
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostMemoryId, RuntimeError> {
        self.inner.alloc_host(bytes)
    }

    fn free_host(&mut self, memory: HostMemoryId) {
        self.inner.free_host(memory);
    }

    fn host_range(
        &mut self,
        memory: HostMemoryId,
        range: Range<u64>,
    ) -> Result<&mut [u8], RuntimeError> {
        self.inner.host_range(memory, range)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, RuntimeError> {
        self.inner.wait(timeout)
    }
}

#[test]
fn a_comparison_needs_no_more_memory_than_the_run() {
    let case = Case {
        name: "twice",
        source: "__kernel void k(__global const int *in, __global int *out) {
            out[get_global_id(0)] = 2 * in[get_global_id(0)];
        }",
        dimension: 1,
        global: "[n]",
        local: "",
        inputs: &[("int", "n", 0, true)],
        outputs: &[("int", "n", 1, true)],
        io: &[],
        values: &[],
        locals: &[],
        macros: &[],
        symbols: &[("n", 1009)],
        sliced: &[],
    };
    let mut runtime = Tight {
        inner: open(&[true]),
        left: 2 * 4 * 1009,
        taken: HashMap::new(),
    };
    let user = examined(&mut runtime, &case, seed()).user;
    let strategy: Strategy = "cpu".parse().expect("a strategy");
    let (outcome, _) = corun(&mut runtime, &user, &strategy, 2).expect("a run");
    assert_eq!(outcome.verified, Some(true));
    assert!(runtime.taken.is_empty(), "memory was kept");
}
