//! CUDA's libraries as implementations of codelets: cuBLAS, cuSOLVER and cuFFT, which are
//! searched for when the program runs.
//!
//! * `search` finds a library's file, `functions` declares the functions that are called.
//! * [`Libraries`] has what is loaded, with a handle for each device (`handles`), and
//!   prepares a launch. `calls` has its calls, whose matrices are stored by rows, for libraries
//!   that store them by columns.
//! * [`choice`] says which implementation serves: ours or the library's.
//!
//! Nothing here waits for the device. A library that is absent, lacks a function or refuses a
//! call is reported in the run's report, and our kernels serve.

mod calls;
pub(super) mod choice;
pub(super) mod functions;
mod handles;
pub(super) mod search;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

pub(super) use calls::{Call, Room};
use functions::{CUBLAS, CUFFT, CUSOLVER, Cublas, Cufft, Cusolver};
use handles::{Blas, Plans, Solver};
use search::load;

use self::calls::{Place, prepare};
use super::device::OpenDevice;
use crate::codelet::LibraryKernel;
use crate::codelet::library::{Library, LibraryLaunch, LibraryStep};
use crate::runtime::cuda::launch::{
    Argument, LaunchEnv, LaunchPart, Prepared, QueueMemory, lend, step, value,
};
use crate::runtime::driven::KeepAlive;
use crate::runtime::{Launch, RuntimeError};

/// What was loaded, or why not.
type Loaded<T> = Option<Result<Arc<T>, String>>;

/// The libraries of a backend.
#[derive(Default)]
pub(super) struct Libraries {
    /// The version of CUDA that the driver is for, without what follows its first point.
    cuda: i32,
    cublas: Loaded<Cublas>,
    cusolver: Loaded<Cusolver>,
    cufft: Loaded<Cufft>,
    /// By index of the device.
    blas: HashMap<usize, Result<Arc<Blas>, String>>,
    solver: HashMap<usize, Result<Arc<Solver>, String>>,
    plans: HashMap<usize, Plans>,
}

impl Libraries {
    /// Those for a driver of this version, as CUDA counts: 12040 is 12.4. Nothing is loaded
    /// before it is needed.
    pub(super) fn new(version: i32) -> Self {
        Self {
            cuda: version / 1000,
            ..Self::default()
        }
    }

    /// The name and version of a library, loaded and ready for a device, such as
    /// `cublas-130002`.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn ready(
        &mut self,
        library: Library,
        index: usize,
        device: &OpenDevice,
    ) -> Result<String, String> {
        match library {
            Library::Blas => Ok(self.blas(index, device)?.name.clone()),
            Library::Solver => Ok(self.solver(index, device)?.name.clone()),
            Library::Fft => Ok(self.plans(index)?.name.clone()),
        }
    }

    fn blas(&mut self, index: usize, device: &OpenDevice) -> Result<Arc<Blas>, String> {
        let (cublas, cuda) = (&mut self.cublas, self.cuda);
        let opened = self.blas.entry(index).or_insert_with(|| {
            let loaded = cublas.get_or_insert_with(|| {
                load("cublas", &CUBLAS, cuda)
                    .and_then(Cublas::of)
                    .map(Arc::new)
            });
            Blas::open(loaded.clone()?, device).map(Arc::new)
        });
        opened.clone()
    }

    fn solver(&mut self, index: usize, device: &OpenDevice) -> Result<Arc<Solver>, String> {
        let (cusolver, cuda) = (&mut self.cusolver, self.cuda);
        let opened = self.solver.entry(index).or_insert_with(|| {
            let loaded = cusolver.get_or_insert_with(|| {
                load("cusolver", &CUSOLVER, cuda)
                    .and_then(Cusolver::of)
                    .map(Arc::new)
            });
            Solver::open(loaded.clone()?, device).map(Arc::new)
        });
        opened.clone()
    }

    fn plans(&mut self, index: usize) -> Result<&mut Plans, String> {
        let cuda = self.cuda;
        let loaded = (self.cufft).get_or_insert_with(|| {
            load("cufft", &CUFFT, cuda)
                .and_then(Cufft::of)
                .map(Arc::new)
        });
        let loaded = loaded.clone()?;
        match self.plans.entry(index) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(closed) => Ok(closed.insert(Plans::open(loaded)?)),
        }
    }
}

/// Prepares a launch by calls of a library.
///
/// # Errors
/// Why the library does not serve, or what is wrong with the launch or the device.
pub(in crate::runtime::cuda) fn prepare_library(
    launch: &Launch,
    (kernel, described): (&LibraryKernel, &LibraryLaunch),
    scratch: &mut QueueMemory,
    env: &mut LaunchEnv<'_>,
) -> Result<Result<Prepared, String>, RuntimeError> {
    let mut keep_alive: Vec<KeepAlive> = Vec::new();
    let mut values = Vec::with_capacity(launch.args.len() + 1);
    for arg in &launch.args {
        values.push(value(arg, &mut keep_alive, env)?);
    }
    let addresses: Vec<u64> = (values.iter())
        .map(|value| match value {
            Argument::Memory(address) => *address,
            Argument::Plain(_) | Argument::Local(_) => 0,
        })
        .collect();
    let mut place = Place {
        arguments: &addresses,
        scratch: 0,
    };
    if described.scratch > 0 {
        let memory = match lend(scratch, described.scratch, env.device) {
            Ok(memory) => memory,
            Err(error) => return or_ours(error),
        };
        place.scratch = memory.address();
        values.push(Argument::Memory(memory.address()));
        keep_alive.push(memory as KeepAlive);
    }
    let mut prepared = Prepared {
        parts: Vec::new(),
        harmless: 0,
        room: 0,
        is_of_queue: described.scratch > 0,
        keep_alive: Arc::new(()),
    };
    let mut is_harmless = true;
    for one in &described.steps {
        match one {
            LibraryStep::Kernel {
                kernel: index,
                sizes,
                prepares,
            } => {
                let source = &kernel.kernels[*index];
                let to = (&mut keep_alive, &mut prepared.parts);
                match step(source, sizes, &values, to, env) {
                    Ok(()) => {}
                    Err(error) => return or_ours(error),
                }
                is_harmless &= prepares;
            }
            LibraryStep::Call(call) => {
                let Some(libraries) = env.libraries.as_deref_mut() else {
                    return Ok(Err("CUDA's libraries are not used".to_owned()));
                };
                let on = (env.index, &*env.device);
                let call = match prepare(libraries, on, call, &place) {
                    Ok(call) => call,
                    Err(why) => return Ok(Err(why)),
                };
                prepared.room = prepared.room.max(call.room);
                prepared.parts.push(LaunchPart::Call(call));
                is_harmless = false;
            }
        }
        if is_harmless {
            prepared.harmless = prepared.parts.len();
        }
    }
    prepared.keep_alive = Arc::new(keep_alive);
    Ok(Ok(prepared))
}

/// What our own implementation may still be able to do without, as a refusal.
fn or_ours<T>(error: RuntimeError) -> Result<Result<T, String>, RuntimeError> {
    match error {
        RuntimeError::DeviceLost { .. } => Err(error),
        other => Ok(Err(other.to_string())),
    }
}
