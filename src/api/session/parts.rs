//! Which devices take part in a run of tasks: a part of them may be faster than all.

use crate::balance::parts::{fewest, parts as parts_of};
use crate::engine::graph::Repetition;
use crate::machine::Device;
use crate::policy::{MapError, NamedPolicy, PolicyOptions, Problem, rehearse};
use crate::session::rows::named;

/// Parts that are rehearsed in any case. Others are while all rehearsals together have at most so
/// many tasks, or so many for each second of the run.
const ALWAYS: usize = 3;
const TASKS: f64 = 1000.0;
const TASKS_A_SECOND: f64 = 40_000.0;

/// Seconds that four runs of all devices may take for parts to be tried.
const TRIALS: f64 = 0.1;
/// A first run on a part may take so many times as long as the best so far: it compiles kernels and
/// allocates.
const FIRST: f64 = 4.0;

/// Components that a device has begun at once, of which one computes.
const DEPTH: usize = 8;

/// The parts of some devices that are compared: each by itself, one of those that are alike; all
/// that have memory of their own, and fewer; these with the others; and all.
pub fn parts(devices: &[Device]) -> Vec<Vec<usize>> {
    let (others, mut own): (Vec<usize>, Vec<usize>) =
        (0..devices.len()).partition(|device| devices[*device].shares_host_memory);
    own.sort_by_key(|device| std::cmp::Reverse(devices[*device].compute_units));
    parts_of(&own, &others, |one, other| {
        devices[one].is_like(&devices[other])
    })
}

/// The same as lists of devices, for [`DeviceOptions::list`](super::DeviceOptions::list).
pub fn part_lists(devices: &[Device]) -> Vec<String> {
    let list = |part: Vec<usize>| -> Vec<String> {
        part.into_iter()
            .map(|place| named(&devices[place]))
            .collect()
    };
    let parts = parts(devices).into_iter();
    parts.map(|part| list(part).join(",")).collect()
}

/// What a part of the devices is expected to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub part: Vec<usize>,
    pub seconds: f64,
}

/// The devices that take part in a run.
#[derive(Clone, Debug)]
pub enum TakingPart {
    /// Those that are expected to be fastest.
    Open,
    Known(Chosen),
}

/// A part of the devices, and why it was chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub part: Vec<usize>,
    /// What was expected of it and of others.
    pub expected: Vec<Expected>,
    /// What reports say of it.
    pub note: Option<String>,
}

impl Chosen {
    /// All of so many devices.
    pub fn all(devices: usize) -> Self {
        Self {
            part: (0..devices).collect(),
            expected: Vec::new(),
            note: None,
        }
    }
}

/// The part that is expected to be fastest, and its place among these. `problems` has parts of the
/// devices, some perhaps several times, and problems of all devices.
///
/// # Errors
/// A policy that cannot be made.
pub fn best(
    devices: &[Device],
    policy: NamedPolicy,
    options: &PolicyOptions,
    problems: impl Iterator<Item = (Vec<usize>, Problem)>,
) -> Result<(Chosen, Option<usize>), MapError> {
    let of_parts = problems.enumerate().filter_map(|(place, (part, problem))| {
        let problem = of_part(problem, &part)?;
        Some((least(&problem)?, part, problem, place))
    });
    let mut of_parts: Vec<(f64, Vec<usize>, Problem, usize)> = of_parts.collect();
    // Few tasks and devices first: they are rehearsed soonest.
    of_parts.sort_by_key(|(_, part, problem, _)| (problem.tasks.len(), part.len()));
    let (mut rehearsed, mut places) = (Vec::new(), Vec::new());
    let (mut tasks, mut least) = (0.0, f64::INFINITY);
    for (bound, part, problem, place) in of_parts {
        let most = TASKS.max(TASKS_A_SECOND * least);
        let is_dear = rehearsed.len() >= ALWAYS && tasks + problem.tasks.len() as f64 > most;
        // What all devices take is told in any case.
        if part.len() < devices.len() && (is_dear || bound >= least) {
            continue;
        }
        tasks += problem.tasks.len() as f64;
        let mut policy = policy.policy(problem.clone(), options)?;
        if let Some(seconds) = rehearse(policy.as_mut(), &problem, DEPTH) {
            least = least.min(seconds);
            rehearsed.push(Expected { part, seconds });
            places.push(place);
        }
    }
    let (chosen, best) = chosen(devices, rehearsed, "expected");
    Ok((chosen, best.map(|best| places[best])))
}

/// The fewest devices of those that are nearly as fast as the best, with its place, and `how` that
/// is known.
fn chosen(devices: &[Device], parts: Vec<Expected>, how: &str) -> (Chosen, Option<usize>) {
    let place = fewest(parts.iter().map(|one| (one.part.len(), one.seconds)));
    let best = place.map(|place| parts[place].clone());
    let mut expected: Vec<Expected> = Vec::new();
    for one in parts {
        match expected.iter_mut().find(|other| other.part == one.part) {
            Some(other) => other.seconds = other.seconds.min(one.seconds),
            None => expected.push(one),
        }
    }
    let all = expected.iter().find(|one| one.part.len() == devices.len());
    let best = best.filter(|best| best.part.len() < devices.len());
    let (part, note) = match best.zip(all) {
        Some((best, all)) => {
            let seconds = [best.seconds, all.seconds].map(Some);
            let note = note(devices, &best.part, seconds, how);
            (best.part, Some(note))
        }
        None => ((0..devices.len()).collect(), None),
    };
    let chosen = Chosen {
        part,
        expected,
        note,
    };
    (chosen, place)
}

