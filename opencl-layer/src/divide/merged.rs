//! Divided launches whose results are merged.
//!
//! Every place runs its part on its own copy of the buffers, and the host keeps the bytes
//! with which all began. What the parts have changed is brought together in host memory. If
//! two parts wrote unlike values to one byte, the launch runs again, whole, at one place.
//! The buffers' bytes are the host's afterwards.

use std::ptr;
use std::sync::Arc;

use opencl_sys::CL_OUT_OF_RESOURCES;

use super::examine::refused;
use super::parts::Divided;
use crate::call::Call;
use crate::form::Form;
use crate::handle::Ref;
use crate::host_memory::HostMemory;
use crate::launch::Launch;
use crate::mem::Mem;
use crate::native::{Native, UserEvent, when_all_ended};
use crate::own_queue::{Lane, OwnQueue};
use crate::process_end::{MERGES, while_alive};
use crate::queue::{Queue, State};
use crate::records::DivisionRecord;
use crate::status::Fallible;
use pdawl::residency::difference::{Twice, merge};

/// What is left to do when the parts have ended.
struct Merge {
    launch: Launch,
    entry: Arc<DivisionRecord>,
    mems: Vec<Ref<Mem>>,
    /// By part: the contents of each buffer afterwards.
    results: Vec<Vec<HostMemory>>,
    natives: Vec<Arc<Native>>,
    joined: Arc<Native>,
    /// Where the launch runs again.
    place: usize,
}

impl Divided<'_> {
    /// Gives the parts to drivers, and has their results merged.
    pub fn merged(&self, queue: &Ref<Queue>, state: &mut State) -> Fallible<Arc<Native>> {
        let context = &queue.context;
        let launched = self.launched(queue, state, false)?;
        let written = self.command.writes().map(|used| used.mem.clone());
        let mems: Vec<Ref<Mem>> = written.collect();
        let (mut results, mut natives) = (Vec::new(), Vec::new());
        for (lane, part) in launched.lanes.iter().zip(&launched.natives) {
            let list = context.waits(lane.domain, vec![Arc::clone(part)])?;
            let mut own = Vec::new();
            for mem in &mems {
                let memory = HostMemory::new(mem.size)?;
                let (native, to) = (mem.at(lane.place)?, memory.address().cast());
                let read = |call: &Call| call.read(native, 0, mem.size, to);
                natives.push(lane.given(&list, read)?);
                own.push(memory);
            }
            results.push(own);
        }
        let lane = launched.lanes[0];
        let domain = &context.domains[lane.domain];
        let user = UserEvent::new(domain)?;
        let end = Native::of_user(&user, lane.domain);
        let list = context.waits(lane.domain, vec![end])?;
        let joined = lane.joined(&list, launched.natives.clone())?;
        for mem in &mems {
            mem.merged_until(&(0..mem.size), &joined);
        }
        self.ends(queue, state, &launched, &joined)?;
        let task = Merge {
            launch: self.launch.clone(),
            entry: Arc::clone(self.entry),
            mems,
            results,
            natives: natives.clone(),
            joined: Arc::clone(&joined),
            place: lane.place,
        };
        when_all_ended(&natives, move || {
            MERGES.run(move || {
                while_alive(|| {
                    let joined = Arc::clone(&task.joined);
                    if let Err(code) = task.carry_out() {
                        joined.fail(code);
                    }
                    user.complete();
                });
            });
        });
        Ok(joined)
    }
}

fn bytes_of(memory: &HostMemory, size: usize) -> &[u8] {
    // SAFETY: the memory has so many bytes, and the command that filled it has ended.
    unsafe { std::slice::from_raw_parts(memory.address(), size) }
}

impl Merge {
    /// Brings the results together. What the launch kept alive ends here.
    fn carry_out(self) -> Fallible<()> {
        for native in &self.natives {
            if native.execution_status()? < 0 {
                return Err(CL_OUT_OF_RESOURCES);
            }
        }
        let mut merged = Vec::new();
        for (index, mem) in self.mems.iter().enumerate() {
            let base = self.base(mem)?;
            let mut all = base.to_vec();
            for part in &self.results {
                if merge(
                    base,
                    bytes_of(&part[index], mem.size),
                    &mut all,
                    Twice::MayAgree,
                )
                .is_err()
                {
                    return self.again();
                }
            }
            merged.push(all);
        }
        for (mem, all) in self.mems.iter().zip(&merged) {
            let address = mem.host_address(&(0..mem.size))?;
            // SAFETY: the host's copy has so many bytes, and later commands wait for this.
            unsafe { ptr::copy_nonoverlapping(all.as_ptr(), address, all.len()) };
        }
        Ok(())
    }

    /// What all parts began with.
    fn base(&self, mem: &Ref<Mem>) -> Fallible<&[u8]> {
        let address = mem.host_address(&(0..mem.size))?;
        // SAFETY: the host's copy has so many bytes and lives as long as the object, which
        // `self` keeps; later commands wait for this.
        Ok(unsafe { std::slice::from_raw_parts(address, mem.size) })
    }

    /// Runs the launch whole, from what all began with.
    fn again(&self) -> Fallible<()> {
        self.entry.note(|figures| figures.clashes += 1);
        let why = "parts of it wrote unlike values to one byte";
        self.entry.keep(&refused(why));
        self.entry.tell(refused(why));
        let context = &self.launch.kernel.program.context;
        let domain = context.domain(self.place);
        let queue = OwnQueue::new(context.site(self.place))?;
        let mut lane = context.lane_for_questions(self.place);
        lane.queue = queue.handle();
        lane.variant = match domain.program_per_queue {
            true => context.variants.take(),
            false => 0,
        };
        let result = self.whole(&lane, &queue);
        if domain.program_per_queue {
            context.variants.give_back(lane.variant, None);
        }
        result
    }

    fn whole(&self, lane: &Lane, queue: &OwnQueue) -> Fallible<()> {
        let call = queue.now();
        for mem in &self.mems {
            let from = mem.host_address(&(0..mem.size))?.cast();
            call.write(mem.at(lane.place)?, 0, mem.size, from)?;
        }
        let shape = self.launch.shape_at(lane.place)?;
        (self.launch).range(lane, Form::Whole, &shape, &[], &call)?;
        for mem in &self.mems {
            let to = mem.host_address(&(0..mem.size))?.cast();
            call.read(mem.at(lane.place)?, 0, mem.size, to)?;
        }
        queue.finish()
    }
}
