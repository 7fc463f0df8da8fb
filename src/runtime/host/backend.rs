//! The backend's face: pools, memory and commands.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Sender, bounded};
use rustix::process::{Pid, getpid};
use rustix::thread::gettid;

use super::driver::Driver;
use super::job::{Job, Label};
use super::memories::{Memories, Place};
use super::{affinity, crew::Crew, region};
use crate::machine::host::{Host, allowed_cores};
use crate::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use crate::runtime::{
    Backend, BroadcastTask, BufferId, Command, Completion, DeviceId, EventId, HostMemoryId,
    HostRegion, Notice, QueueId, RuntimeError, Tag,
};

/// A pool to open: one worker thread on each of these cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// How the user names it: `host`, `host:8`.
    pub name: String,
    /// Logical processor numbers.
    pub cores: Vec<usize>,
}

/// Native code on pools of pinned threads; each pool is a device.
pub struct HostBackend {
    devices: Vec<Device>,
    /// The cores that each pool's workers were opened with.
    homes: Vec<Vec<usize>>,
    crew: Arc<Crew>,
    workers: Vec<JoinHandle<()>>,
    /// Each worker's thread, pool by pool.
    threads: Vec<Pid>,
    memory: Memories,
    /// The thread whose affinity mask says what the process may use.
    watched: Pid,
    driver: Driver,
    /// Cores allowed when the pools were opened, and at the last look.
    first_allowed: Vec<usize>,
    allowed: Vec<usize>,
    warnings: Vec<String>,
}

impl HostBackend {
    /// Starts the pools. Completions go to `completions`, with times counted
    /// from `epoch`.
    ///
    /// # Errors
    /// When a pool has no cores, or the system starts no more threads.
    pub fn open(
        pools: &[PoolSpec],
        completions: Sender<Completion>,
        epoch: Instant,
    ) -> Result<Self, RuntimeError> {
        Self::watching(getpid(), pools, completions, epoch)
    }

    /// As [`Self::open`], following the affinity mask of the thread `watched`
    /// (that of the process is its main thread's).
    pub(super) fn watching(
        watched: Pid,
        pools: &[PoolSpec],
        completions: Sender<Completion>,
        epoch: Instant,
    ) -> Result<Self, RuntimeError> {
        if let Some(empty) = pools.iter().find(|pool| pool.cores.is_empty()) {
            return Err(RuntimeError::Selection(format!(
                "{} has no cores; give it at least one",
                empty.name
            )));
        }
        let host = Host::detect();
        let sizes: Vec<usize> = pools.iter().map(|pool| pool.cores.len()).collect();
        let allowed = allowed_cores(Some(watched));
        let mut backend = Self {
            devices: pools.iter().map(|pool| device(pool, &host)).collect(),
            homes: pools.iter().map(|pool| pool.cores.clone()).collect(),
            crew: Arc::new(Crew::new(&sizes, completions, epoch)),
            workers: Vec::new(),
            threads: Vec::new(),
            memory: Memories::default(),
            watched,
            driver: Driver::default(),
            first_allowed: allowed.clone(),
            allowed,
            warnings: Vec::new(),
        };
        backend.start(pools)?;
        let all = vec![true; backend.threads.len()];
        let spin = all.len() <= backend.allowed.len();
        backend.crew.arrange(&all, spin);
        Ok(backend)
    }

    /// Keeps whoever drives on these cores, which no device was given.
    pub fn sparing(mut self, cores: Vec<usize>) -> Self {
        self.driver = Driver::on(cores);
        self
    }

    /// What went less well than asked when the pools were opened.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn start(&mut self, pools: &[PoolSpec]) -> Result<(), RuntimeError> {
        for pool in pools {
            for &core in &pool.cores {
                let seat = self.threads.len();
                let crew = Arc::clone(&self.crew);
                let (report, started) = bounded(1);
                let worker = std::thread::Builder::new()
                    .name(format!("{} #{core}", pool.name))
                    .spawn(move || {
                        let pinned = affinity::pin(None, core);
                        // The opener waits for this; it cannot have gone.
                        let _ = report.send((gettid(), pinned));
                        crew.work(seat);
                    });
                let failed = |why: String| RuntimeError::Call {
                    device: pool.name.clone(),
                    call: "starting a worker thread",
                    why,
                };
                self.workers
                    .push(worker.map_err(|error| failed(error.to_string()))?);
                let (thread, pinned) = started.recv().map_err(|error| failed(error.to_string()))?;
                self.threads.push(thread);
                if !pinned {
                    self.warnings.push(format!(
                        "{}: a worker could not be bound to core {core}; it runs where it is let",
                        pool.name
                    ));
                }
            }
        }
        Ok(())
    }

    fn name(&self, device: DeviceId) -> String {
        self.devices
            .get(device.0)
            .map_or_else(|| "host".to_owned(), |device| device.name.clone())
    }

    fn known(&self, device: DeviceId) -> Result<(), RuntimeError> {
        match self.devices.get(device.0) {
            Some(_) => Ok(()),
            None => Err(RuntimeError::Unknown { what: "device" }),
        }
    }

    /// Reads the affinity mask again: workers whose cores were taken away move or
    /// rest, and return with their cores.
    fn follow_affinity_mask(&mut self) {
        let allowed = allowed_cores(Some(self.watched));
        if allowed == self.allowed {
            return;
        }
        let cores: Vec<Option<usize>> = if allowed == self.first_allowed {
            self.homes.iter().flatten().copied().map(Some).collect()
        } else {
            affinity::assign(&self.homes, &allowed).concat()
        };
        for (thread, core) in self.threads.iter().zip(&cores) {
            if let Some(core) = core {
                // Refused when the mask changed again; the next step sees it.
                affinity::pin(Some(*thread), *core);
            }
        }
        let active: Vec<bool> = cores.iter().map(Option::is_some).collect();
        let spin = active.iter().filter(|active| **active).count() <= allowed.len();
        self.crew.arrange(&active, spin);
        self.driver.settle(&allowed, &cores);
        self.allowed = allowed;
    }
}

