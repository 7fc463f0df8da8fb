//! Serves launches: by our kernels, or by CUDA's libraries where these are faster; and
//! gates in streams.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys;

use super::backend::{Cuda, Here};
use super::device::OpenDevice;
use super::error::{Failure, check};
use super::handle::{Event, Stream};
use super::launch::{Prepared, Stopped, lend, prepare};
use super::library::choice::{Key, Turn};
use super::library::prepare_library;
use crate::codelet::LibraryKernel;
use crate::codelet::library::LibraryLaunch;
use crate::runtime::driven::KeepAlive;
use crate::runtime::{Implementation, Launch, RuntimeError};

/// A launch that is measured.
pub(super) struct Measured {
    key: Key,
    implementation: Implementation,
    /// Operations, or bytes.
    work: f64,
    begin: Arc<Event>,
    end: Arc<Event>,
}

/// How a library serves a launch; `None`: our kernels do.
pub(super) type Served<'a> = Option<(&'a LibraryKernel, LibraryLaunch)>;

/// A launch that a library may serve.
struct Candidate<'a> {
    kernel: &'a LibraryKernel,
    described: LibraryLaunch,
    key: Key,
    turn: Turn,
    work: f64,
}

/// How a library would serve a launch on a device, if one can, and the kind of the launch.
fn described(index: usize, launch: &Launch) -> Option<(&LibraryKernel, LibraryLaunch, Key)> {
    let kernel = launch.codelet.library.as_ref()?;
    let described = (kernel.launch)(&launch.units, &launch.args)?;
    let key = Key::new(index, &launch.codelet.name, &described.sizes);
    Some((kernel, described, key))
}

impl Cuda {
    /// Enqueues a launch, whose preparation is kept if it is repeated; returns what must
    /// outlive it.
    pub(super) fn serve(
        &mut self,
        here: &mut Here<'_>,
        launch: &Launch,
        repeated: Option<&Arc<Launch>>,
    ) -> Result<Vec<KeepAlive>, RuntimeError> {
        let index = here.index;
        if let Some(kept) = repeated.and_then(|launch| self.repeats.kept(index, launch, ())) {
            let kept = Arc::clone(kept);
            return match self.run(here, &kept, None)? {
                Ok(keep_alive) => Ok(keep_alive),
                Err(why) if launch.codelet.opencl.is_none() => Err(refused(here, why)),
                Err(why) => {
                    if let Some(launch) = repeated {
                        self.repeats.drop_kept(index, launch, ());
                    }
                    if let Some(candidate) = self.candidate((index, &*here.device), launch) {
                        self.choices.refuse(&candidate.key, why);
                    }
                    Ok(self.serve_own(here, launch, None)?.1)
                }
            };
        }
        let candidate = self.candidate((index, &*here.device), launch);
        let turn = candidate
            .as_ref()
            .map_or(Turn::OWN, |candidate| candidate.turn);
        let served = match &candidate {
            Some(candidate) if turn.implementation == Implementation::Library => {
                let by_library = match self.prepared(here, launch, Some(candidate))? {
                    Ok(prepared) => {
                        let done = self.run(here, &prepared, Some(candidate))?;
                        done.map(|keep_alive| (prepared, keep_alive))
                    }
                    Err(why) => Err(why),
                };
                match by_library {
                    Ok(served) => served,
                    Err(why) if launch.codelet.opencl.is_none() => {
                        return Err(refused(here, why));
                    }
                    Err(why) => {
                        self.choices.refuse(&candidate.key, why);
                        self.serve_own(here, launch, None)?
                    }
                }
            }
            own => self.serve_own(here, launch, own.as_ref())?,
        };
        let (prepared, keep_alive) = served;
        // What uses its queue's own memory is for that queue alone.
        let keeps = turn.is_settled && !prepared.is_of_queue;
        if let Some(launch) = repeated.filter(|_| keeps) {
            let of = (launch, launch.memories());
            self.repeats.keep(index, of, (), prepared);
        }
        Ok(keep_alive)
    }

