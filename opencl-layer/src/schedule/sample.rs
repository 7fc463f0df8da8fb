//! Samples: a part of a kernel's launch on another device, or on its own, for its time.
//!
//! A sample runs a part of the groups, with an offset of zero along the dimension that
//! varies slowest, so that sources stay as they are (the published code makes kernels of
//! one work-group, section 5.3.2). What the kernel may write is copied first, so that its
//! data stay as they are, too. Samples are worth their time: beyond the first one, at the
//! place where the kernel will run otherwise, they may cost a hundredth of the time that
//! the kernel has taken and will take.

use std::ptr;
use std::sync::Arc;

use opencl_sys::{CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_TYPE_CPU, CL_MEM_READ_WRITE, cl_uint};

use crate::command::Command;
use crate::domain::Own;
use crate::form::Form;
use crate::handle::Ref;
use crate::launch::Launch;
use crate::native::Native;
use crate::order;
use crate::queue::{Queue, State};
use crate::records::{KernelRecord, note_ended};
use crate::report;
use crate::status::Fallible;

/// The part of a kernel's time that samples of it may cost.
const BUDGET: f64 = 0.01;
/// Bytes a second and seconds that are assumed of a copy to a device and of preparing a
/// kernel there.
const COPIES: f64 = 4e9;
const PREPARING: [f64; 2] = [2e-3, 50e-3];
/// Bytes that are copied for a sample without asking what it costs.
const FREE: u64 = 64 << 10;
/// The groups of a sample, as a part of all and by compute unit.
const PART: usize = 128;
const GROUPS: usize = 4;
/// How many times slower than the first device another one may be: a CPU beside another
/// device (EP of NPB, 16 cores beside an H200), and others.
const SLOWER: [f64; 2] = [400.0, 10.0];

/// A sample that runs.
pub struct Sample {
    record: Arc<KernelRecord>,
    place: usize,
    native: Arc<Native>,
    /// The kernel's seconds in those of the sample.
    scale: f64,
    /// Copies of what the kernel writes, which the driver keeps until its commands have ended.
    _copies: Vec<Own>,
}

impl Sample {
    /// The event of its end.
    pub fn native(&self) -> &Arc<Native> {
        &self.native
    }
}

