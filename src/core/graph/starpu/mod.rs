//! Recordings of StarPU's runs, as task graphs with the machine on which they ran.
//!
//! * `records` reads the form of all files that `starpu_fxt_tool` writes, `tasks` the tasks and
//!   data in it.
//! * `model` reads StarPU's performance models, `machine` its workers and its measured links.
//! * `graph` builds the task graph: what the recorded order and the recorded data imply.
//!
//! The formats are those of StarPU 1.4 (`starpu_fxt.c`, `perfmodel_history.c`, `perfmodel_bus.c`).
//! Every error is a [`SpecError`] with its file and line.

mod graph;
mod machine;
mod model;
mod records;
mod tasks;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pdawl_profiler::file::bounded_input;

use super::spec::SpecError;
use super::{TaskGraph, check_tasks};
use crate::codelet::{Codelet, HostCode, KernelSource, NdRange, OpenClKernel, Shape};
use crate::machine::MachineFile;
use machine::{CPU, Sampling, Worker};
use tasks::{Job, Ran};

/// Most bytes of a file of a recording, and most tasks of one.
const MOST_BYTES: u64 = 4 << 30;
const MOST_TASKS: usize = 1_000_000;

/// The least seconds of a task: StarPU's times have whole nanoseconds.
const LEAST_SECONDS: f64 = 1e-9;

/// A recorded run.
pub struct Recording {
    /// A kernel a task that ran a codelet, in the order of submission. Costs have operations if
    /// these are recorded of every task.
    pub graph: TaskGraph,
    /// A device a worker, in their order, each with the seconds of all codelets that it can run.
    pub machine: MachineFile,
    /// By kernel: the device that it ran on, and its place in the order in which all began.
    pub schedule: Vec<(usize, usize)>,
    /// Seconds from the begin of the first task to the end of the last one.
    pub seconds: f64,
    /// What a reader of results should know.
    pub notes: Vec<String>,
}

/// Reads the recording of a folder: `tasks.rec`, `data.rec` and `activity.data` as
/// `starpu_fxt_tool` writes them, and in `sampling` StarPU's performance models and measured links.
/// Without a model, a codelet takes on a kind of worker what it took there, the mean of the tasks
/// of one footprint. Without a footprint each task is alone.
///
/// # Errors
/// Files that are missing, too large or not in StarPU's form, more than a million tasks, and tasks
/// of workers that are not there.
pub fn load(folder: &Path) -> Result<Recording, SpecError> {
    let file = folder.join("tasks.rec");
    let text = read(&file)?;
    let jobs = tasks::jobs(&file, &text)?;
    let mut timed: Vec<(&Job, &Ran)> = (jobs.iter())
        .filter_map(|job| Some((job, job.ran.as_ref()?)))
        .collect();
    if timed.is_empty() {
        let why = "no task has a StartTime, an EndTime and a WorkerId; record a run that computes";
        return Err(SpecError::file(&file, why));
    }
    if timed.len() > MOST_TASKS {
        let why = format!(
            "it has {} tasks; {MOST_TASKS} are read at most",
            timed.len()
        );
        return Err(SpecError::file(&file, why));
    }
    check_tasks(timed.len() as u64).map_err(|error| SpecError::file(&file, error.to_string()))?;
    timed.sort_by(|one, other| {
        (one.0.submitted.cmp(&other.0.submitted)).then(one.1.start.total_cmp(&other.1.start))
    });
    let workers = machine::workers(folder)?;
    let sampling = Sampling::find(folder)?;
    let mut places = Vec::with_capacity(timed.len());
    for (job, ran) in &timed {
        let place = workers
            .iter()
            .position(|worker| worker.number == ran.worker);
        places.push(place.ok_or_else(|| {
            let why = format!(
                "activity.data has no worker {}; convert both again",
                ran.worker
            );
            SpecError::field(&file, "WorkerId", why).at(Some(job.line))
        })?);
    }
    let (classes, of_task) = classes(&sampling, &workers, &timed, &places)?;
    let codelets: Vec<Arc<Codelet>> = (classes.iter())
        .map(|class| Arc::new(class.codelet(&workers)))
        .collect();
    let mut machine = machine::machine(&sampling, &workers)?;
    for (index, device) in machine.devices.iter_mut().enumerate() {
        let known = |class: &Class| Some((class.name.clone(), class.seconds[index]?));
        device.seconds = classes.iter().filter_map(known).collect();
    }
    let data = tasks::data(&folder.join("data.rec"))?;
    let codelet = |task: usize| Arc::clone(&codelets[of_task[task]]);
    let (graph, order, unordered) = graph::build(&file, &jobs, &timed, &data, codelet)?;
    let mut schedule: Vec<(usize, usize)> = places.into_iter().map(|place| (place, 0)).collect();
    for (place, task) in order.into_iter().enumerate() {
        schedule[task].1 = place;
    }
    let first = timed
        .iter()
        .map(|(_, ran)| ran.start)
        .fold(f64::INFINITY, f64::min);
    let last = timed.iter().map(|(_, ran)| ran.end).fold(0.0, f64::max);
    let note = format!(
        "{unordered} recorded accesses and dependencies are left out: the recorded times contradict \
         them"
    );
    Ok(Recording {
        graph,
        machine,
        schedule,
        seconds: last - first,
        notes: (unordered > 0).then_some(note).into_iter().collect(),
    })
}