    /// Prepares and enqueues a launch by our kernels.
    fn serve_own(
        &mut self,
        here: &mut Here<'_>,
        launch: &Launch,
        measured: Option<&Candidate<'_>>,
    ) -> Result<(Arc<Prepared>, Vec<KeepAlive>), RuntimeError> {
        let own = self.prepared(here, launch, None)?;
        let done = match own {
            Ok(prepared) => {
                debug_assert!(prepared.has_only_kernels());
                let done = self.run(here, &prepared, measured)?;
                done.map(|keep_alive| (prepared, keep_alive))
            }
            Err(why) => Err(why),
        };
        done.map_err(|why| refused(here, why))
    }

    /// How a library would serve a launch, and whether it does.
    fn candidate<'a>(
        &mut self,
        (index, device): (usize, &OpenDevice),
        launch: &'a Launch,
    ) -> Option<Candidate<'a>> {
        let libraries = self.libraries.as_mut()?;
        let (kernel, described, key) = described(index, launch)?;
        let work = match launch.cost.flops > 0.0 {
            true => launch.cost.flops,
            false => launch.cost.bytes,
        };
        let turn = match launch.codelet.opencl {
            Some(_) => self.choices.turn(&key, &device.info.name, work, || {
                libraries.ready(kernel.library, index, device)
            }),
            // There is nothing to choose.
            None => Turn::LIBRARY,
        };
        Some(Candidate {
            kernel,
            described,
            key,
            turn,
            work,
        })
    }

    /// What serves a launch from now on, with the description of a library's calls; `None`
    /// while both are tried.
    pub(super) fn settled<'a>(&self, index: usize, launch: &'a Launch) -> Option<Served<'a>> {
        let described = self.libraries.is_some().then(|| described(index, launch));
        let Some((kernel, described, key)) = described.flatten() else {
            return Some(None);
        };
        let serves = match launch.codelet.opencl {
            Some(_) => self.choices.serves(&key)?,
            None => Implementation::Library,
        };
        Some((serves == Implementation::Library).then_some((kernel, described)))
    }

    /// A launch prepared by our kernels or a library, which may refuse it.
    fn prepared(
        &mut self,
        here: &mut Here<'_>,
        launch: &Launch,
        candidate: Option<&Candidate<'_>>,
    ) -> Result<Result<Arc<Prepared>, String>, RuntimeError> {
        let (scratch, mut env) = self.launch_env(here);
        let prepared = match candidate {
            None => Ok(prepare(launch, scratch, &mut env)?),
            Some(Candidate {
                kernel, described, ..
            }) => prepare_library(launch, (kernel, described), scratch, &mut env)?,
        };
        Ok(prepared.map(Arc::new))
    }

    /// Enqueues a prepared launch, with events around it if the candidate's turn is measured.
    /// The inner error says why a library refuses it, after which ours can serve.
    fn run(
        &mut self,
        here: &mut Here<'_>,
        prepared: &Arc<Prepared>,
        candidate: Option<&Candidate<'_>>,
    ) -> Result<Result<Vec<KeepAlive>, String>, RuntimeError> {
        let (device, queue) = (&mut *here.device, &mut *here.queue);
        let mut keep_alive = vec![Arc::clone(&prepared.keep_alive)];
        let mut room = (0, 0);
        if prepared.room > 0 {
            match lend(&mut queue.own.room, prepared.room, device) {
                Ok(memory) => {
                    room = (memory.address(), prepared.room);
                    keep_alive.push(memory as KeepAlive);
                }
                Err(error @ RuntimeError::DeviceLost { .. }) => return Err(error),
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        let measured = candidate.filter(|candidate| candidate.turn.is_measured);
        let gate = measured.map(|_| Gate::close(&queue.own.stream)).transpose();
        let gate = gate.map_err(|failure| device.failed(failure))?;
        let begin = measured.map(|_| device.record(&queue.own.stream, true));
        let begin = begin
            .transpose()
            .map_err(|failure| device.failed(failure))?;
        match prepared.enqueue(&queue.own.stream, room) {
            Ok(()) => {}
            Err(Stopped::Driver(failure)) => return Err(device.failed(failure)),
            Err(Stopped::Library { why, is_harmless }) => {
                // What was enqueued before runs.
                queue.uncovered.keep(keep_alive);
                if is_harmless {
                    return Ok(Err(why));
                }
                if let Some(candidate) = candidate {
                    self.choices.refuse(&candidate.key, why.clone());
                }
                return Err(refused(here, why));
            }
        }
        if let (Some(begin), Some(candidate)) = (begin, measured) {
            let end = device.record(&queue.own.stream, true);
            let end = end.map_err(|failure| device.failed(failure))?;
            drop(gate);
            self.measured.push(Measured {
                key: candidate.key.clone(),
                implementation: candidate.turn.implementation,
                work: candidate.work,
                begin,
                end,
            });
        }
        Ok(Ok(keep_alive))
    }

    /// Takes the times of measured launches that have ended.
    pub(super) fn measure(&mut self, devices: &mut [OpenDevice]) {
        for one in std::mem::take(&mut self.measured) {
            let seconds = match one.end.has_ended() {
                Ok(false) => {
                    self.measured.push(one);
                    continue;
                }
                Ok(true) => one.end.since(&one.begin).ok().map(|time| time * 1e-9),
                Err(_) => None,
            };
            let choices = &mut self.choices;
            choices.measured(&one.key, one.implementation, seconds, one.work);
            let device = &mut devices[one.key.device];
            device.reuse(one.begin, true);
            device.reuse(one.end, true);
        }
    }
}

/// The error of a launch that a library refuses, and that nothing else serves.
fn refused(here: &Here<'_>, why: String) -> RuntimeError {
    let why = format!("{why}; our kernels serve with --libraries off");
    here.device.refused("a library's call", why)
}

// A gate in a stream: what is enqueued behind it begins when the host has enqueued all of it.
// So the time between two events is the device's alone. Enqueueing a library's call may take
// the host several times as long as the device needs for it.

/// How long a gate stays closed at most. A library's call may itself wait for the stream, as
/// when the driver loads code.
const LONGEST: Duration = Duration::from_millis(100);

#[derive(Default)]
struct State {
    is_open: Mutex<bool>,
    changed: Condvar,
}

/// A gate, open once it is dropped.
pub(super) struct Gate(Arc<State>);

impl Gate {
    /// A closed gate behind what is enqueued.
    pub(super) fn close(stream: &Stream) -> Result<Self, Failure> {
        let state = Arc::new(State::default());
        let of_stream = Arc::into_raw(Arc::clone(&state));
        // SAFETY: the stream is alive, and the state is the function's until it has run.
        let code =
            unsafe { sys::cuLaunchHostFunc(stream.raw(), Some(wait), of_stream.cast_mut().cast()) };
        if let Err(failure) = check("cuLaunchHostFunc", code) {
            // SAFETY: the function will not run. The state came from an `Arc`.
            drop(unsafe { Arc::from_raw(of_stream) });
            return Err(failure);
        }
        Ok(Self(state))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let is_open = self.0.is_open.lock();
        *is_open.unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

/// Keeps the stream until the gate is open. A device that is lost does not call it, and keeps
/// the few bytes of the state.
unsafe extern "C" fn wait(state: *mut c_void) {
    // SAFETY: `close` gave it this reference to a state, and it is called once.
    let state = unsafe { Arc::from_raw(state.cast::<State>()) };
    let is_open = state.is_open.lock();
    let is_open = is_open.unwrap_or_else(PoisonError::into_inner);
    let waited = (state.changed).wait_timeout_while(is_open, LONGEST, |is_open| !*is_open);
    drop(waited);
}
