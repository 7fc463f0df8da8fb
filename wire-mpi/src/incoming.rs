//! Messages on their way in. Each is delivered when all of it is there and all before it
//! on its channel, from its rank, are delivered.

use std::collections::VecDeque;
use std::ffi::c_int;

use mpi::ffi;
use pdawl_core::cluster::wire::plugin::abi::{CONTROL, DATA, Host};

use crate::buffer::Owned;
use crate::call::{Failure, Unreachable, check};
use crate::failures::Failures;
use crate::pieces;

/// All that has begun to arrive.
pub struct Incoming {
    /// By rank, the data and the control messages.
    queues: Vec<[VecDeque<Message>; 2]>,
    /// Bytes of the largest piece.
    limit: usize,
    /// The rank to look at first, so that each has its turn.
    next: usize,
}

struct Message {
    /// Memories in order, each with how much was received, or is being received.
    parts: Vec<(Owned, usize)>,
    /// How much that is in all.
    size: usize,
    /// Bytes of the first piece.
    first: usize,
    /// How many pieces have not begun.
    follow: i32,
    /// Those that have begun and have not ended.
    requests: Vec<ffi::MPI_Request>,
}

/// A piece that MPI has and nobody else will receive.
struct Matched {
    message: ffi::MPI_Message,
    from: usize,
    tag: c_int,
    size: usize,
}

/// A message that is whole.
pub struct Whole {
    pub from: usize,
    pub channel: u32,
    pub bytes: Owned,
}

impl Incoming {
    /// Nothing from so many ranks, whose pieces have at most so many bytes.
    pub fn new(ranks: usize, limit: usize) -> Self {
        Self {
            queues: (0..ranks).map(|_| Default::default()).collect(),
            limit,
            next: 0,
        }
    }

    /// Begins to receive what is waiting: a control message and a piece. Each poll may copy
    /// one piece, so a control message behind a hundred pieces would be late. Returns the ranks
    /// that have failed.
    pub fn begin(
        &mut self,
        communicator: ffi::MPI_Comm,
        failures: &mut Failures,
        host: &Host,
    ) -> Result<Vec<Unreachable>, Failure> {
        // SAFETY: a constant.
        let any = unsafe { ffi::RSMPI_ANY_TAG };
        for tag in [pieces::CONTROL, any] {
            match probe(communicator, tag) {
                Ok(Some(matched)) => self.receive(matched, host)?,
                Ok(None) => {}
                Err(refused) => return failures.explain(communicator, refused),
            }
        }
        Ok(Vec::new())
    }

    fn receive(&mut self, mut matched: Matched, host: &Host) -> Result<(), Failure> {
        let control = matched.tag == pieces::CONTROL;
        if !control && matched.size > self.limit {
            return Err(unlike(&matched));
        }
        let queue = &mut self.queues[matched.from][usize::from(control)];
        if queue.back().is_none_or(|last| last.follow == 0) {
            let follow = if control { 0 } else { matched.tag };
            queue.push_back(Message {
                parts: Vec::new(),
                size: 0,
                first: matched.size,
                // This piece begins now.
                follow: follow + 1,
                requests: Vec::new(),
            });
        }
        match queue.back_mut() {
            Some(message) => message.receive(&mut matched, host),
            None => Ok(()),
        }
    }

    /// How many messages have begun to arrive, of ranks that are not lost, and were not
    /// delivered.
    pub fn count(&self, lost: &[bool]) -> usize {
        let queues = self.queues.iter().zip(lost);
        let taking_part = queues.filter(|(_, lost)| !**lost);
        taking_part
            .map(|(own, _)| own.iter().map(VecDeque::len).sum::<usize>())
            .sum()
    }

