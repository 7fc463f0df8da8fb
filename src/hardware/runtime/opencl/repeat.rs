//! Repeated launches.

use std::sync::Arc;

use cl3::types::cl_event;

use super::handle::{Event, Kernel};
use super::launch::{LaunchEnv, Ready, implementation, set_value, steps};
use super::queue::ClQueue;
use crate::codelet::{Memory, NdRange};
use crate::runtime::driven::{Enqueued, KeepAlive, Repeats, Wanted};
use crate::runtime::{Launch, RuntimeError};

/// A repeated launch that was prepared: its own kernel object, whose arguments are set once, so
/// that only the enqueueing is left.
pub(super) struct Repeat {
    kernel: Kernel,
    sizes: NdRange,
    local: Option<Vec<usize>>,
    /// The resources that must outlive its commands.
    uses: KeepAlive,
}

impl ClQueue {
    /// Enqueues a repeated launch.
    pub(super) fn repeat(
        &mut self,
        launch: &Arc<Launch>,
        wanted: Wanted,
        repeats: &mut Repeats<Launch, Repeat, u32>,
        env: &mut LaunchEnv<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued<Event>, RuntimeError> {
        let number = self.number(launch, env)?;
        if repeats.kept(env.index, launch, number).is_none() {
            match self.prepare(launch, number, env)? {
                Some(repeat) => {
                    let of = (launch, launch.memories());
                    repeats.keep(env.index, of, number, repeat);
                }
                None => return self.launch(launch, wanted, env, wait),
            }
        }
        let Some(repeat) = repeats.kept(env.index, launch, number) else {
            return self.launch(launch, wanted, env, wait);
        };
        let ready = Ready {
            kernel: repeat.kernel.raw(),
            sizes: &repeat.sizes,
            local: repeat.local.as_deref(),
            hosts: &[],
        };
        let has_event = wanted.begin || wanted.end;
        let events = self.enqueue(&ready, env.device, has_event, wait)?;
        let mut enqueued = Enqueued::silently(vec![Arc::clone(&repeat.uses)]);
        if let Some((own, last)) = events {
            (enqueued.begin, enqueued.end) = (Some(Arc::clone(&own)), Some(own));
            enqueued.last = Some(last);
        }
        Ok(enqueued)
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
        launch: &Launch,
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
        let own = (env.programs).kernel((source, kernel.fp64), number, device)?;
        let mut uses: Vec<KeepAlive> = Vec::new();
        uses.extend(loaded.number.iter().map(|n| Arc::clone(n) as KeepAlive));
        for (index, arg) in launch.args.iter().enumerate() {
            let mut mem = std::ptr::null_mut();
            if let Some(Memory::Device(id)) = arg.memory() {
                let buffer = env.memories.buffer(id, env.index)?;
                uses.push(Arc::clone(&buffer.memory) as KeepAlive);
                mem = buffer.memory.mem.raw();
            }
            set_value(&own, (index, arg), mem, source, device)?;
        }
        Ok(Some(Repeat {
            kernel: own,
            local: loaded.limits.local_size(&sizes, source, device)?,
            sizes,
            uses: Arc::new(uses),
        }))
    }
}
