//! Messages on their way out. MPI reads their buffers until it says that it is done.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::ops::Range;
use std::rc::Rc;

use mpi::ffi;

use crate::buffer::Owned;
use crate::call::{Failure, Unreachable, check};
use crate::pieces::CONTROL;
use crate::window::{Manner, Window};

/// All that has not left.
pub struct Outgoing {
    communicator: ffi::MPI_Comm,
    requests: Vec<ffi::MPI_Request>,
    /// What each request sends.
    sending: Vec<Sending>,
    /// By receiver.
    peers: Vec<Peer>,
    /// Room for MPI's answers, kept from call to call.
    indices: Vec<c_int>,
    statuses: Vec<ffi::MPI_Status>,
}

/// Bytes of a message. Its pieces share the buffer.
#[derive(Clone)]
pub struct Piece {
    pub bytes: Rc<Owned>,
    pub range: Range<usize>,
    pub tag: c_int,
}

struct Sending {
    to: usize,
    manner: Manner,
    /// Keeps the buffer.
    piece: Piece,
}

struct Peer {
    window: Window,
    waiting: VecDeque<Piece>,
    lost: bool,
}

impl Outgoing {
    /// Nothing to so many ranks. `most` are the bytes that may be on their way to each.
    pub fn new(communicator: ffi::MPI_Comm, ranks: usize, most: usize) -> Self {
        let peer = |_| Peer {
            window: Window::new(most),
            waiting: VecDeque::new(),
            lost: false,
        };
        Self {
            communicator,
            requests: Vec::new(),
            sending: Vec::new(),
            peers: (0..ranks).map(peer).collect(),
            indices: Vec::new(),
            statuses: Vec::new(),
        }
    }

    /// Sends a piece, when it is its turn. Control messages are few and do not wait.
    pub fn send(&mut self, to: usize, piece: Piece) -> Result<(), Unreachable> {
        if self.peers[to].lost {
            return Ok(());
        }
        if piece.tag == CONTROL {
            return self.begin(to, piece, Manner::Plain);
        }
        self.peers[to].waiting.push_back(piece);
        self.fill_window(to)
    }

    /// Begins as many pieces as may be on their way.
    fn fill_window(&mut self, to: usize) -> Result<(), Unreachable> {
        let next = |outgoing: &mut Self| {
            let Peer {
                window, waiting, ..
            } = &mut outgoing.peers[to];
            let manner = window.begin(waiting.front()?.range.len())?;
            Some((waiting.pop_front()?, manner))
        };
        while let Some((piece, manner)) = next(self) {
            self.begin(to, piece, manner)?;
        }
        Ok(())
    }

    fn begin(&mut self, to: usize, piece: Piece, manner: Manner) -> Result<(), Unreachable> {
        let function = match manner {
            Manner::Plain => ffi::MPI_Isend,
            Manner::Synchronous(_) => ffi::MPI_Issend,
        };
        // SAFETY: a request is a plain value; MPI overwrites it.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the range is within the buffer, which remains until the request is done.
        let code = unsafe {
            function(
                piece.bytes.at(piece.range.start).cast(),
                piece.range.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                piece.tag,
                self.communicator,
                &raw mut request,
            )
        };
        check("MPI_Isend", code).map_err(|why| Unreachable { rank: to, why })?;
        self.requests.push(request);
        self.sending.push(Sending { to, manner, piece });
        Ok(())
    }

    /// Forgets what has left, and begins what may follow. Returns the ranks to which
    /// something could not be sent.
    pub fn progress(&mut self) -> Result<Vec<Unreachable>, Failure> {
        if self.requests.is_empty() {
            return Ok(Vec::new());
        }
        let (done, some_failed) = self.test()?;
        let mut unreachable = Vec::new();
        let mut refill = Vec::new();
        for (&index, status) in self.indices[..done].iter().zip(&self.statuses) {
            // The field is set only when the call has failed (MPI 3.1, section 3.7.5).
            let code = match some_failed {
                true => status.MPI_ERROR,
                false => ffi::MPI_SUCCESS as c_int,
            };
            let Sending { to, manner, piece } = &self.sending[index as usize];
            if let Err(why) = check("MPI_Isend", code) {
                unreachable.push(Unreachable { rank: *to, why });
            } else if piece.tag != CONTROL {
                self.peers[*to].window.leave(piece.range.len(), *manner);
                refill.push(*to);
            }
        }
        self.remove(done);
        unreachable.extend(
            refill
                .into_iter()
                .filter_map(|to| self.fill_window(to).err()),
        );
        Ok(unreachable)
    }

    /// Asks MPI which requests are done. Returns how many of `indices` are, and whether
    /// the statuses have errors.
    fn test(&mut self) -> Result<(usize, bool), Failure> {
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
        Ok((usize::try_from(done).unwrap_or(0), some_failed))
    }

    /// Removes the first `done` of the indices, from the last one, so that no other index
    /// changes its meaning.
    fn remove(&mut self, done: usize) {
        let done = &mut self.indices[..done];
        done.sort_unstable();
        for &index in done.iter().rev() {
            self.requests.swap_remove(index as usize);
            self.sending.swap_remove(index as usize);
        }
    }

    /// How many pieces to ranks that are not lost have not left.
    pub fn count(&self) -> usize {
        let sending = self.sending.iter();
        let sending = sending.filter(|one| !self.peers[one.to].lost).count();
        sending
            + self
                .peers
                .iter()
                .map(|peer| peer.waiting.len())
                .sum::<usize>()
    }

    /// The rank is lost. MPI may still read what it was given.
    pub fn lose(&mut self, rank: usize) {
        self.peers[rank].lost = true;
        self.peers[rank].waiting.clear();
    }
}
