//! CUDA's libraries as implementations of codelets: cuBLAS, cuSOLVER and cuFFT, which are
//! searched for when the program runs.
//!
//! * `search` finds a library's file, `functions` declares the functions that are called.
//! * [`Libraries`] has what is loaded, with a handle for each device (`handles`). `launch`
//!   prepares a launch, and `calls` its calls, whose matrices are stored by rows, for libraries
//!   that store them by columns.
//! * [`choice`] says which implementation serves: ours or the library's.
//!
//! Nothing here waits for the device. A library that is absent, lacks a function or refuses a
//! call is reported in the run's report, and our kernels serve.

mod calls;
pub(super) mod choice;
pub(super) mod functions;
mod handles;
mod launch;
pub(super) mod search;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

pub(super) use calls::{Call, Room};
use functions::{CUBLAS, CUFFT, CUSOLVER, Cublas, Cufft, Cusolver};
use handles::{Blas, Plans, Solver};
pub(super) use launch::prepare_library;
use search::load;

use super::device::OpenDevice;
use crate::codelet::library::Library;

/// What was loaded, or why not.
type Loaded<T> = Option<Result<Arc<T>, String>>;

/// The libraries of a backend.
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
            cublas: None,
            cusolver: None,
            cufft: None,
            blas: HashMap::new(),
            solver: HashMap::new(),
            plans: HashMap::new(),
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
