//! Whether a launch takes less time in parts, and whether its kernel's examination is worth
//! its time.

use opencl_sys::CL_DEVICE_TYPE_CPU;

use super::cut::Cut;
use super::parts::{Divided, Part};
use super::shared;
use super::verdict::{Entry, Why};
use crate::command::Command;
use crate::launch::Launch;
use crate::queue::Queue;

/// The part of a kernel's time that its examination may cost.
const BUDGET: f64 = 0.02;
/// Runs of an examination, and how often it passes over what is written, at most: before the
/// blocks run on each of several contents, and for each of these.
const RUNS: [f64; 2] = [2.0, 2.0];
const PASSES: [f64; 2] = [4.0, 14.0];
/// Bytes a second that are assumed of a pass, at a CPU and at other devices, and seconds of
/// building programs.
const PASSED: [f64; 2] = [2e9, 50e9];
pub const BUILDING: f64 = 1.0;
/// By so much parts must be faster: predictions are not exact.
const GAIN: f64 = 0.03;
/// Seconds of a part beside its work, and bytes a second at which the host merges.
const OVERHEAD: f64 = 30e-6;
const MERGED: f64 = 1e9;

/// Whether the examination of a kernel is worth its time, after so many others of it. It
/// runs at the place of the queue's kernels.
pub fn is_worth(
    queue: &Queue,
    place: usize,
    command: &Command,
    launch: &Launch,
    others: usize,
) -> bool {
    let places = &queue.context.places;
    let record = launch.record();
    let seconds = |place: usize| record.seconds(&places[place].profile);
    let home = launch.home(queue, place);
    let able = launch.able(queue).count();
    let Some(run) = seconds(home).filter(|_| launch.able(queue).all(|one| seconds(one).is_some()))
    else {
        return false;
    };
    let is_cpu = places[home].real.kind & CL_DEVICE_TYPE_CPU != 0;
    let written = command.uses.iter().filter(|used| used.writes);
    let bytes: usize = written.map(|used| used.mem.size).sum();
    let pass = bytes as f64 / PASSED[usize::from(!is_cpu)];
    let contents = 2.0 + f64::from(u8::from(launch.iterates()));
    let times = |each: [f64; 2]| each[0] + contents * each[1];
    let cost = times(RUNS) * run + times(PASSES) * pass + BUILDING * able as f64;
    able > 1 && (1 + others) as f64 * cost <= BUDGET * record.spent()
}

/// The parts that are predicted to end together and the seconds that they gain, or why the
/// launch stays whole.
pub fn parts(
    queue: &Queue,
    divided: &Divided,
    places: &[usize],
    merges: bool,
) -> Result<(Vec<Part>, f64), Why<'static>> {
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
    let costs = queue.context.costs();
    let host = costs.host();
    let copies = |place: usize, bytes: u64| match bytes {
        0 => 0.0,
        bytes => costs.copy(host, place, bytes).0,
    };
    let all = |place: usize| -> u64 {
        let reads = command.uses.iter().filter(|used| used.reads);
        reads
            .map(|used| used.mem.missing_bytes(&used.range, place))
            .sum()
    };
    let groups = cut.groups_of(&(0..cut.blocks())) as f64;
    let whole = places.iter().zip(&rates);
    let whole = whole.map(|(place, rate)| rate * groups + copies(*place, all(*place)));
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
        let written = command.uses.iter().filter(|used| used.writes);
        let written: u64 = written.map(|used| used.mem.size as u64).sum();
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
    entry: &Entry,
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
