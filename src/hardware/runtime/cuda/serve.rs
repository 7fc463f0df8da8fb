//! Serves launches: by our kernels, or by CUDA's libraries where these are faster.

use std::sync::Arc;

use super::backend::CudaBackend;
use super::gate::Gate;
use super::handle::Event;
use super::launch::{LaunchEnv, Prepared, Stopped, lend, prepare};
use super::library::choice::{Key, Turn};
use super::library::prepare_library;
use super::memory::KeepAlive;
use super::queue::OpenQueue;
use crate::codelet::LibraryKernel;
use crate::codelet::library::LibraryLaunch;
use crate::runtime::{Implementation, Launch, QueueId, RuntimeError};

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

impl CudaBackend {
    /// Enqueues a launch, whose preparation is kept if it is repeated; returns what must
    /// outlive it.
    pub(super) fn serve(
        &mut self,
        id: QueueId,
        launch: &Launch,
        repeated: Option<&Arc<Launch>>,
    ) -> Result<Vec<KeepAlive>, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let index = self.queues.get(&id).ok_or(unknown)?.device;
        if let Some(kept) = repeated.and_then(|launch| self.repeats.kept(index, launch)) {
            return match self.run(id, &kept, None)? {
                Ok(keep_alive) => Ok(keep_alive),
                Err(why) if launch.codelet.opencl.is_none() => Err(self.refused(index, why)),
                Err(why) => {
                    if let Some(launch) = repeated {
                        self.repeats.drop_kept(index, launch);
                    }
                    if let Some(candidate) = self.candidate(index, launch) {
                        self.choices.refuse(&candidate.key, why);
                    }
                    Ok(self.serve_own(id, launch, None)?.1)
                }
            };
        }
        let candidate = self.candidate(index, launch);
        let turn = candidate
            .as_ref()
            .map_or(Turn::OWN, |candidate| candidate.turn);
        let served = match &candidate {
            Some(candidate) if turn.implementation == Implementation::Library => {
                let by_library = match self.prepared(id, launch, Some(candidate))? {
                    Ok(prepared) => {
                        let done = self.run(id, &prepared, Some(candidate))?;
                        done.map(|keep_alive| (prepared, keep_alive))
                    }
                    Err(why) => Err(why),
                };
                match by_library {
                    Ok(served) => served,
                    Err(why) if launch.codelet.opencl.is_none() => {
                        return Err(self.refused(index, why));
                    }
                    Err(why) => {
                        self.choices.refuse(&candidate.key, why);
                        self.serve_own(id, launch, None)?
                    }
                }
            }
            own => self.serve_own(id, launch, own.as_ref())?,
        };
        let (prepared, keep_alive) = served;
        if let Some(launch) = repeated.filter(|_| turn.is_settled) {
            self.repeats.keep(index, launch, &prepared);
        }
        Ok(keep_alive)
    }

    /// Prepares and enqueues a launch by our kernels.
    fn serve_own(
        &mut self,
        id: QueueId,
        launch: &Launch,
        measured: Option<&Candidate<'_>>,
    ) -> Result<(Arc<Prepared>, Vec<KeepAlive>), RuntimeError> {
        let own = self.prepared(id, launch, None)?;
        let done = match own {
            Ok(prepared) => {
                debug_assert!(prepared.has_only_kernels());
                let done = self.run(id, &prepared, measured)?;
                done.map(|keep_alive| (prepared, keep_alive))
            }
            Err(why) => Err(why),
        };
        done.map_err(|why| {
            let index = self.queues.get(&id).map_or(0, |queue| queue.device);
            self.refused(index, why)
        })
    }

    /// How a library would serve a launch, and whether it does.
    fn candidate<'a>(&mut self, index: usize, launch: &'a Launch) -> Option<Candidate<'a>> {
        let libraries = self.libraries.as_mut()?;
        let (kernel, described, key) = described(index, launch)?;
        let device = &self.devices[index];
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
        id: QueueId,
        launch: &Launch,
        candidate: Option<&Candidate<'_>>,
    ) -> Result<Result<Arc<Prepared>, String>, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let queue = self.queues.get_mut(&id).ok_or(unknown)?;
        let OpenQueue {
            device: index,
            scratch,
            ..
        } = queue;
        let mut env = LaunchEnv {
            index: *index,
            device: &mut self.devices[*index],
            programs: &mut self.programs,
            libraries: self.libraries.as_mut(),
            memories: &self.memories,
        };
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
        id: QueueId,
        prepared: &Arc<Prepared>,
        candidate: Option<&Candidate<'_>>,
    ) -> Result<Result<Vec<KeepAlive>, String>, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let queue = self.queues.get_mut(&id).ok_or(unknown)?;
        let index = queue.device;
        let device = &mut self.devices[index];
        let mut keep_alive = vec![Arc::clone(&prepared.keep_alive)];
        let mut room = (0, 0);
        if prepared.room > 0 {
            match lend(&mut queue.room, prepared.room, device) {
                Ok(memory) => {
                    room = (memory.address(), prepared.room);
                    keep_alive.push(memory as KeepAlive);
                }
                Err(error @ RuntimeError::DeviceLost { .. }) => return Err(error),
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        let measured = candidate.filter(|candidate| candidate.turn.is_measured);
        let gate = measured.map(|_| Gate::close(&queue.stream)).transpose();
        let gate = gate.map_err(|failure| device.failed(failure))?;
        let begin = measured.map(|_| device.record(&queue.stream, true));
        let begin = begin
            .transpose()
            .map_err(|failure| device.failed(failure))?;
        match prepared.enqueue(&queue.stream, room) {
            Ok(()) => {}
            Err(Stopped::Driver(failure)) => return Err(device.failed(failure)),
            Err(Stopped::Library { why, is_harmless }) => {
                // What was enqueued before runs.
                queue.uncovered.keep_alive.append(&mut keep_alive);
                queue.uncovered.any = true;
                if is_harmless {
                    return Ok(Err(why));
                }
                if let Some(candidate) = candidate {
                    self.choices.refuse(&candidate.key, why.clone());
                }
                return Err(self.refused(index, why));
            }
        }
        if let (Some(begin), Some(candidate)) = (begin, measured) {
            let end = device.record(&queue.stream, true);
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

    fn refused(&self, index: usize, why: String) -> RuntimeError {
        RuntimeError::Call {
            device: self.devices[index].info.name.clone(),
            call: "a library's call",
            why: format!("{why}; our kernels serve with --libraries off"),
        }
    }

    /// Takes the times of measured launches that have ended.
    pub(super) fn measure(&mut self) {
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
            let device = &mut self.devices[one.key.device];
            device.reuse(one.begin, true);
            device.reuse(one.end, true);
        }
    }
}
