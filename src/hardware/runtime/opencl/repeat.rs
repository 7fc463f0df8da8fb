//! Repeated launches. Each has its own kernel object, whose arguments are set once,
//! so that only the enqueueing is left.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use cl3::types::cl_event;

use super::completion::KeepAlive;
use super::handle::Kernel;
use super::launch::{LaunchEnv, Ready, implementation, set_value, steps};
use super::queue::{Enqueued, OpenQueue};
use crate::codelet::{Memory, NdRange};
use crate::runtime::{IdMap, Launch, RuntimeError};

/// A prepared launch.
struct Repeat {
    /// Held so that its address stays unique.
    launch: Arc<Launch>,
    kernel: Kernel,
    sizes: NdRange,
    local: Option<Vec<usize>>,
    /// The resources that must outlive its commands.
    uses: KeepAlive,
}

/// Prepared launches by device, address of the launch, and number of the program
/// (see [`super::queue_program`]).
#[derive(Default)]
pub(super) struct Repeats(IdMap<(usize, usize, u32), Repeat>);

impl Repeats {
    /// Drops the launches that use memory about to be freed, and those that nobody
    /// else holds any more.
    pub(super) fn forget(&mut self, memory: Memory) {
        self.0.retain(|_, repeat| {
            let launch = &repeat.launch;
            Arc::strong_count(launch) > 1 && !launch.memories().any(|own| own == memory)
        });
    }
}

impl OpenQueue {
    /// Enqueues a repeated launch.
    pub(super) fn repeat(
        &mut self,
        launch: &Arc<Launch>,
        with_event: bool,
        repeats: &mut Repeats,
        env: &mut LaunchEnv<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let number = self.number(launch, env)?;
        let key = (self.device, Arc::as_ptr(launch).addr(), number);
        let repeat = match repeats.0.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match self.prepare(launch, number, env)? {
                Some(repeat) => place.insert(repeat),
                None => return self.launch(launch, with_event, env, wait),
            },
        };
        let ready = Ready {
            kernel: repeat.kernel.raw(),
            sizes: &repeat.sizes,
            local: repeat.local.as_deref(),
            hosts: &[],
        };
        Ok(Enqueued {
            events: self.enqueue(&ready, env.device, with_event, wait)?,
            keep_alive: vec![Arc::clone(&repeat.uses)],
        })
    }

    /// The number of this queue's program of a kernel.
    fn number(&mut self, launch: &Launch, env: &mut LaunchEnv<'_>) -> Result<u32, RuntimeError> {
        let own = env.device.program_per_queue;
        let Some(kernel) = launch.codelet.opencl.as_ref().filter(|_| own) else {
            return Ok(0);
        };
        let kernel = self.load(kernel, env)?;
        let number = &self.kernels[&kernel.source].number;
        Ok(number.as_ref().map_or(0, |number| number.number()))
    }

    /// Prepares a launch; `None` for one in host memory, which is bound to the
    /// queue's own views, and for a series of kernels, which use the queue's own memory.
    fn prepare(
        &mut self,
        launch: &Arc<Launch>,
        number: u32,
        env: &mut LaunchEnv<'_>,
    ) -> Result<Option<Repeat>, RuntimeError> {
        let device = env.device;
        let kernel = self.load(implementation(&launch.codelet, device)?, env)?;
        if kernel.scratch(&launch.args).is_some() {
            return Ok(None);
        }
        let Some((source, sizes)) = steps(kernel, launch).pop() else {
            return Ok(None);
        };
        if launch.memories().any(|m| matches!(m, Memory::Host(_))) {
            return Ok(None);
        }
        let loaded = &self.kernels[source];
        let programs = &mut env.programs;
        let own = programs.kernel((source, kernel.fp64), number, device, env.devices)?;
        let mut uses: Vec<KeepAlive> = Vec::new();
        uses.extend(loaded.number.iter().map(|n| Arc::clone(n) as KeepAlive));
        for (index, arg) in launch.args.iter().enumerate() {
            let mut mem = std::ptr::null_mut();
            if let Some(Memory::Device(id)) = arg.memory() {
                let buffer = env.memories.buffer(id, self.device)?;
                uses.push(Arc::clone(&buffer.mem) as KeepAlive);
                mem = buffer.mem.raw();
            }
            set_value(&own, (index, arg), mem, source, device)?;
        }
        Ok(Some(Repeat {
            launch: Arc::clone(launch),
            kernel: own,
            local: loaded.limits.local_size(&sizes, source, device)?,
            sizes,
            uses: Arc::new(uses),
        }))
    }
}
