//! The task graph of a recording. Each write of a handle makes a new version of its datum.
//!
//! StarPU's dependencies alone lack those by tags and between commuting accesses; its access modes
//! alone are wrong where a program orders its tasks itself. So both count, as far as the recorded
//! times agree: a task waits for another one only if that ended before it began. Commuting accesses
//! keep their recorded order. A task that depends on jobs without times waits for what these wait
//! for.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::tasks::{Access, Job, Ran};
use crate::codelet::{Codelet, Cost};
use crate::graph::spec::SpecError;
use crate::graph::{Argument, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph};

/// Most precedences of a graph that follow from StarPU's dependencies.
const MOST_ORDERED: usize = 20_000_000;

/// The graph of the `timed` jobs, which are in the order of its kernels; the places of the kernels
/// in the order in which they began; and how many accesses and dependencies the recorded times
/// contradict. `data` has names, and whether data are anywhere when the run begins.
pub(super) fn build(
    file: &Path,
    jobs: &[Job],
    timed: &[(&Job, Ran)],
    data: &HashMap<u64, (String, bool)>,
    codelet: impl Fn(usize) -> Arc<Codelet>,
) -> Result<(TaskGraph, Vec<usize>, usize), SpecError> {
    let mut order: Vec<usize> = (0..timed.len()).collect();
    let time = |task: &usize| (timed[*task].1.start, timed[*task].1.end);
    order.sort_by(|one, other| {
        time(one)
            .partial_cmp(&time(other))
            .unwrap_or(one.cmp(other))
    });
    let mut versions = Versions {
        graph: GraphBuilder::default(),
        data,
        last: HashMap::new(),
        unordered: 0,
    };
    let (mut arguments, mut places) = (vec![Vec::new(); timed.len()], vec![0; timed.len()]);
    for (place, task) in order.into_iter().enumerate() {
        let (job, ran) = timed[task];
        places[task] = place;
        for access in job
            .accesses
            .iter()
            .filter(|access| access.reads || access.writes)
        {
            versions.access(access, ran, &mut arguments[task]);
        }
    }
    let has_flops = timed.iter().all(|(job, _)| job.flops > 0.0);
    let (mut graph, mut unordered) = (versions.graph, versions.unordered);
    for (task, ((job, _), arguments)) in timed.iter().zip(arguments).enumerate() {
        graph.kernel(Kernel {
            name: format!("{}.{}", job.name, job.id).into(),
            codelet: codelet(task),
            units: 0..1,
            arguments,
            cost: Cost {
                flops: if has_flops { job.flops } else { 0.0 },
                bytes: job.size(),
            },
            prefers: None,
        });
    }
    for (number, (before, after)) in dependencies(jobs, timed).enumerate() {
        if number == MOST_ORDERED {
            let why = format!("it has more than {MOST_ORDERED} dependencies; record fewer tasks");
            return Err(SpecError::file(file, why));
        }
        let ends_before = timed[before].1.end <= timed[after].1.start;
        match ends_before && places[before] < places[after] {
            true => graph.order(KernelId(before), KernelId(after)),
            false => unordered += 1,
        }
    }
    let graph = graph
        .build()
        .map_err(|error| SpecError::file(file, error.to_string()))?;
    Ok((graph, places, unordered))
}

/// Pairs of a task and one that waits for it, directly or through jobs that are no tasks.
fn dependencies<'a>(
    jobs: &'a [Job],
    timed: &'a [(&Job, Ran)],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let all: HashMap<&str, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
    let numbers = timed
        .iter()
        .enumerate()
        .map(|(number, (job, _))| (job.id, number));
    let numbers: HashMap<&str, usize> = numbers.collect();
    timed.iter().enumerate().flat_map(move |(after, (job, _))| {
        let (mut found, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![*job]);
        while let Some(job) = open.pop() {
            for id in job.after.iter().filter(|id| seen.insert(**id)) {
                match numbers.get(id) {
                    Some(before) => found.push((*before, after)),
                    None => open.extend(all.get(id)),
                }
            }
        }
        found
    })
}

/// The last version of a handle's datum.
struct Version {
    datum: DatumId,
    bytes: u64,
    number: usize,
    /// When the task that makes it ends, and the last one that reads it.
    made: f64,
    read: f64,
}

struct Versions<'a> {
    graph: GraphBuilder,
    data: &'a HashMap<u64, (String, bool)>,
    last: HashMap<u64, Version>,
    unordered: usize,
}

impl Versions<'_> {
    /// Adds what a task reads and makes to its arguments. All tasks before began before it.
    fn access(&mut self, access: &Access, ran: Ran, arguments: &mut Vec<Argument>) {
        let Access {
            handle,
            reads,
            writes,
            ..
        } = *access;
        let bytes = access.bytes.max(1);
        // A handle of another size is another one at the same address.
        if self
            .last
            .get(&handle)
            .is_none_or(|version| version.bytes != bytes)
        {
            self.last.remove(&handle);
            let has_home = self.data.get(&handle).is_none_or(|(_, has_home)| *has_home);
            // What is nowhere at first is made by whoever writes it.
            if reads && (has_home || !writes) {
                self.add(handle, bytes, f64::NEG_INFINITY);
            }
        }
        let Some(from) = self.last.get_mut(&handle) else {
            let to = self.add(handle, bytes, ran.end);
            return arguments.push(Argument::FullOutput(to));
        };
        let (from_datum, is_made) = (from.datum, from.made <= ran.start);
        let is_free = is_made && from.read <= ran.start;
        self.unordered += usize::from(!is_made || (writes && !is_free));
        if reads && is_made && !(writes && is_free) {
            from.read = from.read.max(ran.end);
            arguments.push(Argument::Input(from_datum));
        }
        if writes {
            let to = self.add(handle, bytes, ran.end);
            arguments.push(match reads && is_free {
                true => Argument::InOut {
                    from: from_datum,
                    to,
                },
                false => Argument::FullOutput(to),
            });
        }
    }

    /// Adds the next version of a handle's datum, made at a time, or given before all.
    fn add(&mut self, handle: u64, bytes: u64, made: f64) -> DatumId {
        let number = self
            .last
            .get(&handle)
            .map_or(0, |version| version.number + 1);
        let name = self.data.get(&handle).map(|(name, _)| name.clone());
        let name = name.unwrap_or_else(|| format!("{handle:x}"));
        let mut datum = Datum::new(format!("{name} v{number}"), bytes);
        datum.contents = (made == f64::NEG_INFINITY).then(Contents::zeros);
        let (datum, read) = (self.graph.datum(datum), f64::NEG_INFINITY);
        self.last.insert(
            handle,
            Version {
                datum,
                bytes,
                number,
                made,
                read,
            },
        );
        datum
    }
}
