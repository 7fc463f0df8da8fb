//! Opens a backend on the OpenCL CPU device, submits commands, and waits for their
//! completions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use pdawl_api::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, Shape, Value};
use pdawl_api::runtime::cuda;
use pdawl_api::runtime::opencl::{self, Selected};
use pdawl_api::runtime::{
    Backend, BufferId, Command, Completion, DeviceId, EventId, HostRegion, Launch, QueueId,
    RuntimeError, Status,
};

use crate::pocl::cpu_device;

/// Selects the CPU device, or a sub-device with this number of compute units.
pub fn select(units: Option<u32>) -> Selected {
    let cpu = cpu_device();
    Selected {
        platform: cpu.platform,
        device: cpu.device,
        units,
        own_memory: false,
    }
}

/// A backend and its completions.
pub struct Bench {
    pub backend: Box<dyn Backend>,
    pub completions: Receiver<Completion>,
    pub epoch: Instant,
    /// Completions received so far, by event.
    pub seen: HashMap<EventId, Completion>,
}

impl Bench {
    pub fn open(selection: &[Selected]) -> Self {
        let (sender, completions) = crossbeam_channel::unbounded();
        let epoch = Instant::now();
        let backend = opencl::open(selection, sender, epoch).expect("the devices open");
        Self::of(backend, completions, epoch)
    }

    fn of(backend: Box<dyn Backend>, completions: Receiver<Completion>, epoch: Instant) -> Self {
        Self {
            backend,
            completions,
            epoch,
            seen: HashMap::new(),
        }
    }

    pub fn cpu() -> Self {
        Self::open(&[select(None)])
    }

    /// The CPU device, or CUDA's first GPU if `PDAWL_TEST_GPUS` has it: for kernels that work
    /// in buffers.
    pub fn of_buffers() -> Self {
        let gpus = std::env::var("PDAWL_TEST_GPUS").unwrap_or_default();
        if !gpus.split(',').any(|gpu| gpu == "cuda0") {
            return Self::cpu();
        }
        let (sender, completions) = crossbeam_channel::unbounded();
        let epoch = Instant::now();
        let backend = cuda::open(&[0], true, sender, epoch).expect("the GPU opens");
        Self::of(backend, completions, epoch)
    }

    pub fn queue(&mut self) -> QueueId {
        self.backend.queue(DeviceId(0)).expect("a queue")
    }

    pub fn buffer(&mut self, bytes: u64) -> BufferId {
        self.backend.alloc(DeviceId(0), bytes).expect("a buffer")
    }

    /// Allocates host memory with these contents.
    pub fn host<T: bytemuck::Pod>(&mut self, contents: &[T]) -> HostRegion {
        let bytes: &[u8] = bytemuck::cast_slice(contents);
        let region = self
            .backend
            .alloc_host(bytes.len() as u64)
            .expect("host memory");
        if self.backend.devices()[0].shares_host_memory {
            assert_eq!(region.address.as_ptr().addr() % 4096, 0);
        }
        // SAFETY: the region is that long, and no command uses it yet.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), region.address.as_ptr(), bytes.len());
        }
        region
    }

    pub fn try_submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
    ) -> Result<EventId, RuntimeError> {
        let event = EventId::fresh();
        self.backend.submit(queue, command, wait, Some(event))?;
        Ok(event)
    }

    pub fn submit(&mut self, queue: QueueId, command: Command, wait: &[EventId]) -> EventId {
        self.try_submit(queue, command, wait).expect("submitted")
    }

    /// Waits for an event's completion.
    pub fn wait(&mut self, event: EventId) -> Completion {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.seen.contains_key(&event) {
            assert!(Instant::now() < deadline, "a completion within two minutes");
            self.backend.poll();
            if let Ok(completion) = self.completions.recv_timeout(Duration::from_millis(1))
                && completion.event != EventId::NOBODYS
            {
                let twice = self.seen.insert(completion.event, completion);
                assert!(twice.is_none(), "one completion a command");
            }
        }
        self.seen[&event].clone()
    }

    /// Waits for an event that must succeed.
    pub fn done(&mut self, event: EventId) -> Completion {
        let completion = self.wait(event);
        assert_eq!(completion.status, Status::Done);
        assert!(completion.queued <= completion.submitted);
        assert!(completion.submitted <= completion.started);
        assert!(completion.started <= completion.ended);
        assert!(u128::from(completion.ended) <= self.epoch.elapsed().as_nanos());
        completion
    }
}

/// The contents of host memory.
pub fn contents<T: bytemuck::Pod>(region: &HostRegion) -> Vec<T> {
    // SAFETY: the region is that long, and the tests read it only after the
    // commands that use it have ended.
    let bytes =
        unsafe { std::slice::from_raw_parts(region.address.as_ptr(), region.bytes as usize) };
    bytemuck::cast_slice(bytes).to_vec()
}

/// Copies a whole host region to the beginning of a buffer.
pub fn write(from: &HostRegion, to: BufferId) -> Command {
    Command::write(from.id, 0..from.bytes, to, 0)
}

/// Copies the beginning of a buffer to a whole host region.
pub fn read(from: BufferId, to: &HostRegion) -> Command {
    Command::read(from, 0, to.id, 0..to.bytes)
}

/// A launch of a codelet over `units` units.
pub fn launch(codelet: &Arc<Codelet>, units: u64, args: Vec<Value>) -> Command {
    Command::Launch(Launch {
        codelet: Arc::clone(codelet),
        units: 0..units,
        args,
        cost: Cost::default(),
    })
}

/// A codelet with this OpenCL source and one work-item a unit.
pub fn codelet(source: &'static str, entry: &'static str) -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "test".into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(source, "test.cl", entry, ""),
            fp64: false,
            // 64 does not divide most sizes, so the backend must adjust it.
            shape: Shape::Of(|units, _| {
                NdRange::new(vec![(units.end - units.start) as usize]).near(vec![64])
            }),
        }),
        library: None,
    })
}
