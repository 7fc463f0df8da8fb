//! Launches that are made again and again: each has a kernel object of its own,
//! whose arguments were set once, so that nothing but the enqueueing is left.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use cl3::types::cl_event;

use super::completion::Keep;
use super::handle::Kernel;
use super::launch::{Ready, Site, local_size, set_value, sizes};
use super::queue::{Enqueued, OpenQueue};
use crate::codelet::{Memory, NdRange, Value};
use crate::runtime::{IdMap, Launch, RuntimeError};

/// A launch that is ready.
struct Repeat {
    /// Keeps its address from being another's.
    launch: Arc<Launch>,
    kernel: Kernel,
    sizes: NdRange,
    local: Option<Vec<usize>>,
    /// What must outlive its commands.
    uses: Keep,
}

/// By device, address of the launch, and number of the program, which is the
/// queue's own where that is needed (see [`super::apart`]).
#[derive(Default)]
pub(super) struct Repeats(IdMap<(usize, usize, u32), Repeat>);

impl Repeats {
    /// Memory is about to be freed: drops what uses it, and what nobody else
    /// holds any more.
    pub(super) fn forget(&mut self, memory: Memory) {
        self.0.retain(|_, repeat| {
            let launch = &repeat.launch;
            Arc::strong_count(launch) > 1 && !launch.memories().any(|own| own == memory)
        });
    }
}

impl OpenQueue {
    /// Enqueues a launch that is made again and again, with an event if its end
    /// is `heard` of.
    pub(super) fn repeat(
        &mut self,
        launch: &Arc<Launch>,
        heard: bool,
        repeats: &mut Repeats,
        site: &mut Site<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let number = self.number(launch, site)?;
        let key = (self.device, Arc::as_ptr(launch).addr(), number);
        let repeat = match repeats.0.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match self.prepare(launch, number, site)? {
                Some(repeat) => place.insert(repeat),
                None => return self.launch(launch, heard, site, wait),
            },
        };
        let ready = Ready {
            kernel: repeat.kernel.raw(),
            sizes: &repeat.sizes,
            local: repeat.local.as_deref(),
            hosts: &[],
        };
        Ok(Enqueued {
            events: self.enqueue(&ready, site.device, heard, wait)?,
            keeps: vec![Arc::clone(&repeat.uses)],
        })
    }

    /// The number of the program that this queue has of a kernel.
    fn number(&mut self, launch: &Launch, site: &mut Site<'_>) -> Result<u32, RuntimeError> {
        let Some(kernel) = launch.codelet.opencl.as_ref().filter(|_| site.device.apart) else {
            return Ok(0);
        };
        self.load(kernel, site)?;
        let apart = &self.kernels[&kernel.source].apart;
        Ok(apart.as_ref().map_or(0, |apart| apart.number()))
    }

    /// Makes a launch ready; `None` where that cannot be kept: what works in host
    /// memory is bound to the queue's own views of it.
    fn prepare(
        &mut self,
        launch: &Arc<Launch>,
        number: u32,
        site: &mut Site<'_>,
    ) -> Result<Option<Repeat>, RuntimeError> {
        let device = site.device;
        let Some((kernel, sizes)) = sizes(launch, device)? else {
            return Ok(None);
        };
        if launch.memories().any(|m| matches!(m, Memory::Host(_))) {
            return Ok(None);
        }
        self.load(kernel, site)?;
        let source = &kernel.source;
        let loaded = &self.kernels[source];
        let own = site.programs.kernel(kernel, number, device, site.devices)?;
        let mut uses: Vec<Keep> = Vec::new();
        uses.extend(loaded.apart.iter().map(|apart| Arc::clone(apart) as Keep));
        for (index, arg) in launch.args.iter().enumerate() {
            let mut mem = std::ptr::null_mut();
            if let Value::Memory(Memory::Device(id)) = arg {
                let buffer = site.memories.buffer(*id, self.device)?;
                uses.push(Arc::clone(&buffer.mem) as Keep);
                mem = buffer.mem.raw();
            }
            set_value(&own, (index, arg), mem, source, device)?;
        }
        Ok(Some(Repeat {
            launch: Arc::clone(launch),
            kernel: own,
            local: local_size(&sizes, device, loaded.group, source)?,
            sizes,
            uses: Arc::new(uses),
        }))
    }
}
