//! Samples: a part of a kernel's launch on another device, or on its own, for its time.
//!
//! A sample runs a part of the groups, with an offset of zero along the dimension that
//! varies slowest, so that sources stay as they are (the published code makes kernels of
//! one work-group, section 5.3.2). What the kernel may write is copied first, so that its
//! data stay as they are, too. Samples are worth their time: beyond the first one, at the
//! place where the kernel will run otherwise, they may cost a twentieth of the time that
//! the kernel has taken and will take.

use std::ptr;
use std::sync::Arc;

use opencl_sys::{
    CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_TYPE_CPU, CL_MEM_READ_WRITE, cl_mem, cl_uint,
};
use pdawl::profile::kernels::KernelKey;

use crate::argument::Argument;
use crate::callbacks;
use crate::command::{Command, waits};
use crate::divide::Form;
use crate::event::Event;
use crate::handle::Ref;
use crate::launch::Launch;
use crate::native::Native;
use crate::queue::{Queue, State};
use crate::report;
use crate::status::{Fallible, check, driver, driver_object};

use super::{advance, times};

/// The part of a kernel's time that samples of it may cost.
const BUDGET: f64 = 0.05;
/// Bytes a second and seconds that are assumed of a copy to a device and of preparing a
/// kernel there.
const COPIES: f64 = 4e9;
const PREPARING: [f64; 2] = [2e-3, 50e-3];
/// Bytes that are copied for a sample without asking what it costs.
const FREE: u64 = 64 << 10;
/// The groups of a sample, as a part of all and by compute unit.
const PART: usize = 16;
const GROUPS: usize = 4;

/// A sample that runs.
pub struct Sample {
    key: KernelKey,
    place: usize,
    native: Arc<Native>,
    /// The kernel's seconds in those of the sample.
    scale: f64,
    _copies: Vec<CopyOf>,
}

