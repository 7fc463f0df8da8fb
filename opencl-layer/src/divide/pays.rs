//! Whether a launch takes less time in parts, and whether its kernel's examination is worth
//! its time.

use opencl_sys::CL_DEVICE_TYPE_CPU;

use super::parts::{Divided, PlaceBlocks};
use super::shared;
use crate::command::Command;
use crate::device_profile;
use crate::handle::Ref;
use crate::launch::Launch;
use crate::queue::Queue;
use crate::records::{DivisionRecord, Why};
use crate::shape::Cut;

/// The part of a kernel's time that its examination may cost.
const BUDGET: f64 = 0.02;
/// Runs of an examination, and how often it passes over what is written, at most: before the
/// blocks run on each of several contents, and for each of these.
const RUNS: [f64; 2] = [2.0, 2.0];
const PASSES: [f64; 2] = [4.0, 14.0];
/// Bytes a second that are assumed of a pass, at a CPU and at other devices.
const PASSED: [f64; 2] = [2e9, 50e9];
/// By so much parts must be faster: predictions are not exact.
const GAIN: f64 = 0.03;
/// Seconds of a part beside its work, and bytes a second at which the host merges.
const OVERHEAD: f64 = 30e-6;
const MERGED: f64 = 1e9;

/// The part of a launch's time that devices with these seconds save together, at most.
fn most_gain(seconds: &[f64], run: f64) -> f64 {
    let rate: f64 = seconds.iter().map(|seconds| 1.0 / seconds).sum();
    1.0 - 1.0 / (rate * run)
}

/// The place where a kernel is to be examined now, if that is worth its time, after so many
/// others of it.
///
/// Where a device like that of the launches has nothing to do, the program only waits for the
/// copies: as much time is expected to come as was spent, so the examination begins when
/// parts would have saved more. Elsewhere it takes the device's time from the launches, and may
/// have a part of it that is small, as it may end in a refusal.
pub fn where_to_examine(
    queue: &Ref<Queue>,
    default_place: usize,
    command: &Command,
    launch: &Launch,
    others: usize,
) -> Option<usize> {
    let places = &queue.context.places;
    let record = launch.record();
    let able: Vec<usize> = launch.able(queue).collect();
    let seconds = |place: &usize| record.seconds(&places[*place].profile);
    let known: Vec<f64> = able.iter().map(seconds).collect::<Option<_>>()?;
    let run = seconds(&default_place).filter(|_| able.len() > 1)?;
    let is_cpu = |place: usize| places[place].real.kind & CL_DEVICE_TYPE_CPU != 0;
    let times = (1 + others) as f64;
    let gain = most_gain(&known, run);
    let is_idle = |place: &usize| {
        let is_alike = places[*place].profile == places[default_place].profile;
        *place != default_place && is_alike && !is_cpu(*place) && !is_used(queue, *place)
    };
    if let Some(idle) = able.iter().copied().find(is_idle) {
        let costs = device_profile::costs(&queue.context);
        let copies = costs
            .copy(default_place, idle, command.missing_bytes(idle))
            .0;
        let is_worth = run * gain > OVERHEAD && times * copies <= gain * record.spent();
        return is_worth.then_some(idle);
    }
    let bytes: usize = command.writes().map(|used| used.mem.size).sum();
    let pass = bytes as f64 / PASSED[usize::from(!is_cpu(default_place))];
    let contents = 2.0 + f64::from(u8::from(launch.iterates()));
    let each = |each: [f64; 2]| each[0] + contents * each[1];
    let building = launch.kernel.program.build_seconds() * able.len() as f64;
    let cost = each(RUNS) * run + each(PASSES) * pass + building;
    (times * cost <= BUDGET * record.spent()).then_some(default_place)
}

/// Whether kernels of another queue of the context go to a place.
fn is_used(queue: &Ref<Queue>, place: usize) -> bool {
    let queues = queue.context.queues();
    let mut others = queues.iter().filter(|other| *other != queue);
    others.any(|other| {
        let state = other.state_of_another();
        state.last.is_some() && state.place == place
    })
}

/// The parts that are predicted to end together and the seconds that they gain, or why the
/// launch stays whole.
pub fn parts(
    queue: &Queue,
    divided: &Divided,
    places: &[usize],
    merges: bool,
) -> Result<(Vec<PlaceBlocks>, f64), Why<'static>> {
    let Divided {
        command,
        launch,
        entry,
        cut,
        ..
    } = divided;
    let rates = rates(queue, launch, entry, cut, places);
    let rates = rates.ok_or("its time at some devices is not known")?;
    let weights: Vec<f64> = rates.iter().map(|rate| 1.0 / rate.max(1e-12)).collect();
    let parts = shared(cut, places, &weights);
    let costs = device_profile::costs(&queue.context);
    let host = costs.host();
    let copies = |place: usize, bytes: u64| match bytes {
        0 => 0.0,
        bytes => costs.copy(host, place, bytes).0,
    };
    let groups = cut.groups_of(&(0..cut.blocks())) as f64;
    let whole = places.iter().zip(&rates);
    let whole =
        whole.map(|(place, rate)| rate * groups + copies(*place, command.missing_bytes(*place)));
    let whole = whole.fold(f64::INFINITY, f64::min);
    let rate = |place: usize| {
        let index = places.iter().position(|other| *other == place);
        index.map_or(f64::INFINITY, |index| rates[index])
    };
    let mut longest = 0.0_f64;
    for (place, blocks) in &parts {
        let missing = divided.missing_bytes(*place, blocks, !merges);
        let work = rate(*place) * cut.groups_of(blocks) as f64;
        longest = longest.max(work + copies(*place, missing) + OVERHEAD);
    }
    if merges {
        let written: u64 = command.writes().map(|used| used.mem.size as u64).sum();
        // The bytes that all begin with go to the host, those of each part too, and the
        // result goes back to a place.
        for (place, _) in &parts {
            longest += costs.copy(*place, host, written).0 + written as f64 / MERGED;
        }
        longest += 2.0 * copies(parts.first().map_or(host, |(place, _)| *place), written);
    }
    match longest < whole * (1.0 - GAIN) {
        true => Ok((parts, whole - longest)),
        false => Err(Why::Slower {
            parts: longest,
            whole,
        }),
    }
}

/// By place: the seconds of a group along the axis.
fn rates(
    queue: &Queue,
    launch: &Launch,
    entry: &DivisionRecord,
    cut: &Cut,
    places: &[usize],
) -> Option<Vec<f64>> {
    let groups = cut.groups_of(&(0..cut.blocks())) as f64;
    let rate = |place: &usize| {
        let place = &queue.context.places[*place];
        let seen = entry.seconds_of_group(&place.real.name);
        seen.or_else(|| Some(launch.record().seconds(&place.profile)? / groups))
    };
    places.iter().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_save_time_by_their_rates() {
        assert_eq!(most_gain(&[2.0, 2.0], 2.0), 0.5);
        assert_eq!(most_gain(&[1.0, 3.0], 1.0), 0.25);
        assert!(most_gain(&[1.0, 1e9], 1.0) < 1e-8);
    }
}