/// The same by runs, where nobody knows what tasks take together and four runs of all devices take
/// no longer than [`TRIALS`]. `seconds` runs a problem so often, and gives the least time; none if
/// it was interrupted or lost its devices.
///
/// # Errors
/// Those of `seconds`.
pub(super) fn tried<E>(
    devices: &[Device],
    mut problems: Vec<(Vec<usize>, Problem)>,
    mut seconds: impl FnMut(&Problem, &Repetition) -> Result<Option<f64>, E>,
) -> Result<Chosen, E> {
    let all = Chosen::all(devices.len());
    // All first: they tell how long runs are.
    problems.sort_by_key(|(part, _)| std::cmp::Reverse(part.len()));
    let (mut least, mut tried) = (TRIALS / 4.0, Vec::new());
    for (part, problem) in problems {
        let once = seconds(&problem, &Repetition::ONCE)?;
        let is_short = once.is_some_and(|once| once <= FIRST * least);
        match (is_short, part.len() == devices.len()) {
            (true, _) => {}
            (false, true) => return Ok(all),
            (false, false) => continue,
        }
        let Some(seconds) = seconds(&problem, &Repetition::TRIALS)? else {
            return Ok(all);
        };
        least = least.min(seconds);
        tried.push(Expected { part, seconds });
    }
    Ok(chosen(devices, tried, "measured").0)
}

/// The problem of a part: other devices can run nothing. None if a task has no device then.
pub fn of_part(mut problem: Problem, part: &[usize]) -> Option<Problem> {
    for task in &mut problem.tasks {
        for (device, seconds) in task.seconds.iter_mut().enumerate() {
            if !part.contains(&device) {
                *seconds = None;
            }
        }
        if task.seconds.iter().all(Option::is_none) {
            return None;
        }
    }
    Some(problem)
}

/// Seconds that no run goes below: those of all kernels at the rates of all devices together.
fn least(problem: &Problem) -> Option<f64> {
    let of_task = |seconds: &[Option<f64>]| {
        let rates = seconds.iter().flatten().map(|seconds| 1.0 / seconds);
        1.0 / rates.sum::<f64>()
    };
    let all: f64 = problem
        .tasks
        .iter()
        .map(|task| of_task(&task.seconds))
        .sum();
    all.is_finite().then_some(all)
}

/// What a report says of the part that is chosen, the seconds of it and of all devices, if they are
/// known, and `how`.
pub fn note(
    devices: &[Device],
    part: &[usize],
    [best, all]: [Option<f64>; 2],
    how: &str,
) -> String {
    let names = |part: &[usize]| -> String {
        let names = part.iter().map(|device| devices[*device].name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let milliseconds =
        |seconds: Option<f64>| seconds.map(|seconds| format!("{:.3} ms", 1e3 * seconds));
    let best = milliseconds(best).unwrap_or_default();
    let rest: Vec<usize> = (0..devices.len()).filter(|d| !part.contains(d)).collect();
    if rest.is_empty() {
        let how = how.trim_end_matches(',');
        return format!("all devices take part: {best} {how}");
    }
    let all = milliseconds(all).map_or(String::new(), |all| format!(", {all} on all"));
    let (rest, part) = (names(&rest), names(part));
    format!("{rest} without a part: {best} {how} on {part}{all}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::RuntimeKind;

    /// What trials choose of two devices and both, whose first runs and later ones take so long.
    fn chosen(runs: [Option<[f64; 2]>; 3]) -> (Vec<usize>, usize) {
        // The number of views tells which it is.
        let of = |part: &[usize], number: usize| {
            let views = (0..number).map(|view| (view, Vec::new())).collect();
            let problem = Problem {
                views,
                ..Problem::default()
            };
            (part.to_vec(), problem)
        };
        let problems = vec![of(&[0], 0), of(&[1], 1), of(&[0, 1], 2)];
        let mut count = 0;
        let mut seconds = |problem: &Problem, repetition: &Repetition| {
            count += 1;
            let run = runs[problem.views.len()];
            let later = usize::from(repetition.warms_up);
            Ok::<_, ()>(run.map(|run| run[later]))
        };
        let pool =
            |name: &str| Device::host_pool(RuntimeKind::Host, name.to_owned(), String::new(), 1, 1);
        let devices = ["host:1", "host:2"].map(pool);
        let chosen = tried(&devices, problems, &mut seconds).expect("no error");
        (chosen.part, count)
    }

    #[test]
    fn the_fewest_devices_that_are_fastest_in_trials_take_part() {
        let (slow, fast) = (Some([4e-3, 2e-3]), Some([3e-3, 1e-3]));
        assert_eq!(chosen([slow, fast, slow]), (vec![1], 6));
        assert_eq!(chosen([slow, slow, fast]), (vec![0, 1], 6));
        // A tie is for the fewest.
        assert_eq!(chosen([slow, fast, fast]).0, [1]);
    }

    #[test]
    fn long_runs_and_slow_devices_are_not_tried_again() {
        let long = Some([10.0, 10.0]);
        assert_eq!(chosen([long, long, long]), (vec![0, 1], 1));
        let fast = Some([1e-3, 1e-3]);
        assert_eq!(chosen([long, fast, fast]), (vec![1], 5));
    }

    #[test]
    fn interrupted_trials_choose_nothing() {
        assert_eq!(chosen([None, None, None]), (vec![0, 1], 1));
    }
}
