//! Scheduling policies that are Python objects.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pdawl::policy::{Finished, Policy, Problem};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::caller::{Caller, method};

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
    /// What the policy is told before it is asked the next time: that needs no call of its own.
    untold: Vec<Event>,
    caller: Caller,
    /// The time in the policy.
    took: std::sync::Arc<Mutex<Duration>>,
}

impl PyPolicy {
    /// Tells the policy the problem: `begin(problem)`.
    pub fn new(
        policy: Py<PyAny>,
        problem: Problem,
        caller: Caller,
        took: std::sync::Arc<Mutex<Duration>>,
    ) -> Self {
        let about = timed(&caller, &took, (None, None, false, false), |py| {
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
            method(policy, intern!(py, "begin"), (described(py, &problem)?,))?;
            Ok((window, Some(name), evicts, follows))
        });
        let (window, name, evicts, follows) = about;
        Self {
            policy,
            name: kept(name.unwrap_or_else(|| "policy".to_owned())),
            problem,
            window,
            evicts,
            follows,
            ready: BTreeSet::new(),
            untold: Vec::new(),
            caller,
            took,
        }
    }

    /// Tells what is to be told, calls the policy, and counts its time.
    fn call<R: Send>(
        &mut self,
        otherwise: R,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R> + Send,
    ) -> R {
        let (policy, untold) = (&self.policy, std::mem::take(&mut self.untold));
        timed(&self.caller, &self.took, otherwise, |py| {
            let policy = policy.bind(py);
            untold.iter().try_for_each(|event| event.tell(policy))?;
            call(policy)
        })
    }

    /// Raises what is wrong with an answer.
    fn refuse(&self, what: &str) {
        let text = format!("policy {}: {what}", self.name);
        self.caller.raise(PyValueError::new_err(text));
    }
}

/// What happens in a run; times in seconds.
enum Event {
    Ready(usize, f64),
    Finished(usize, usize, f64),
    Lost(usize),
}

impl Event {
    fn tell(&self, policy: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = policy.py();
        match *self {
            Self::Ready(task, now) => method(policy, intern!(py, "ready"), (task, now)),
            Self::Finished(task, device, ended) => {
                method(policy, intern!(py, "finished"), (task, device, ended))
            }
            Self::Lost(device) if policy.hasattr("lost")? => {
                method(policy, intern!(py, "lost"), (device,))
            }
            Self::Lost(_) => return Ok(()),
        }
        .map(drop)
    }
}

/// Calls the policy, and adds the time in it to `took`.
fn timed<R: Send>(
    caller: &Caller,
    took: &Mutex<Duration>,
    otherwise: R,
    call: impl FnOnce(Python<'_>) -> PyResult<R> + Send,
) -> R {
    caller.call(otherwise, |py| {
        let began = Instant::now();
        let made = call(py);
        *took.lock().unwrap_or_else(PoisonError::into_inner) += began.elapsed();
        made
    })
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
        self.untold.push(Event::Ready(component, now as f64 / 1e9));
    }

    fn next(&mut self, device: usize, now: u64) -> Option<usize> {
        let given = self.call(None, |policy| {
            let arguments = (device, now as f64 / 1e9);
            let given = method(policy, intern!(policy.py(), "next"), arguments)?;
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
            let event = Event::Finished(finished.component, finished.device, ended);
            self.untold.push(event);
        }
    }

    fn lost(&mut self, device: usize) {
        self.ready.clear();
        self.untold.push(Event::Lost(device));
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
            let arguments = (device, data.clone());
            let victim = method(policy, intern!(policy.py(), "victim"), arguments)?;
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

impl Drop for PyPolicy {
    fn drop(&mut self) {
        if !self.untold.is_empty() {
            self.call((), |_| Ok(()));
        }
    }
}
