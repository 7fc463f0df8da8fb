//! Recordings of StarPU's runs, as task graphs with the machine on which they ran.
//!
//! * `tasks` reads the tasks and data that `starpu_fxt_tool` writes.
//! * `model` reads StarPU's performance models, `machine` its workers and its measured links.
//! * `graph` builds the task graph: what the recorded order and the recorded data imply.
//!
//! The formats are those of StarPU 1.4 (`starpu_fxt.c`, `perfmodel_history.c`, `perfmodel_bus.c`).
//! Every error is a [`SpecError`] with its file and line.

mod graph;
mod machine;
mod model;
mod tasks;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pdawl_profiler::file::bounded_input;

use super::SpecError;
use crate::codelet::{Codelet, HostCode, KernelSource, NdRange, OpenClKernel, Shape};
use crate::graph::{TaskGraph, check_tasks};
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
    /// Accesses and dependencies that are left out, as the recorded times contradict them.
    pub unordered: usize,
}

/// Reads the recording of a folder: `tasks.rec`, `activity.data` and, if it is there, `data.rec`, as
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
    let timed = jobs.iter().filter_map(|job| Some((job, job.ran?)));
    let mut timed: Vec<(&Job, Ran)> = timed.collect();
    let count = timed.len();
    if !(1..=MOST_TASKS).contains(&count) {
        let why = format!("{count} tasks have a StartTime, and 1 to {MOST_TASKS} are read");
        return Err(SpecError::file(&file, why));
    }
    check_tasks(count as u64).map_err(|error| SpecError::file(&file, error.to_string()))?;
    timed.sort_by_key(|(job, ran)| (job.submitted, (1e9 * ran.start) as u64));
    let (workers, sampling) = (machine::workers(folder)?, Sampling::find(folder)?);
    let place = |(job, ran): &(&Job, Ran)| {
        let (mut all, number) = (workers.iter(), ran.worker);
        let why = || format!("activity.data has no worker {number}; convert both again");
        let wrong = || SpecError::field(&file, "WorkerId", why()).at(Some(job.line));
        all.position(|worker| worker.number == number)
            .ok_or_else(wrong)
    };
    let places: Vec<usize> = timed.iter().map(place).collect::<Result<_, _>>()?;
    let (classes, of_task) = classes(&sampling, &workers, &timed, &places)?;
    let codelet = |class: &Class| Arc::new(class.codelet(&workers));
    let codelets: Vec<Arc<Codelet>> = classes.iter().map(codelet).collect();
    let mut machine = machine::machine(&sampling, &workers)?;
    for (worker, device) in machine.devices.iter_mut().enumerate() {
        let known = |class: &Class| Some((class.name.clone(), class.seconds[worker]?));
        device.seconds = classes.iter().filter_map(known).collect();
    }
    let data = folder.join("data.rec");
    let data = match data.is_file() {
        true => tasks::data(&data, &read(&data)?)?,
        false => HashMap::new(),
    };
    let codelet = |task: usize| Arc::clone(&codelets[of_task[task]]);
    let (graph, order, unordered) = graph::build(&file, &jobs, &timed, &data, codelet)?;
    let (mut first, mut last) = (f64::INFINITY, 0.0);
    for (_, ran) in &timed {
        (first, last) = (ran.start.min(first), ran.end.max(last));
    }
    Ok(Recording {
        graph,
        machine,
        schedule: places.into_iter().zip(order).collect(),
        seconds: last - first,
        unordered,
    })
}

/// Tasks that take the same time on a worker.
struct Class {
    name: String,
    /// By worker; `None` where it cannot run.
    seconds: Vec<Option<f64>>,
}

impl Class {
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
    timed: &[(&Job, Ran)],
    places: &[usize],
) -> Result<(Vec<Class>, Vec<usize>), SpecError> {
    let (mut models, mut numbers) = (HashMap::new(), HashMap::new());
    let (mut classes, mut of_task): (Vec<Class>, _) = (Vec::new(), Vec::new());
    // By class and kind of worker: the recorded seconds, and of how many tasks.
    let mut recorded: HashMap<(usize, u32), (f64, f64)> = HashMap::new();
    for ((job, ran), place) in timed.iter().zip(places) {
        if !models.contains_key(job.model) {
            models.insert(job.model, sampling.model(job.model)?);
        }
        let model = models[job.model].as_ref();
        let modelled = |worker: &Worker| model?.seconds(worker, job.footprint, job.size());
        let seconds: Vec<Option<f64>> = workers.iter().map(modelled).collect();
        let own = format!("{} {}", job.name, job.model);
        let name = match job.footprint != 0 || seconds.iter().any(Option::is_some) {
            true => format!("{own} {:08x}", job.footprint),
            false => format!("{own} job {}", job.id),
        };
        let number = *numbers.entry(name).or_insert_with_key(|name| {
            let name = name.clone();
            classes.push(Class { name, seconds });
            classes.len() - 1
        });
        let (sum, count) = recorded.entry((number, workers[*place].kind)).or_default();
        (*sum, *count) = (*sum + ran.end - ran.start, *count + 1.0);
        of_task.push(number);
    }
    for (number, class) in classes.iter_mut().enumerate() {
        for (seconds, worker) in class.seconds.iter_mut().zip(workers) {
            let recorded = recorded.get(&(number, worker.kind));
            let known = seconds.or(recorded.map(|(sum, count)| sum / count));
            *seconds = known.map(|seconds| seconds.max(LEAST_SECONDS));
        }
    }
    Ok((classes, of_task))
}

/// Reads the text of a file.
fn read(file: &Path) -> Result<String, SpecError> {
    let bytes = bounded_input(file, MOST_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let why = "there is no such file; docs/commands.md tells what a recording has";
            SpecError::file(file, why)
        }
        _ => SpecError::io(file, &error),
    })?;
    String::from_utf8(bytes).map_err(|_| SpecError::file(file, "it is not text (UTF-8)"))
}
