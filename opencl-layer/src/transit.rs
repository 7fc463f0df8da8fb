//! Pinned memory through which bytes go from device to device.
//!
//! It is made in pieces, which a context keeps: pinning takes a driver 0.7 ms and more. A
//! copy has its bytes there for itself until it has ended, so that no copy waits for
//! another that the program has not ordered before it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::lock::{Mutex, TRANSIT};
use crate::native::Native;
use crate::own_queue::Site;
use crate::pinned::Pinned;
use crate::status::Fallible;

/// The pinned memory of a driver's context.
#[derive(Default)]
pub struct Transit {
    pieces: Mutex<Vec<Piece>, TRANSIT>,
}

struct Piece {
    memory: Pinned,
    size: usize,
    /// Where the next copy's bytes go.
    next: usize,
    /// The commands that use it, in the order in which they were enqueued.
    users: VecDeque<Arc<Native>>,
}

/// Pinning so much takes NVIDIA's driver as long as pinning 4 KiB.
const SMALLEST: usize = 2 << 20;
/// The size of all pieces, as drivers keep as much of a device's memory.
const MOST: usize = 64 << 20;
/// Copies begin at multiples of it.
const ALIGNMENT: usize = 256;

impl Transit {
    /// Has `copy` enqueue commands that use `size` bytes of pinned memory and that it adds
    /// to the users. `None` if there is no room for so many.
    pub fn through<T>(
        &self,
        site: Site,
        size: usize,
        copy: impl FnOnce(*mut u8, &mut VecDeque<Arc<Native>>) -> Fallible<T>,
    ) -> Fallible<Option<T>> {
        let mut pieces = self.pieces.lock();
        let found = match pieces.iter_mut().position(|piece| piece.has_room(size)) {
            Some(found) => found,
            None => {
                let new = size.max(SMALLEST);
                let all: usize = pieces.iter().map(|piece| piece.size).sum();
                if all + new > MOST {
                    return Ok(None);
                }
                let Ok(memory) = Pinned::new(site, new) else {
                    return Ok(None);
                };
                pieces.push(Piece {
                    memory,
                    size: new,
                    next: 0,
                    users: VecDeque::new(),
                });
                pieces.len() - 1
            }
        };
        let piece = &mut pieces[found];
        let address = piece.memory.address().wrapping_add(piece.next);
        piece.next += size.next_multiple_of(ALIGNMENT);
        copy(address, &mut piece.users).map(Some)
    }
}

impl Drop for Transit {
    /// Gives all memory back, once what uses it has ended.
    fn drop(&mut self) {
        for piece in self.pieces.get_mut().drain(..) {
            for native in &piece.users {
                let _ = native.wait();
            }
        }
    }
}

impl Piece {
    fn has_room(&mut self, size: usize) -> bool {
        while self
            .users
            .front()
            .is_some_and(|native| !native.is_pending())
        {
            self.users.pop_front();
        }
        if self.users.is_empty() {
            self.next = 0;
        }
        self.next + size <= self.size
    }
}
