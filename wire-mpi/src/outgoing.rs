//! Messages on their way out. MPI reads their buffers until it says that it is done.

use std::ffi::c_int;
use std::ops::Range;
use std::rc::Rc;

use mpi::ffi;

use crate::buffer::Owned;
use crate::call::{Failure, Unreachable, check};

/// All that has not left.
#[derive(Default)]
pub struct Outgoing {
    requests: Vec<ffi::MPI_Request>,
    /// What each request sends.
    pieces: Vec<Piece>,
    /// Room for MPI's answers, kept from call to call.
    indices: Vec<c_int>,
    statuses: Vec<ffi::MPI_Status>,
}

struct Piece {
    to: usize,
    /// The buffer of the message, which its pieces share. Nobody reads it here.
    _bytes: Rc<Owned>,
}

impl Outgoing {
    /// Begins to send these bytes of a message.
    pub fn send(
        &mut self,
        communicator: ffi::MPI_Comm,
        to: usize,
        tag: c_int,
        bytes: &Rc<Owned>,
        range: Range<usize>,
    ) -> Result<(), Unreachable> {
        // SAFETY: a request is a plain value; MPI overwrites it.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the range is within the buffer, which remains until the request is done.
        let code = unsafe {
            ffi::MPI_Isend(
                bytes.at(range.start).cast(),
                range.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                communicator,
                &raw mut request,
            )
        };
        check("MPI_Isend", code).map_err(|why| Unreachable { rank: to, why })?;
        self.requests.push(request);
        let bytes = bytes.clone();
        self.pieces.push(Piece { to, _bytes: bytes });
        Ok(())
    }

    /// Forgets what has left. Returns the ranks to which something could not be sent.
    pub fn progress(&mut self) -> Result<Vec<Unreachable>, Failure> {
        if self.requests.is_empty() {
            return Ok(Vec::new());
        }
        let count = self.requests.len();
        self.indices.resize(count, 0);
        // SAFETY: a status is plain numbers, for which zeros are valid.
        self.statuses.resize(count, unsafe { std::mem::zeroed() });
        let mut done = 0;
        // SAFETY: all arrays have `count` elements.
        let code = unsafe {
            ffi::MPI_Testsome(
                count as c_int,
                self.requests.as_mut_ptr(),
                &raw mut done,
                self.indices.as_mut_ptr(),
                self.statuses.as_mut_ptr(),
            )
        };
        let some_failed = code == ffi::MPI_ERR_IN_STATUS as c_int;
        if !some_failed {
            check("MPI_Testsome", code)?;
        }
        // MPI_UNDEFINED, which is negative, says that no request is active.
        let done = usize::try_from(done).unwrap_or(0);
        let mut failed = Vec::new();
        for (index, status) in self.indices[..done].iter().zip(&self.statuses) {
            // The field is set only when the call has failed (MPI 3.1, section 3.7.5).
            let code = match some_failed {
                true => status.MPI_ERROR,
                false => ffi::MPI_SUCCESS as c_int,
            };
            if let Err(why) = check("MPI_Isend", code) {
                let rank = self.pieces[*index as usize].to;
                failed.push(Unreachable { rank, why });
            }
        }
        self.remove(done);
        Ok(failed)
    }

    /// Removes the first `done` of the indices, from the last one, so that no other index
    /// changes its meaning.
    fn remove(&mut self, done: usize) {
        let done = &mut self.indices[..done];
        done.sort_unstable();
        for &index in done.iter().rev() {
            self.requests.swap_remove(index as usize);
            self.pieces.swap_remove(index as usize);
        }
    }

    /// How many pieces to ranks that are present have not left.
    pub fn count(&self, lost: &[bool]) -> usize {
        self.pieces.iter().filter(|piece| !lost[piece.to]).count()
    }
}
