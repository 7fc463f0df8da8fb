//! Devices to test on, and completions to wait for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use pdawl::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, Shape, Value};
use pdawl::machine::DeviceKind;
use pdawl::runtime::opencl::{Found, OpenClBackend, Selected, discover};
use pdawl::runtime::{
    Backend, BufferId, Command, Completion, DeviceId, DeviceSpan, EventId, HostRegion, HostSpan,
    Launch, QueueId, RuntimeError, Status, Tag,
};

/// The OpenCL CPU device that every test here needs.
pub fn cpu() -> Found {
    let discovery = discover();
    discovery
        .devices
        .into_iter()
        .find(|found| found.info.kind == DeviceKind::Cpu)
        .unwrap_or_else(|| {
            panic!(
                "these tests need an OpenCL CPU device: apt-get install pocl-opencl-icd \
                 (found none; {:?})",
                discovery.warnings
            )
        })
}

/// A selection of the CPU device, or of a part of it.
pub fn select(units: Option<u32>) -> Selected {
    let cpu = cpu();
    Selected {
        platform: cpu.platform,
        device: cpu.device,
        units,
        own_memory: false,
    }
}

/// A backend and its completions.
pub struct Bench {
    pub backend: OpenClBackend,
    pub completions: Receiver<Completion>,
    pub epoch: Instant,
    /// What came, by event.
    pub seen: HashMap<EventId, Completion>,
}

impl Bench {
    pub fn open(selection: &[Selected]) -> Self {
        let (sender, completions) = crossbeam_channel::unbounded();
        let epoch = Instant::now();
        let backend = OpenClBackend::open(selection, sender, epoch).expect("the devices open");
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

    pub fn queue(&mut self) -> QueueId {
        self.backend.queue(DeviceId(0)).expect("a queue")
    }

    pub fn buffer(&mut self, bytes: u64) -> BufferId {
        self.backend.alloc(DeviceId(0), bytes).expect("a buffer")
    }

    /// Host memory with these contents.
    pub fn host<T: bytemuck::Pod>(&mut self, contents: &[T]) -> HostRegion {
        let bytes: &[u8] = bytemuck::cast_slice(contents);
        let region = self
            .backend
            .alloc_host(bytes.len() as u64)
            .expect("host memory");
        assert_eq!(region.address.as_ptr().addr() % 4096, 0);
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
        let tag = Tag {
            step: 0,
            label: "test".into(),
            units: 0..1,
        };
        self.backend.submit(queue, command, wait, tag, event)?;
        Ok(event)
    }

    pub fn submit(&mut self, queue: QueueId, command: Command, wait: &[EventId]) -> EventId {
        self.try_submit(queue, command, wait).expect("submitted")
    }

    /// Waits for an event's completion.
    pub fn wait(&mut self, event: EventId) -> Completion {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.seen.contains_key(&event) {
            let completion = self
                .completions
                .recv_deadline(deadline)
                .expect("a completion within two minutes");
            let twice = self.seen.insert(completion.event, completion);
            assert!(twice.is_none(), "one completion a command");
        }
        self.seen[&event].clone()
    }

    /// Waits for an event that must end well.
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
    // SAFETY: the region is that long, and the tests look at it only after
    // the commands that use it have ended.
    let bytes =
        unsafe { std::slice::from_raw_parts(region.address.as_ptr(), region.bytes as usize) };
    bytemuck::cast_slice(bytes).to_vec()
}

/// All of a host region to the begin of a buffer.
pub fn write(from: &HostRegion, to: BufferId) -> Command {
    Command::Write {
        from: span(from),
        to: DeviceSpan {
            buffer: to,
            offset: 0,
        },
    }
}

/// The begin of a buffer to all of a host region.
pub fn read(from: BufferId, to: &HostRegion) -> Command {
    Command::Read {
        from: DeviceSpan {
            buffer: from,
            offset: 0,
        },
        to: span(to),
    }
}

fn span(region: &HostRegion) -> HostSpan {
    HostSpan {
        memory: region.id,
        offset: 0,
        bytes: region.bytes,
    }
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

/// A codelet of one's own: one work-item a unit.
pub fn codelet(source: &'static str, entry: &'static str) -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "test".into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(source, "test.cl", entry, ""),
            fp64: false,
            // Does not divide most sizes: the backend has to fit it.
            shape: Shape::Of(|units, _| {
                NdRange::new(vec![(units.end - units.start) as usize]).near(vec![64])
            }),
        }),
    })
}

/// Whether this process runs the test `name` alone. Where it does not, the
/// test is run, and has passed, in a process of its own: its figures would
/// suffer from what other tests do meanwhile.
pub fn alone(name: &str) -> bool {
    const MARK: &str = "PDAWL_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let output = again(name, MARK, "1");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Runs one of these tests in a new process, with a variable set.
pub fn again(name: &str, variable: &str, value: &str) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().expect("this program"))
        .args([name, "--exact", "--nocapture"])
        .env(variable, value)
        .output()
        .expect("this program runs again")
}