/// Begins the samples that a launch needs before it is known where it should go.
pub fn begin(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Vec<Sample> {
    // Groups that wait for others would wait for ever in a part of the range.
    if command.fixed_place().is_some() || launch.kernel.accesses.waits {
        return Vec::new();
    }
    let record = launch.record();
    let device = |place: usize| queue.context.places[place].profile.as_str();
    let able = || launch.able(queue);
    if able().nth(1).is_none() || !record.is_due_for_samples(able().map(device)) {
        return Vec::new();
    }
    let default_place = launch.default_place(queue, state.place);
    let worth = |place: usize| worth(queue, command, record, default_place, place);
    let is_known = |place: usize| record.seconds(device(place)).is_some();
    let mut others = able().filter(|place| *place != default_place);
    if !others.any(|place| is_known(place) || worth(place).is_some()) {
        // There is nothing to choose from. The launch itself tells its time at its default place.
        return Vec::new();
    }
    let mut samples = Vec::new();
    for place in able() {
        if is_known(place) || record.was_sampled(device(place)) {
            continue;
        }
        let most = match place == default_place {
            true => Some(1.0),
            false => worth(place),
        };
        let Some(most) = most else {
            continue;
        };
        let Ok(shape) = launch.shape_at(place) else {
            continue;
        };
        let real = &queue.context.places[place].real;
        let units = real.number(CL_DEVICE_MAX_COMPUTE_UNITS);
        let units = units.map_or(1, |units: cl_uint| units.max(1) as usize);
        let Some(part) = part(&shape.global, shape.local.as_deref(), units, most) else {
            continue;
        };
        if record.first_sample(device(place))
            // A driver that refuses a sample gets none.
            && let Ok(sample) = start(queue, state, command, launch, (place, part))
        {
            samples.push(sample);
        }
    }
    samples
}

/// The part of the range that a sample elsewhere may run, so that it costs little of the
/// time that the kernel takes at its default place.
fn worth(
    queue: &Queue,
    command: &Command,
    record: &KernelRecord,
    default_place: usize,
    place: usize,
) -> Option<f64> {
    let places = &queue.context.places;
    // A launch reads all that it uses.
    let bytes = command.missing_bytes(place);
    let is_cpu = |place: usize| places[place].real.kind & CL_DEVICE_TYPE_CPU != 0;
    let cost = bytes as f64 / COPIES + PREPARING[usize::from(is_cpu(place))];
    match record.seconds(&places[default_place].profile) {
        Some(seconds) => {
            let left = (record.spent() + seconds) * BUDGET - cost;
            let slower = SLOWER[usize::from(is_cpu(default_place) || !is_cpu(place))];
            (left >= 0.0).then(|| left / (seconds * slower).max(f64::MIN_POSITIVE))
        }
        None => (bytes <= FREE && !is_cpu(place)).then_some(1.0),
    }
}

fn start(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
    (place, (global, scale)): (usize, (Vec<usize>, f64)),
) -> Fallible<Sample> {
    let context = &queue.context;
    let lane = queue.timed_lane(state, place)?;
    let mut before = order::listed(command, lane.domain)?;
    // Hidden copies go to other queues of the drivers than the sample.
    if let Some(last) = state.last_to_use() {
        before.push(last.marker()?);
    }
    let list = order::brought(queue, state, command, &lane, before)?;
    let mut copies = Vec::new();
    let mut replaced = Vec::new();
    for (index, mem) in launch.writes() {
        let copy = (context.domain(place)).buffer(CL_MEM_READ_WRITE, mem.size, ptr::null_mut())?;
        replaced.push((index, copy.handle()));
        let call = lane.call(&list, ptr::null_mut());
        call.copy((mem.at(place)?, 0), (copy.handle(), 0), mem.size)?;
        copies.push(copy);
    }
    let mut shape = launch.shape_at(place)?.into_owned();
    shape.global = global;
    let native = lane.given(&list, |call| {
        launch.range(&lane, Form::Whole, &shape, &replaced, call)
    })?;
    // It waits for what other queues of the drivers have got.
    state.flush()?;
    Ok(Sample {
        record: Arc::clone(launch.record()),
        place,
        native,
        scale,
        _copies: copies,
    })
}

/// A part of a range with enough groups to keep a device busy, and how often it goes into
/// the range. `None` if one group for each unit is more than the given part.
fn part(
    global: &[usize],
    local: Option<&[usize]>,
    compute_units: usize,
    most: f64,
) -> Option<(Vec<usize>, f64)> {
    let group = |axis: usize| local.map_or(1, |local| local[axis].max(1));
    // Without a local size, 64 work-items count as a group.
    let items = if local.is_some() { 1 } else { 64 };
    let groups = |axis: usize| global[axis] / group(axis);
    let all: usize = (0..global.len()).map(groups).product::<usize>().max(1);
    let mut part = global.to_vec();
    let axis = (0..global.len()).rev().find(|axis| groups(*axis) > 1);
    let slice = axis.map_or(1, |axis| all / groups(axis)).max(1);
    let most = (most.min(1.0) * all as f64) as usize;
    let least = (compute_units * items).min(all).next_multiple_of(slice);
    if least > most {
        return None;
    }
    let Some(axis) = axis else {
        return Some((part, 1.0));
    };
    let enough = (compute_units * GROUPS * items).max(all / PART);
    let units = enough.min(most).div_ceil(slice).clamp(1, groups(axis));
    part[axis] = units * group(axis);
    Some((part, global[axis] as f64 / (units * group(axis)) as f64))
}

/// Whether all samples have ended; notes the times of those that have.
pub fn all_ended(queue: &Queue, samples: &mut Vec<Sample>) -> bool {
    let native = |sample: &Sample| Arc::clone(&sample.native);
    note_ended(samples, native, |sample, seconds| {
        let place = &queue.context.places[sample.place];
        sample.record.took(&place.profile, seconds * sample.scale);
        report::sampled(queue, &sample.record.key, sample.place, &sample.native);
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
        let part = |global: &[usize], local, units| part(global, local, units, 1.0).unwrap();
        // Of 8192 groups, 64 are enough for 4 for each of 8 units.
        assert_eq!(part(&[8192 * 64], Some(&[64]), 8), (vec![64 * 64], 128.0));
        // 132 units need 528 groups.
        assert_eq!(
            part(&[4096 * 64], Some(&[64]), 132),
            (vec![528 * 64], 4096.0 / 528.0)
        );
        // Rows of 100 groups: 528 are 6 rows.
        assert_eq!(
            part(&[1600, 1000], Some(&[16, 10]), 132),
            (vec![1600, 60], 1000.0 / 60.0)
        );
        assert_eq!(
            part(&[64, 1, 1], Some(&[64, 1, 1]), 8),
            (vec![64, 1, 1], 1.0)
        );
        assert_eq!(part(&[10], None, 8), (vec![10], 1.0));
    }

    #[test]
    fn a_part_is_no_larger_than_it_may_be() {
        let range = [4096 * 64];
        let part = |units, most| part(&range, Some(&[64]), units, most);
        assert_eq!(part(8, 0.005), Some((vec![20 * 64], 204.8)));
        assert_eq!(part(8, 8.0 / 4096.0), Some((vec![8 * 64], 512.0)));
        assert_eq!(part(8, 7.0 / 4096.0), None);
    }
}
