//! [`HostBackend`]: opens pools of worker threads, and implements the backend's
//! memory, queues and commands for them.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Sender, bounded};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::process::{Pid, getpid};
use rustix::thread::gettid;

use super::affinity::DriverThread;
use super::job::Job;
use super::memory_table::{MemoryTable, Pool};
use super::worker_threads::WorkerThreads;
use super::{affinity, region};
use crate::machine::host::{Host, allowed_cores};
use crate::machine::{Device, RuntimeKind};
use crate::runtime::{
    Backend, BufferId, Command, Completion, DeviceId, Devices, EventId, HostMemoryId, HostRegion,
    Notice, QueueId, QueueKind, RuntimeError,
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
    assigned: Vec<Vec<usize>>,
    workers: Arc<WorkerThreads>,
    /// The workers of each pool are the threads of one of these: shared work divides itself
    /// among them by `rayon`, and they compute its pieces where they claim parts of it.
    pools: Vec<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
    /// Each worker's thread, pool by pool.
    threads: Vec<Pid>,
    memory: MemoryTable,
    /// The thread whose affinity mask says what the process may use.
    watched: Pid,
    driver: DriverThread,
    /// Cores allowed when the pools were opened, and when last read.
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
            assigned: pools.iter().map(|pool| pool.cores.clone()).collect(),
            workers: Arc::new(WorkerThreads::new(&sizes, completions, epoch)),
            pools: Vec::new(),
            handles: Vec::new(),
            threads: Vec::new(),
            memory: MemoryTable::default(),
            watched,
            driver: DriverThread::default(),
            first_allowed: allowed.clone(),
            allowed,
            warnings: Vec::new(),
        };
        backend.start(pools)?;
        let all = vec![true; backend.threads.len()];
        let spin = all.len() <= backend.allowed.len();
        backend.workers.arrange(&all, spin);
        Ok(backend)
    }

    /// Reserves these cores, which no device was given, for the driver thread.
    pub fn sparing(mut self, cores: Vec<usize>) -> Self {
        self.driver = DriverThread::on(cores);
        self
    }

    /// What differs from the request since the pools were opened.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn start(&mut self, pools: &[PoolSpec]) -> Result<(), RuntimeError> {
        for pool in pools {
            let failed = |why: String| RuntimeError::Call {
                device: pool.name.clone(),
                call: "starting worker threads",
                why,
            };
            let first = self.threads.len();
            let (report, started) = bounded(pool.cores.len());
            let handles = &mut self.handles;
            let threads = ThreadPoolBuilder::new()
                .num_threads(pool.cores.len())
                .spawn_handler(|thread| {
                    let (index, report) = (thread.index(), report.clone());
                    let core = pool.cores[index];
                    let handle = std::thread::Builder::new()
                        .name(format!("{} #{core}", pool.name))
                        .spawn(move || {
                            let pinned = affinity::pin(None, core);
                            // The opener waits for this.
                            let _ = report.send((index, gettid(), pinned));
                            drop(report);
                            thread.run();
                        })?;
                    handles.push(handle);
                    Ok(())
                })
                .build()
                .map_err(|error| failed(error.to_string()))?;
            drop(report);
            let mut reports: Vec<_> = started.iter().collect();
            reports.sort_unstable_by_key(|(index, ..)| *index);
            for ((_, thread, pinned), core) in reports.into_iter().zip(&pool.cores) {
                self.threads.push(thread);
                if !pinned {
                    self.warnings.push(format!(
                        "{}: a worker could not be bound to core {core}; it runs on any core of the process",
                        pool.name
                    ));
                }
            }
            let workers = Arc::clone(&self.workers);
            threads.spawn_broadcast(move |context| workers.work(first + context.index()));
            self.pools.push(threads);
        }
        Ok(())
    }

    fn device(&self, device: DeviceId) -> Result<&Device, RuntimeError> {
        let found = self.devices.get(device.0);
        found.ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// Reads the affinity mask again: workers whose cores were taken away move or
    /// rest, and return with their cores.
    fn follow_affinity_mask(&mut self) {
        let allowed = allowed_cores(Some(self.watched));
        if allowed == self.allowed {
            return;
        }
        let cores: Vec<Option<usize>> = if allowed == self.first_allowed {
            self.assigned.iter().flatten().copied().map(Some).collect()
        } else {
            affinity::assign(&self.assigned, &allowed).concat()
        };
        for (thread, core) in self.threads.iter().zip(&cores) {
            if let Some(core) = core {
                // Refused when the mask changed again; the next step sees it.
                affinity::pin(Some(*thread), *core);
            }
        }
        let active: Vec<bool> = cores.iter().map(Option::is_some).collect();
        let spin = active.iter().filter(|active| **active).count() <= allowed.len();
        self.workers.arrange(&active, spin);
        self.driver.settle(&allowed, &cores);
        self.allowed = allowed;
    }
}

fn device(pool: &PoolSpec, host: &Host) -> Device {
    Device {
        // A second queue occupies the workers that the first one's last tiles
        // leave idle.
        queues: 2,
        clock_mhz: host.clock_mhz,
        driver: concat!("pdawl ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..Device::host_pool(
            RuntimeKind::Host,
            pool.name.clone(),
            host.model.clone(),
            u32::try_from(pool.cores.len()).unwrap_or(u32::MAX),
            host.memory.total(),
        )
    }
}

impl Devices for HostBackend {
    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let region = region::map(&self.device(device)?.name, bytes)?;
        let buffer = BufferId::fresh();
        self.memory.buffers.insert(buffer, region);
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.memory.buffers.remove(&buffer);
    }

    fn open_queue(&mut self, device: DeviceId, _kind: QueueKind) -> Result<QueueId, RuntimeError> {
        self.device(device)?;
        let queue = QueueId::fresh();
        self.workers.with_queue(|run| run.open(queue, device.0));
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        self.workers.with_queue(|run| run.close(queue));
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        let queued = self.workers.now();
        let index = self.workers.with_queue(|run| run.pool(queue));
        let index = index.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let pool = Pool {
            name: &self.devices[index].name,
            workers: self.assigned[index].len(),
        };
        let prepared = match &command {
            Command::Launch(launch) => self.memory.launch(pool, launch)?,
            Command::Repeat(launch) => self.memory.launch(pool, launch)?,
            Command::Series(_) => {
                return Err(RuntimeError::Unsupported {
                    device: pool.name.to_owned(),
                    what: "a series of commands with one completion",
                });
            }
            Command::Graph(_) => {
                return Err(RuntimeError::Unsupported {
                    device: pool.name.to_owned(),
                    what: "a command graph",
                });
            }
            Command::Copy { from, to, rows } => self.memory.copy(pool, *from, *to, *rows)?,
        };
        let owner = (DeviceId(index), queue);
        let event = event.unwrap_or_else(EventId::fresh);
        let completion = Completion::of(&command, event, owner, queued);
        let job = Job::new(completion, prepared, pool.workers);
        self.workers.submit(job, wait);
        Ok(())
    }

    fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::PhaseBegins(_) => self.follow_affinity_mask(),
            Notice::DrivingBegins => self.driver.begin(self.watched),
            Notice::DrivingEnds => self.driver.end(),
            Notice::BatchBegins | Notice::BatchEnds | Notice::HostMemoryOn(_) => {}
        }
    }
}

impl Backend for HostBackend {
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
}

impl Drop for HostBackend {
    fn drop(&mut self) {
        self.workers.close();
        // Ends the threads, when their workers have ended.
        self.pools.clear();
        for handle in self.handles.drain(..) {
            // Standard error has reported the panic of a worker.
            let _ = handle.join();
        }
    }
}
