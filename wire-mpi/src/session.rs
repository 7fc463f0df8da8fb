//! The start and the end of MPI.

use std::ffi::CString;

use mpi::Threading;
use mpi::environment::{Universe, initialize_with_threading, processor_name};
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::{Communicator, SimpleCommunicator};

use crate::call::{Failure, check};

/// A process that has joined an MPI run.
pub struct Session {
    pub rank: usize,
    pub size: usize,
    pub host_name: CString,
    /// Its messages meet no others. It is freed before MPI ends.
    communicator: SimpleCommunicator,
    universe: Universe,
}

/// Starts MPI. The program drives the wire from a thread that is not the main one, and
/// perhaps from another one later, but from one at a time.
pub fn start() -> Result<Session, Failure> {
    let started = initialize_with_threading(Threading::Serialized);
    let (universe, provided) = started.ok_or_else(|| {
        Failure::new("this process has started MPI before; a process can join one run only")
    })?;
    if provided < Threading::Serialized {
        return Err(Failure::new(format!(
            "MPI offers the thread level {provided:?}, and pdawl needs Serialized; use an MPI that \
             was built with support for threads"
        )));
    }
    let world = universe.world();
    return_errors(&world)?;
    let communicator = world.duplicate();
    return_errors(&communicator)?;
    let name = processor_name().unwrap_or_else(|_| "unknown".to_owned());
    Ok(Session {
        rank: communicator.rank() as usize,
        size: communicator.size() as usize,
        host_name: CString::new(name).unwrap_or_default(),
        communicator,
        universe,
    })
}

/// Errors are returned. By default they end all processes, and a rank that is lost is one.
fn return_errors(communicator: &SimpleCommunicator) -> Result<(), Failure> {
    // SAFETY: the communicator is valid.
    let code =
        unsafe { ffi::MPI_Comm_set_errhandler(communicator.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
    check("MPI_Comm_set_errhandler", code)
}

impl Session {
    /// The communicator of the wire's messages.
    pub fn communicator(&self) -> ffi::MPI_Comm {
        self.communicator.as_raw()
    }

    /// Ends MPI, together with all other ranks.
    pub fn end(self) {
        drop(self.communicator);
        drop(self.universe);
    }
}
