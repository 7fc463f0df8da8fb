//! Scheduling policies that are Python objects.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pdawl::policy::{Finished, Policy, Problem};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::failure::Ending;

/// A policy of the user's. The package's `Policy` documents its methods.
pub struct PyPolicy {
    policy: Py<PyAny>,
    name: &'static str,
    problem: Problem,
    window: Option<usize>,
    evicts: bool,
    /// Whether it wants to know when tasks have ended.
    follows: bool,
    /// Tasks that are ready and that no device has.
    ready: BTreeSet<usize>,
    /// What was asked while nothing ran: a policy that gives nothing then gives nothing at all.
    ending: Ending,
    /// The time in the policy.
    took: std::sync::Arc<Mutex<Duration>>,
}

impl PyPolicy {
    /// Tells the policy the problem: `begin(problem)`.
    pub fn new(
        policy: &Py<PyAny>,
        problem: Problem,
        ending: Ending,
        took: std::sync::Arc<Mutex<Duration>>,
    ) -> Self {
        let began = Instant::now();
        let about = ending.guard((None, None, false, false), |py| {
            let policy = policy.bind(py);
            let window = match policy.getattr_opt("window")? {
                Some(window) => window.extract::<Option<usize>>()?,
                None => None,
            };
            let name = policy.get_type().name()?.to_string();
            let evicts = policy.hasattr("victim")?;
            // That of the base class does nothing.
            let base = py.import("pdawl")?.getattr("Policy")?.getattr("finished")?;
            let follows = match policy.getattr_opt("finished")? {
                Some(own) => (own.getattr_opt("__func__")?).is_none_or(|own| !own.is(&base)),
                None => false,
            };
            policy.call_method1("begin", (described(py, &problem)?,))?;
            Ok((window, Some(name), evicts, follows))
        });
        *took.lock().unwrap_or_else(PoisonError::into_inner) += began.elapsed();
        let (window, name, evicts, follows) = about;
        Self {
            policy: Python::attach(|py| policy.clone_ref(py)),
            name: kept(name.unwrap_or_else(|| "policy".to_owned())),
            problem,
            window,
            evicts,
            follows,
            ready: BTreeSet::new(),
            ending,
            took,
        }
    }

    /// Calls a method, and counts its time.
    fn call<R>(&self, otherwise: R, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> R {
        let began = Instant::now();
        let result = self
            .ending
            .guard(otherwise, |py| call(self.policy.bind(py)));
        *self.took.lock().unwrap_or_else(PoisonError::into_inner) += began.elapsed();
        result
    }

    /// Raises what is wrong with an answer.
    fn refuse(&self, what: &str) {
        let text = format!("policy {}: {what}", self.name);
        self.ending.raise(PyValueError::new_err(text));
    }
}

/// A name for as long as the process lives; each is kept once.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(name.as_str()) {
        return name;
    }
    let name: &'static str = name.leak();
    names.insert(name);
    name
}

/// The problem as a dictionary of lists.
fn described<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyDict>> {
    let tasks = problem.tasks.iter().map(|task| {
        let of = PyDict::new(py);
        of.set_item("predecessors", &task.predecessors)?;
        of.set_item("inputs", &task.inputs)?;
        of.set_item("outputs", &task.outputs)?;
        of.set_item("rank", task.rank)?;
        of.set_item("seconds", &task.seconds)?;
        Ok(of)
    });
    let devices = problem.devices.iter().map(|device| {
        let of = PyDict::new(py);
        of.set_item("kind", device.kind.name())?;
        of.set_item("bandwidth", device.bandwidth)?;
        of.set_item("memory", device.memory)?;
        Ok(of)
    });
    let all = PyDict::new(py);
    all.set_item(
        "tasks",
        PyList::new(py, tasks.collect::<PyResult<Vec<_>>>()?)?,
    )?;
    all.set_item(
        "devices",
        PyList::new(py, devices.collect::<PyResult<Vec<_>>>()?)?,
    )?;
    let bytes: Vec<u64> = problem.data.iter().map(|datum| datum.bytes).collect();
    all.set_item("data", bytes)?;
    Ok(all)
}

impl Policy for PyPolicy {
    fn name(&self) -> &'static str {
        self.name
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        self.window
    }

    fn begin(&mut self) {
        self.ready.clear();
    }

    fn ready(&mut self, component: usize, now: u64) {
        self.ready.insert(component);
        self.call((), |policy| {
            policy.call_method1(intern!(policy.py(), "ready"), (component, now as f64 / 1e9))?;
            Ok(())
        });
    }

    fn next(&mut self, device: usize, now: u64) -> Option<usize> {
        let given = self.call(None, |policy| {
            let given =
                policy.call_method1(intern!(policy.py(), "next"), (device, now as f64 / 1e9))?;
            given.extract::<Option<usize>>()
        })?;
        if !self.ready.remove(&given) {
            self.refuse(&format!(
                "`next` gave task {given} to device {device}, and it is not ready; give each \
                 task once, after `ready` has reported it"
            ));
            return None;
        }
        if !self.problem.able(given, device) {
            self.refuse(&format!(
                "`next` gave task {given} to device {device}, which cannot run it: its `seconds` \
                 are None there"
            ));
            return None;
        }
        Some(given)
    }

    fn finished(&mut self, finished: &Finished) {
        if self.follows {
            let ended = finished.ended as f64 / 1e9;
            let arguments = (finished.component, finished.device, ended);
            self.call((), |policy| {
                policy.call_method1(intern!(policy.py(), "finished"), arguments)?;
                Ok(())
            });
        }
    }

    fn lost(&mut self, device: usize) {
        self.ready.clear();
        self.call((), |policy| match policy.getattr_opt("lost")? {
            Some(method) => method.call1((device,)).map(|_| ()),
            None => Ok(()),
        });
    }

    fn returned(&mut self, _device: usize) {
        self.ready.clear();
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        if !self.evicts {
            return None;
        }
        let data: Vec<usize> = (0..self.problem.data.len())
            .filter(|datum| evictable(*datum))
            .collect();
        let victim = self.call(None, |policy| {
            let victim = policy.call_method1("victim", (device, data.clone()))?;
            victim.extract::<Option<usize>>()
        })?;
        if !data.contains(&victim) {
            self.refuse(&format!(
                "`victim` answered {victim}, which is not one of {data:?}"
            ));
            return None;
        }
        Some(victim)
    }
}