/// Tasks that take the same time on a worker.
struct Class {
    name: String,
    /// By worker; `None` where it cannot run.
    seconds: Vec<Option<f64>>,
    /// By worker: the recorded seconds of its tasks, and how many there are.
    recorded: Vec<(f64, u32)>,
}

impl Class {
    /// Fills in the mean of the recorded seconds where no model tells them, on all workers of a
    /// kind.
    fn complete(&mut self, workers: &[Worker]) {
        for (index, worker) in workers.iter().enumerate() {
            let alike = workers.iter().zip(&self.recorded);
            let alike = alike.filter(|(other, _)| other.kind == worker.kind);
            let (sum, count) =
                alike.fold((0.0, 0), |(s, n), (_, (sum, count))| (s + sum, n + count));
            let mean = (count > 0).then(|| sum / f64::from(count));
            let seconds = &mut self.seconds[index];
            *seconds = seconds.or(mean).map(|seconds| seconds.max(LEAST_SECONDS));
        }
    }

    /// A codelet that computes nothing, with an implementation for each kind of device that can
    /// run it.
    fn codelet(&self, workers: &[Worker]) -> Codelet {
        let runs = |on_cpu: bool| {
            let mut all = workers.iter().zip(&self.seconds);
            all.any(|(worker, seconds)| (worker.kind == CPU) == on_cpu && seconds.is_some())
        };
        Codelet {
            name: self.name.clone().into(),
            host: runs(true).then_some(HostCode::Kernel(|_, _, _| {})),
            opencl: runs(false).then(|| OpenClKernel {
                source: KernelSource::new("", "none", "nothing", ""),
                fp64: false,
                shape: Shape::Of(|_, _| NdRange::new(vec![1])),
            }),
            library: None,
        }
    }
}

/// The classes of tasks, and that of each task.
fn classes(
    sampling: &Sampling,
    workers: &[Worker],
    timed: &[(&Job, &Ran)],
    places: &[usize],
) -> Result<(Vec<Class>, Vec<usize>), SpecError> {
    let mut models = HashMap::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut classes: Vec<Class> = Vec::new();
    let mut of_task = Vec::with_capacity(timed.len());
    for ((job, ran), place) in timed.iter().zip(places) {
        let symbol = job.model.unwrap_or_default();
        if !models.contains_key(symbol) {
            models.insert(symbol, sampling.model(symbol)?);
        }
        let model = models[symbol].as_ref();
        let size: u64 = job.accesses.iter().map(|access| access.bytes).sum();
        let modelled = |worker: &Worker| model?.seconds(worker, job.footprint, size as f64);
        let seconds: Vec<Option<f64>> = workers.iter().map(modelled).collect();
        let own = match symbol == job.name || symbol.is_empty() {
            true => job.name.to_owned(),
            false => format!("{} ({symbol})", job.name),
        };
        let name = match job.footprint != 0 || seconds.iter().any(Option::is_some) {
            true => format!("{own} {:08x}", job.footprint),
            false => format!("{own} job {}", job.id),
        };
        let number = *numbers.entry(name).or_insert_with_key(|name| {
            classes.push(Class {
                name: name.clone(),
                seconds,
                recorded: vec![(0.0, 0); workers.len()],
            });
            classes.len() - 1
        });
        let recorded = &mut classes[number].recorded[*place];
        *recorded = (recorded.0 + ran.end - ran.start, recorded.1 + 1);
        of_task.push(number);
    }
    classes.iter_mut().for_each(|class| class.complete(workers));
    Ok((classes, of_task))
}

/// Reads the text of a file.
fn read(file: &Path) -> Result<String, SpecError> {
    let bytes = bounded_input(file, MOST_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => SpecError::file(
            file,
            "there is no such file; `starpu_fxt_tool -i TRACE` writes it, and \
             docs/commands.md tells what else a recording has",
        ),
        _ => SpecError::io(file, &error),
    })?;
    String::from_utf8(bytes).map_err(|_| SpecError::file(file, "it is not text (UTF-8)"))
}
