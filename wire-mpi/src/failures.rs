//! Failed ranks, as MPI itself tells them: the user-level failure mitigation (ULFM) of Open MPI
//! 5.0 under `mpirun --with-ft ulfm`.
//!
//! A probe for messages of any rank fails from the moment on at which MPI knows of a failure,
//! until the failure is acknowledged. Messages between the ranks that are left then go on, so
//! nothing is revoked, and no smaller communicator is made: rank 0 says who is lost, and the
//! ranks' numbers stay.

use std::ffi::{CStr, c_int, c_void};

use mpi::ffi;

use crate::call::{Failure, Unreachable, check};

type Acknowledge = unsafe extern "C" fn(ffi::MPI_Comm) -> c_int;
type Acknowledged = unsafe extern "C" fn(ffi::MPI_Comm, *mut ffi::MPI_Group) -> c_int;

/// What MPI says of failed ranks.
pub struct Failures {
    /// Nothing where the MPI library does not have them.
    functions: Option<Functions>,
    /// By rank.
    failed: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Functions {
    acknowledge: Acknowledge,
    acknowledged: Acknowledged,
}

impl Failures {
    /// No failures, of so many ranks. The functions are looked for in the MPI library, as the
    /// headers of one without them do not have them.
    pub fn new(ranks: usize) -> Self {
        Self {
            functions: Functions::find(),
            failed: vec![false; ranks],
        }
    }

    /// The failed ranks for which MPI has refused something, which may be asked for again.
    ///
    /// # Errors
    /// `refused`, if no rank has failed since the last call.
    pub fn explain(
        &mut self,
        communicator: ffi::MPI_Comm,
        refused: Failure,
    ) -> Result<Vec<Unreachable>, Failure> {
        let Some(functions) = self.functions else {
            return Err(refused);
        };
        let mut new = functions.failed(communicator)?;
        new.retain(|&rank| !std::mem::replace(&mut self.failed[rank], true));
        match new.is_empty() {
            true => Err(refused),
            false => Ok(new.into_iter().map(unreachable_rank).collect()),
        }
    }
}

fn unreachable_rank(rank: usize) -> Unreachable {
    let why = Failure::new("MPI says that its process has failed");
    Unreachable { rank, why }
}

impl Functions {
    fn find() -> Option<Self> {
        let acknowledge = symbol(c"MPIX_Comm_failure_ack")?;
        let acknowledged = symbol(c"MPIX_Comm_failure_get_acked")?;
        Some(Self {
            // SAFETY: the function of this name has this type (ULFM 1.0, section 17.3.1).
            acknowledge: unsafe { std::mem::transmute::<*mut c_void, Acknowledge>(acknowledge) },
            // SAFETY: likewise.
            acknowledged: unsafe { std::mem::transmute::<*mut c_void, Acknowledged>(acknowledged) },
        })
    }

    /// Acknowledges all failures that MPI knows, and returns the failed ranks.
    fn failed(self, communicator: ffi::MPI_Comm) -> Result<Vec<usize>, Failure> {
        // SAFETY: the communicator is valid.
        let code = unsafe { (self.acknowledge)(communicator) };
        check("MPIX_Comm_failure_ack", code)?;
        let failed = Group::of("MPIX_Comm_failure_get_acked", |group| {
            // SAFETY: the communicator is valid, and the place is for a group.
            unsafe { (self.acknowledged)(communicator, group) }
        })?;
        let all = Group::of("MPI_Comm_group", |group| {
            // SAFETY: likewise.
            unsafe { ffi::MPI_Comm_group(communicator, group) }
        })?;
        failed.ranks_in(&all)
    }
}

/// A function that libraries of this process have.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a 0.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A group of ranks, which is freed.
struct Group(ffi::MPI_Group);

impl Group {
    fn of(
        function: &str,
        make: impl FnOnce(*mut ffi::MPI_Group) -> c_int,
    ) -> Result<Self, Failure> {
        // SAFETY: a constant.
        let mut group = unsafe { ffi::RSMPI_GROUP_NULL };
        check(function, make(&raw mut group))?;
        Ok(Self(group))
    }

    /// Its ranks by their numbers in a group that has all of them.
    fn ranks_in(&self, all: &Self) -> Result<Vec<usize>, Failure> {
        let mut count = 0;
        // SAFETY: the group is valid.
        let code = unsafe { ffi::MPI_Group_size(self.0, &raw mut count) };
        check("MPI_Group_size", code)?;
        let own: Vec<c_int> = (0..count).collect();
        let mut ranks = own.clone();
        // SAFETY: both groups are valid, and both arrays have `count` elements.
        let code = unsafe {
            ffi::MPI_Group_translate_ranks(self.0, count, own.as_ptr(), all.0, ranks.as_mut_ptr())
        };
        check("MPI_Group_translate_ranks", code)?;
        Ok(ranks.into_iter().map(|rank| rank as usize).collect())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The empty group of some libraries is a constant, which need not be freed.
        // SAFETY: the group is valid, and nobody else uses it.
        unsafe { ffi::MPI_Group_free(&raw mut self.0) };
    }
}