    /// The next message that is whole, of a rank that is not lost.
    pub fn next(&mut self, lost: &[bool], host: &Host) -> Result<Option<Whole>, Unreachable> {
        let ranks = self.queues.len();
        for from in (self.next..ranks).chain(0..self.next) {
            if lost[from] {
                continue;
            }
            for channel in [CONTROL, DATA] {
                let queue = &mut self.queues[from][channel as usize];
                let Some(first) = queue.front_mut() else {
                    continue;
                };
                let whole = first.is_whole();
                if !whole.map_err(|why| Unreachable { rank: from, why })? {
                    continue;
                }
                if let Some(message) = queue.pop_front() {
                    self.next = (from + 1) % ranks;
                    let bytes = message.joined(host);
                    let bytes = bytes.map_err(|why| Unreachable { rank: from, why })?;
                    return Ok(Some(Whole {
                        from,
                        channel,
                        bytes,
                    }));
                }
            }
        }
        Ok(None)
    }
}

impl Message {
    fn receive(&mut self, matched: &mut Matched, host: &Host) -> Result<(), Failure> {
        if matched.size > self.first {
            return Err(unlike(matched));
        }
        let fits = |(bytes, size): &(Owned, usize)| size + matched.size <= bytes.size();
        if !self.parts.last().is_some_and(fits) {
            let room = pieces::room(self.first, self.follow as usize, self.size);
            self.parts.push((Owned::allocate(room, *host)?, 0));
        }
        let Some((bytes, size)) = self.parts.last_mut() else {
            return Ok(());
        };
        // SAFETY: a request is a plain value; MPI overwrites it.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the piece fits, and the buffer remains until the request is done.
        let code = unsafe {
            ffi::MPI_Imrecv(
                bytes.at(*size).cast(),
                matched.size as c_int,
                ffi::RSMPI_UINT8_T,
                &raw mut matched.message,
                &raw mut request,
            )
        };
        check("MPI_Imrecv", code)?;
        self.requests.push(request);
        *size += matched.size;
        self.size += matched.size;
        self.follow -= 1;
        Ok(())
    }

    /// All that was received, in one memory.
    fn joined(mut self, host: &Host) -> Result<Owned, Failure> {
        if let [(_, size)] = self.parts[..]
            && let Some((mut only, _)) = self.parts.pop()
        {
            only.truncate(size);
            return Ok(only);
        }
        let whole = Owned::allocate(self.size, *host)?;
        let mut at = 0;
        for (bytes, size) in &self.parts {
            // SAFETY: the sizes add up to that of `whole`, which is another memory.
            unsafe { std::ptr::copy_nonoverlapping(bytes.at(0), whole.at(at), *size) };
            at += size;
        }
        Ok(whole)
    }

    fn is_whole(&mut self) -> Result<bool, Failure> {
        while let Some(request) = self.requests.last_mut() {
            let mut done = 0;
            // SAFETY: the request is active.
            let code = unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
            check("MPI_Imrecv", code)?;
            if done == 0 {
                return Ok(false);
            }
            self.requests.pop();
        }
        Ok(self.follow == 0)
    }
}

/// A piece is larger than it may be.
fn unlike(matched: &Matched) -> Failure {
    Failure::new(format!(
        "rank {} sent a piece of {} bytes, and all pieces of a message but the last have the same \
         size, the limit at most; start all ranks with the same limit of pieces",
        matched.from, matched.size
    ))
}

/// Takes a message with this tag, or with any, that nobody receives yet.
fn probe(communicator: ffi::MPI_Comm, tag: c_int) -> Result<Option<Matched>, Failure> {
    let mut found = 0;
    // SAFETY: plain values that MPI overwrites; a status is numbers, for which zeros are
    // valid.
    let (mut message, mut status) = unsafe {
        (
            ffi::RSMPI_MESSAGE_NULL,
            std::mem::zeroed::<ffi::MPI_Status>(),
        )
    };
    // SAFETY: the communicator is valid, and the pointers are to the right types.
    let code = unsafe {
        ffi::MPI_Improbe(
            ffi::RSMPI_ANY_SOURCE,
            tag,
            communicator,
            &raw mut found,
            &raw mut message,
            &raw mut status,
        )
    };
    check("MPI_Improbe", code)?;
    if found == 0 {
        return Ok(None);
    }
    let mut size = 0;
    // SAFETY: the status is that of a message of bytes.
    let code = unsafe { ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut size) };
    check("MPI_Get_count", code)?;
    Ok(Some(Matched {
        message,
        from: status.MPI_SOURCE as usize,
        tag: status.MPI_TAG,
        size: size as usize,
    }))
}