/// A copy of what the kernel writes.
struct CopyOf {
    table: &'static opencl_sys::cl_icd::cl_icd_dispatch,
    mem: cl_mem,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for CopyOf {}

impl Drop for CopyOf {
    fn drop(&mut self) {
        // The driver keeps it until its commands have ended.
        let _ = driver!(self.table, clReleaseMemObject(self.mem));
    }
}

/// Begins the samples that a launch needs before it is known where it should go.
pub fn begin(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Vec<Sample> {
    let able: Vec<usize> = queue
        .places
        .iter()
        .copied()
        .filter(|p| launch.can_run_at(*p))
        .collect();
    let key = launch.key();
    // Groups that wait for others would wait for ever in a part of the range.
    if able.len() < 2 || command.fixed_place().is_some() || launch.kernel.may_wait() {
        return Vec::new();
    }
    let home = match able.contains(&state.place) {
        true => state.place,
        false => able[0],
    };
    let mut samples = Vec::new();
    for place in able {
        let known = times::seconds(&queue.context.places[place], key).is_some();
        if known || times::was_sampled(&queue.context.places[place], key) {
            continue;
        }
        if place != home && !is_worth(queue, command, key, home, place) {
            continue;
        }
        if times::first_sample(&queue.context.places[place], key)
            // A driver that refuses a sample gets none.
            && let Ok(sample) = start(queue, state, command, launch, place)
        {
            samples.push(sample);
        }
    }
    samples
}

/// Whether a sample elsewhere costs little of the time that the kernel takes at home.
fn is_worth(queue: &Queue, command: &Command, key: &KernelKey, home: usize, place: usize) -> bool {
    let missing = command
        .uses
        .iter()
        .map(|used| used.mem.missing_bytes(&used.range, place));
    let bytes: u64 = missing.sum();
    let kind = queue.context.places[place].real.kind;
    let preparing = PREPARING[usize::from(kind & CL_DEVICE_TYPE_CPU != 0)];
    let cost = bytes as f64 / COPIES + preparing;
    match times::seconds(&queue.context.places[home], key) {
        Some(seconds) => {
            let launches = times::launches(&queue.context.places[home], key) + 1;
            seconds * launches as f64 * BUDGET >= cost
        }
        None => bytes <= FREE && kind & CL_DEVICE_TYPE_CPU == 0,
    }
}

fn start(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
    place: usize,
) -> Fallible<Sample> {
    let context = &queue.context;
    let lane = queue.timed_lane(state, place)?;
    let mut before = Vec::new();
    for event in &command.waits {
        before.extend(Event::native(event, lane.domain)?);
    }
    // Hidden copies go to other queues of the drivers than the sample.
    if let Some(last) = state.last {
        before.push(last.marker()?);
    }
    let mut arriving = Vec::new();
    for used in command.uses.iter().filter(|used| used.reads) {
        arriving.extend(used.mem.bring(queue, state, &used.range, place, &before)?);
    }
    before.extend(arriving);
    let list = waits(context, lane.domain, &before)?;
    let mut copies = Vec::new();
    let mut replaced = Vec::new();
    for (index, set) in launch.arguments.iter().enumerate() {
        let Argument::Mem(mem) = &set.argument else {
            continue;
        };
        if !launch.kernel.may_write(index) {
            continue;
        }
        let (inner, none) = (context.domain(place).context, ptr::null_mut());
        let copy = driver_object!(
            lane.table,
            clCreateBuffer(inner, CL_MEM_READ_WRITE, mem.size, none)
        )?;
        copies.push(CopyOf {
            table: lane.table,
            mem: copy,
        });
        replaced.push((index, copy));
        let original = mem.at(place)?;
        check(driver!(
            lane.table,
            clEnqueueCopyBuffer(
                lane.queue,
                original,
                copy,
                0,
                0,
                mem.size,
                list.count(),
                list.events(),
                ptr::null_mut()
            )
        ))?;
    }
    let units = compute_units(
        context.places[place].real.driver.table,
        context.places[place].real.id,
    );
    let mut shape = launch.shape_at(place);
    let (global, scale) = part(&shape.global, shape.local.as_deref(), units);
    shape.global = global;
    let mut event = ptr::null_mut();
    launch.range(&lane, Form::Whole, &shape, &replaced, &list, &mut event)?;
    let native = lane.native(event);
    check(driver!(lane.table, clFlush(lane.queue)))?;
    wake(queue, &native);
    Ok(Sample {
        key: launch.key().clone(),
        place,
        native,
        scale,
        _copies: copies,
    })
}

/// Has the queue go on when a sample ends, if nobody asks before.
fn wake(queue: &Ref<Queue>, native: &Arc<Native>) {
    let queue = queue.clone();
    // Whoever waits for the queue asks as well.
    let _ = native.when_ended(move || callbacks::run(move || advance(&queue)));
}

fn compute_units(
    table: &opencl_sys::cl_icd::cl_icd_dispatch,
    device: opencl_sys::cl_device_id,
) -> usize {
    let mut units: cl_uint = 1;
    let (size, value) = (size_of::<cl_uint>(), ptr::from_mut(&mut units).cast());
    let what = CL_DEVICE_MAX_COMPUTE_UNITS;
    let _ = driver!(
        table,
        clGetDeviceInfo(device, what, size, value, ptr::null_mut())
    );
    units.max(1) as usize
}

/// A part of a range with enough groups to keep a device busy, and how often it goes into
/// the range.
fn part(global: &[usize], local: Option<&[usize]>, compute_units: usize) -> (Vec<usize>, f64) {
    let group = |axis: usize| local.map_or(1, |local| local[axis].max(1));
    // Without a local size, 64 work-items count as a group.
    let items = if local.is_some() { 1 } else { 64 };
    let groups = |axis: usize| global[axis] / group(axis);
    let all: usize = (0..global.len()).map(groups).product::<usize>().max(1);
    let mut part = global.to_vec();
    let Some(axis) = (0..global.len()).rev().find(|axis| groups(*axis) > 1) else {
        return (part, 1.0);
    };
    let slice = all / groups(axis);
    let enough = (compute_units * GROUPS * items).max(all / PART);
    let units = enough.div_ceil(slice.max(1)).clamp(1, groups(axis));
    part[axis] = units * group(axis);
    (part, global[axis] as f64 / (units * group(axis)) as f64)
}

/// Whether all samples have ended; notes the times of those that have.
pub fn all_ended(queue: &Queue, samples: &mut Vec<Sample>) -> bool {
    samples.retain(|sample| match sample.native.execution_status() {
        Ok(status) if status > 0 => true,
        Ok(0) => {
            if let Ok(seconds) = times::duration(&sample.native) {
                let place = &queue.context.places[sample.place];
                times::record(place, &sample.key, seconds * sample.scale);
                report::sampled(queue, &sample.key, sample.place, &sample.native);
            }
            false
        }
        // A sample that failed tells nothing.
        _ => false,
    });
    samples.is_empty()
}

/// A sample that runs.
pub fn first_running(samples: &[Sample]) -> Option<Arc<Native>> {
    samples.first().map(|sample| Arc::clone(&sample.native))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_the_device_busy_and_is_within_the_range() {
        // A sixteenth of 4096 groups is more than 4 for each of 8 units.
        assert_eq!(part(&[4096 * 64], Some(&[64]), 8), (vec![256 * 64], 16.0));
        // 132 units need 528 groups.
        assert_eq!(
            part(&[4096 * 64], Some(&[64]), 132),
            (vec![528 * 64], 4096.0 / 528.0)
        );
        // Rows of 100 groups: a sixteenth of 10000 groups is 7 rows.
        assert_eq!(
            part(&[1600, 1000], Some(&[16, 10]), 132),
            (vec![1600, 70], 1000.0 / 70.0)
        );
        assert_eq!(
            part(&[64, 1, 1], Some(&[64, 1, 1]), 8),
            (vec![64, 1, 1], 1.0)
        );
        assert_eq!(part(&[10], None, 8), (vec![10], 1.0));
    }
}
