//! The parts of one launch, given to drivers.
//!
//! What the parts read is brought to their places first. A place may write what another
//! part still reads, so a part waits for the copies that leave its place. One event stands
//! for all parts: later commands of the queue wait for it.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use opencl_sys::CL_OUT_OF_RESOURCES;
use pdawl_api::residency::difference::{Twice, merge};

use super::entries;
use super::entries::PartTiming;
use super::examine::refused;
use crate::call::Call;
use crate::command::{Command, Use};
use crate::form::Form;
use crate::handle::Ref;
use crate::host_memory::HostMemory;
use crate::host_view;
use crate::launch::Launch;
use crate::mem::Mem;
use crate::native::{Native, UserEvent, when_all_ended};
use crate::order;
use crate::own_queue::{Lane, OwnQueue};
use crate::own_time;
use crate::process_end::{MERGES, while_alive};
use crate::queue::{Queue, State};
use crate::records::DivisionRecord;
use crate::report;
use crate::shape::Cut;
use crate::status::Fallible;

/// A part: a place, and its blocks.
pub type PlaceBlocks = (usize, Range<u64>);

/// A launch that is divided.
pub struct Divided<'a> {
    pub command: &'a Command,
    pub launch: &'a Launch,
    pub entry: &'a Arc<DivisionRecord>,
    pub cut: &'a Cut,
    pub parts: Vec<PlaceBlocks>,
    /// The seconds that it is predicted to gain.
    pub gain: f64,
}

/// Parts that drivers have.
pub struct Launched {
    pub lanes: Vec<Lane>,
    pub natives: Vec<Arc<Native>>,
}

impl Divided<'_> {
    /// The bytes of a use that a part needs. `slices` tells whether a part writes only its
    /// slices; then it needs only these of a buffer that the kernel does not read.
    fn needed(&self, used: &Use, index: usize, blocks: &Range<u64>, slices: bool) -> Range<usize> {
        let reads = self.launch.kernel.accesses.reads[index];
        let slice = self.cut.slice(used.mem.size, blocks);
        match slice {
            Some(slice) if slices && used.writes && !reads => slice,
            _ => used.range.clone(),
        }
    }

    /// Counts the launch as a divided one.
    pub fn count(&self, queue: &Queue) {
        self.entry.note(|figures| {
            figures.divided += 1;
            for (place, blocks) in &self.parts {
                let device = queue.context.places[*place].real.name.clone();
                *figures.groups.entry(device).or_default() += self.cut.groups_of(blocks) as u64;
            }
        });
    }

    /// The uses of the command, with the positions of their arguments.
    fn uses(&self) -> impl Iterator<Item = (usize, &Use)> {
        // A launch has a use for each buffer among its arguments, in their order.
        let mems = self.launch.mems().map(|(index, _)| index);
        mems.zip(&self.command.uses)
    }

    /// The bytes that a part needs and its place does not have.
    pub fn missing_bytes(&self, place: usize, blocks: &Range<u64>, slices: bool) -> u64 {
        let missing = |(index, used): (usize, &Use)| {
            let range = self.needed(used, index, blocks, slices);
            used.mem.missing_bytes(&range, place)
        };
        self.uses()
            .filter(|(_, used)| used.reads)
            .map(missing)
            .sum()
    }

    /// Gives the parts to drivers.
    pub fn launched(&self, queue: &Queue, state: &mut State, slices: bool) -> Fallible<Launched> {
        let context = &queue.context;
        let host = context.places.len();
        host_view::before(self.command);
        let mut lanes = Vec::new();
        let mut before = Vec::new();
        for (place, _) in &self.parts {
            let lane = queue.timed_lane(state, *place)?;
            let mut own = order::listed(self.command, lane.domain)?;
            own.extend(order::before_copies(queue, state, self.command, &lane)?);
            lanes.push(lane);
            before.push(own);
        }
        if !slices {
            for used in self.command.writes() {
                used.mem.define(&used.range);
            }
        }
        let mut arriving = Vec::new();
        for ((place, blocks), before) in self.parts.iter().zip(&before) {
            let mut own = Vec::new();
            for (index, used) in self.uses().filter(|(_, used)| used.reads) {
                let range = self.needed(used, index, blocks, slices);
                own.extend(used.mem.bring(queue, state, &range, *place, before)?);
            }
            arriving.push(own);
        }
        if !slices {
            // The bytes that all parts begin with stay at the host.
            for used in self.command.writes() {
                used.mem
                    .bring(queue, state, &used.range, host, &before[0])?;
            }
        }
        let leaving = self.command.writes();
        let leaving = leaving.flat_map(|used| used.mem.arriving(&used.range, host));
        let leaving: Vec<Arc<Native>> = leaving.collect();
        let mut natives = Vec::new();
        let form = self.cut.form();
        for (index, ((_, blocks), lane)) in self.parts.iter().zip(&lanes).enumerate() {
            let all = before[index].iter().chain(&arriving[index]).chain(&leaving);
            let all: Vec<Arc<Native>> = all.cloned().collect();
            let list = context.waits(lane.domain, all)?;
            let shape = self.cut.part(blocks);
            let range = |call: &Call| self.launch.range(lane, form, &shape, &[], call);
            natives.push(own_time::driver(|| lane.given(&list, range))?);
        }
        Ok(Launched { lanes, natives })
    }

    /// Gives the parts to drivers, each of which writes only its slices.
    pub fn sliced(&self, queue: &Queue, state: &mut State) -> Fallible<Arc<Native>> {
        let launched = self.launched(queue, state, true)?;
        for (place, blocks) in &self.parts {
            for used in self.command.writes() {
                if let Some(slice) = self.cut.slice(used.mem.size, blocks) {
                    used.mem.written(&slice, *place);
                }
            }
        }
        let lane = launched.lanes[0];
        let list = queue.context.waits(lane.domain, launched.natives.clone())?;
        let joined = lane.joined(&list, launched.natives.clone())?;
        self.ends(queue, state, &launched, &joined)?;
        Ok(joined)
    }

    /// Has later commands wait for the event that stands for all parts.
    pub fn ends(
        &self,
        queue: &Queue,
        state: &mut State,
        launched: &Launched,
        joined: &Arc<Native>,
    ) -> Fallible<()> {
        let lane = launched.lanes[0];
        host_view::after(self.command, Some(joined));
        order::after(queue, state, self.command, lane, Some(joined));
        let all = launched.lanes.iter().zip(&launched.natives);
        for ((lane, native), (place, blocks)) in all.zip(&self.parts) {
            report::issued(state, self.command, lane, Some(native));
            entries::runs(
                state,
                PartTiming {
                    entry: Arc::clone(self.entry),
                    record: Arc::clone(self.launch.record()),
                    place: *place,
                    groups: self.cut.groups_of(blocks),
                    all: self.cut.groups_of(&(0..self.cut.blocks())),
                    native: Arc::clone(native),
                },
            );
        }
        // A queue waits for parts in others, which nobody else may flush.
        state.flush()
    }
}

// Divided launches whose results are merged.
//
// Every place runs its part on its own copy of the buffers, and the host keeps the bytes
// with which all began. What the parts have changed is brought together in host memory. If
// two parts wrote unlike values to one byte, the launch runs again, whole, at one place.
// The buffers' bytes are the host's afterwards.

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
