//! The task graph of a recording. Each write of a handle makes a new version of its datum.
//!
//! StarPU's dependencies alone lack those by tags and between commuting accesses; its access modes
//! alone are wrong where a program orders its tasks itself. So both count, as far as the recorded
//! times agree: a task waits for another one only if that ended before it began. Commuting accesses
//! keep their recorded order. A task that is followed through jobs without times waits for what
//! these wait for.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::tasks::{Access, Handle, Job, Ran};
use crate::codelet::{Codelet, Cost};
use crate::graph::spec::SpecError;
use crate::graph::{Argument, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph};

/// Most precedences of a graph that follow from StarPU's dependencies.
const MOST_ORDERED: usize = 20_000_000;

/// The last version of a handle's datum.
struct Version {
    datum: DatumId,
    bytes: u64,
    number: usize,
    /// When the task that makes it ends, and the last one that reads it.
    made: f64,
    read: f64,
}

/// The graph of the `timed` jobs, which are in the order of its kernels; the kernels in the order in
/// which they began; and how many accesses and dependencies the recorded times contradict.
pub(super) fn build(
    file: &Path,
    jobs: &[Job],
    timed: &[(&Job, &Ran)],
    data: &HashMap<u64, Handle>,
    codelet: impl Fn(usize) -> Arc<Codelet>,
) -> Result<(TaskGraph, Vec<usize>, usize), SpecError> {
    let mut order: Vec<usize> = (0..timed.len()).collect();
    order.sort_by(|one, other| {
        let (one, other) = (timed[*one].1, timed[*other].1);
        one.start
            .total_cmp(&other.start)
            .then(one.end.total_cmp(&other.end))
    });
    let mut versions = Versions {
        graph: GraphBuilder::default(),
        data,
        last: HashMap::new(),
        unordered: 0,
    };
    let mut arguments = vec![Vec::new(); timed.len()];
    for task in &order {
        let (job, ran) = timed[*task];
        for access in &job.accesses {
            versions.access(access, ran, &mut arguments[*task]);
        }
    }
    let Versions {
        mut graph,
        mut unordered,
        ..
    } = versions;
    let has_flops = timed.iter().all(|(job, _)| job.flops > 0.0);
    for (task, ((job, _), arguments)) in timed.iter().zip(arguments).enumerate() {
        let bytes: u64 = job.accesses.iter().map(|access| access.bytes).sum();
        graph.kernel(Kernel {
            name: format!("{}.{}", job.name, job.id).into(),
            codelet: codelet(task),
            units: 0..1,
            arguments,
            cost: Cost {
                flops: if has_flops { job.flops } else { 0.0 },
                bytes: bytes as f64,
            },
            prefers: None,
        });
    }
    let mut began = vec![0; order.len()];
    (order.iter().enumerate()).for_each(|(place, task)| began[*task] = place);
    let mut ordered = 0;
    for (after, before) in dependencies(jobs, timed) {
        let is_before = timed[before].1.end <= timed[after].1.start && began[before] < began[after];
        match is_before {
            true => graph.order(KernelId(before), KernelId(after)),
            false => unordered += 1,
        }
        ordered += 1;
        if ordered > MOST_ORDERED {
            let why = format!("it has more than {MOST_ORDERED} dependencies; record fewer tasks");
            return Err(SpecError::file(file, why));
        }
    }
    let graph = graph
        .build()
        .map_err(|error| SpecError::file(file, error.to_string()))?;
    Ok((graph, order, unordered))
}

/// Pairs of a task and one that it waits for, directly or through jobs that are no tasks.
fn dependencies<'a>(
    jobs: &'a [Job],
    timed: &'a [(&Job, &Ran)],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let by_id: HashMap<&str, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
    let numbers: HashMap<&str, usize> = (timed.iter().enumerate())
        .map(|(number, (job, _))| (job.id, number))
        .collect();
    timed.iter().enumerate().flat_map(move |(after, (job, _))| {
        let mut found = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut open = vec![*job];
        while let Some(job) = open.pop() {
            for id in job.after.iter().filter(|id| seen.insert(id)) {
                match (numbers.get(id), by_id.get(id)) {
                    (Some(before), _) => found.push((after, *before)),
                    (None, Some(between)) => open.push(between),
                    (None, None) => {}
                }
            }
        }
        found
    })
}

struct Versions<'a> {
    graph: GraphBuilder,
    data: &'a HashMap<u64, Handle>,
    last: HashMap<u64, Version>,
    unordered: usize,
}

impl Versions<'_> {
    /// Adds what a task reads and makes to its arguments. The task began after all those before.
    fn access(&mut self, access: &Access, ran: &Ran, arguments: &mut Vec<Argument>) {
        let Access {
            handle,
            reads,
            writes,
            ..
        } = *access;
        if !reads && !writes {
            return;
        }
        let bytes = access.bytes.max(1);
        let has_home = self.data.get(&handle).is_none_or(|of| of.has_home);
        // A handle of another size is another one at the same address.
        let known = self
            .last
            .get(&handle)
            .is_some_and(|version| version.bytes == bytes);
        if !known {
            self.last.remove(&handle);
            // What is nowhere at first is made by whoever writes it.
            if reads && (has_home || !writes) {
                self.add(handle, bytes, f64::NEG_INFINITY);
            }
        }
        let Some(from) = self.last.get_mut(&handle) else {
            let made = self.add(handle, bytes, ran.end);
            return arguments.push(Argument::FullOutput(made));
        };
        let (datum, is_made) = (from.datum, from.made <= ran.start);
        let is_free = is_made && from.read <= ran.start;
        self.unordered += usize::from(!is_made || (writes && !is_free));
        if reads && is_made && !(writes && is_free) {
            from.read = from.read.max(ran.end);
            arguments.push(Argument::Input(datum));
        }
        if writes {
            let to = self.add(handle, bytes, ran.end);
            arguments.push(match reads && is_free {
                true => Argument::InOut { from: datum, to },
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
        let name = match self.data.get(&handle) {
            Some(known) => format!("{} v{number}", known.name),
            None => format!("{handle:x} v{number}"),
        };
        let datum = Datum::new(name, bytes);
        let datum = self.graph.datum(match made == f64::NEG_INFINITY {
            true => datum.with(Contents::zeros()),
            false => datum,
        });
        let read = f64::NEG_INFINITY;
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
