//! Graphs of tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::PyArray1;
use pdawl::Session;
use pdawl::matrix::Shared;
use pdawl::session::{Data, Error, Task};
use pdawl::task_set::{SETS, TILE, TaskSet};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::caller::{Caller, call};
use crate::policy::PyPolicy;
use crate::run::Run;

/// A datum: its name, its bytes, its contents if it is given, and whether it is a result.
pub type DataSpec<'py> = (String, usize, Option<Bound<'py, PyArray1<u8>>>, bool);

/// The same whose contents are shared.
pub type SharedSpec = (String, usize, Option<Shared<u8>>, bool);

/// A task.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct TaskSpec {
    name: String,
    /// Called with the bytes that it reads; returns those that it writes.
    function: Option<Py<PyAny>>,
    reads: Vec<usize>,
    writes: Vec<usize>,
    flops: f64,
    bytes: f64,
    /// Source, name and work-items of an OpenCL kernel.
    kernel: Option<(String, String, Vec<usize>)>,
    /// Whether the kernel is not examined before it runs in this process.
    unchecked: bool,
}

/// A graph as Python describes it.
pub struct Spec {
    pub data: Vec<SharedSpec>,
    pub tasks: Vec<TaskSpec>,
}

/// A policy: its name, or an object.
pub enum Choice {
    Named(String),
    Own(Py<PyAny>),
}

/// The run, the results, and the seconds that a policy of the user's took.
pub type Ran = (Run, BTreeMap<usize, Shared<u8>>, Option<f64>);

impl Choice {
    pub fn of(policy: &Bound<'_, PyAny>) -> Self {
        match policy.extract::<String>() {
            Ok(name) => Self::Named(name),
            Err(_) => Self::Own(policy.clone().unbind()),
        }
    }
}

/// What is run.
pub enum Work {
    Tasks(Spec),
    Set(TaskSet),
}

/// A set of tasks that share data, by its name as in `pdawl run tasks --set`. They compute
/// nothing.
pub fn task_set(name: &str, n: u32, tile: Option<u32>) -> PyResult<TaskSet> {
    let Some(set) = TaskSet::named(name, n, tile.unwrap_or(TILE)) else {
        let names = SETS.map(|(name, _)| name).join(", ");
        return Err(PyValueError::new_err(format!(
            "no set of tasks is called {name}; there are {names}"
        )));
    };
    set.check()
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(set)
}

impl Work {
    pub fn run(
        self,
        session: &mut Session,
        (policy, caller): (Choice, Caller),
        gpu_memory: Option<u64>,
    ) -> Result<Ran, Error> {
        let mut made: Vec<Data<u8>> = Vec::new();
        let mut is_result = Vec::new();
        let mut run = match self {
            Self::Set(set) => session.task_set(&set),
            Self::Tasks(Spec { data, tasks }) => session.graph(|graph| {
                for (name, bytes, given, result) in data {
                    made.push(match given {
                        Some(given) => graph.given_bytes(&name, given),
                        None if result => graph.result(&name, bytes),
                        None => graph.between(&name, bytes),
                    });
                    is_result.push(result);
                }
                for task in tasks {
                    graph.task(task.task(&made, &caller));
                }
            }),
        };
        if let Some(bytes) = gpu_memory {
            run = run.gpu_memory(bytes);
        }
        let took = Arc::new(Mutex::new(Duration::ZERO));
        let of_policy = Arc::clone(&took);
        let is_own = matches!(policy, Choice::Own(_));
        let run = match policy {
            Choice::Own(policy) => {
                let make = move |problem| -> Box<dyn pdawl::policy::Policy> {
                    Box::new(PyPolicy::new(policy, problem, caller, of_policy))
                };
                run.policy_of(make)
            }
            Choice::Named(name) => run.policy(&name),
        };
        let results = run.run()?;
        let wanted = made.iter().zip(is_result).enumerate();
        let wanted = wanted.filter(|(_, (_, is_result))| *is_result);
        let wanted = wanted.filter_map(|(index, (data, _))| Some((index, results.bytes(*data)?)));
        let took = took.lock().unwrap_or_else(PoisonError::into_inner);
        let took = is_own.then(|| took.as_secs_f64());
        Ok((Run(results.run().clone()), wanted.collect(), took))
    }
}

impl TaskSpec {
    fn task(self, data: &[Data<u8>], caller: &Caller) -> Task {
        let Self {
            name,
            function,
            reads,
            writes,
            flops,
            bytes,
            kernel,
            unchecked,
        } = self;
        let (inputs, outputs, caller) = (reads.len(), writes.len(), caller.clone());
        let task = match function {
            Some(function) => Task::new(&name, move |memory| {
                caller.call((), |py| {
                    let read = (0..inputs).map(|place| PyBytes::new(py, memory.read::<u8>(place)));
                    let read = PyList::new(py, read.collect::<Vec<_>>())?;
                    let written: Vec<Vec<u8>> = call(function.bind(py), (read,))?.extract()?;
                    for (place, bytes) in (0..outputs).zip(&written) {
                        memory.write::<u8>(place).copy_from_slice(bytes);
                    }
                    Ok(())
                });
            }),
            None => Task::without_function(&name),
        };
        let task = reads
            .iter()
            .fold(task, |task, datum| task.reads(data[*datum]));
        let task = writes
            .iter()
            .fold(task, |task, datum| task.writes(data[*datum]));
        let task = task.cost(flops, bytes);
        match kernel {
            // SAFETY: whoever asks for it in Python answers for what the kernel touches.
            Some((source, name, items)) if unchecked => unsafe {
                task.kernel_unchecked(&source, &name, &items)
            },
            Some((source, name, items)) => task.kernel(&source, &name, &items),
            None => task,
        }
    }
}