fn device(pool: &PoolSpec, host: &Host) -> Device {
    Device {
        name: pool.name.clone(),
        model: host.model.clone(),
        kind: DeviceKind::Cpu,
        runtime: RuntimeKind::Host,
        compute_units: u32::try_from(pool.cores.len()).unwrap_or(u32::MAX),
        memory: host.memory.total(),
        max_allocation: host.memory.total(),
        clock_mhz: host.clock_mhz,
        shares_host_memory: true,
        fp64: true,
        sub_devices: SubDeviceSupport {
            equally: true,
            by_counts: true,
            by_affinity: false,
        },
        // A second queue fills the workers that the first one's last tiles
        // leave idle.
        queues: 2,
        driver: concat!("pdawl ", env!("CARGO_PKG_VERSION")).to_owned(),
        link_bandwidth: None,
    }
}

impl Backend for HostBackend {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn pins_host_memory(&self) -> bool {
        false
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let region = region::map("host", bytes)?;
        self.memory.regions.insert(region.id, region.clone());
        Ok(region)
    }

    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError> {
        self.memory.regions.insert(region.id, region);
        Ok(())
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        self.memory.regions.remove(&memory);
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.known(device)?;
        let region = region::map(&self.name(device), bytes)?;
        let buffer = BufferId::fresh();
        self.memory.buffers.insert(buffer, region);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.memory.buffers.remove(&buffer);
    }

    fn open_queue(&mut self, device: DeviceId, _profiling: bool) -> Result<QueueId, RuntimeError> {
        self.known(device)?;
        let queue = QueueId::fresh();
        self.crew.with_board(|board| board.open(queue, device.0));
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        self.crew.with_board(|board| board.close(queue));
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
        event: EventId,
    ) -> Result<(), RuntimeError> {
        let queued = self.crew.now();
        let device = self
            .crew
            .with_board(|board| board.pool(queue))
            .map(DeviceId)
            .ok_or(RuntimeError::Unknown { what: "queue" })?;
        let place = Place {
            name: &self.devices[device.0].name,
            workers: self.homes[device.0].len(),
        };
        let prepared = match &command {
            Command::Launch(launch) => self.memory.launch(place, launch)?,
            Command::Repeat(launch) => self.memory.launch(place, launch)?,
            Command::Series(_) => {
                return Err(RuntimeError::Unsupported {
                    device: place.name.to_owned(),
                    what: "telling of several commands as one",
                });
            }
            Command::Write { from, to } => self.memory.write(place, *from, *to)?,
            Command::Read { from, to } => self.memory.read(place, *from, *to)?,
        };
        let label = Label {
            event,
            device,
            queue,
            kind: command.kind(),
            tag,
            queued,
            bytes: command.bytes(),
        };
        let job = Job::new(
            label,
            prepared.work,
            prepared.tiles,
            prepared.keep,
            place.workers,
        );
        self.crew.submit(job, wait);
        Ok(())
    }

    fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::StepBegins(_) => self.follow_affinity_mask(),
            Notice::DrivingBegins => self.driver.begin(self.watched),
            Notice::DrivingEnds => self.driver.end(),
            Notice::BatchBegins | Notice::BatchEnds => {}
        }
    }

    fn on_each_worker(&mut self, errand: &BroadcastTask) {
        self.crew.on_each_worker(errand);
    }
}

impl Drop for HostBackend {
    fn drop(&mut self) {
        self.crew.close();
        for worker in self.workers.drain(..) {
            // A worker that panicked has told so on standard error.
            let _ = worker.join();
        }
    }
}
