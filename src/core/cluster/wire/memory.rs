//! Memory of large messages: it is kept when a message has left or was read, and used again.
//! The system clears each fresh page, which takes longer than to copy the message.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::allocation::try_zeroed_vec;

/// Bytes of the smallest memory that is kept. Allocators keep smaller ones themselves.
const LEAST: usize = 128 << 10;

/// Bytes that are kept at most: several of the largest messages of a run.
const MOST: usize = 256 << 20;

/// What no message uses, the latest last.
#[derive(Default)]
struct Kept {
    memories: VecDeque<Vec<u8>>,
    bytes: usize,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    memories: VecDeque::new(),
    bytes: 0,
});

fn lock() -> MutexGuard<'static, Kept> {
    // No code panics while it holds the lock.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for a message of so many bytes, with any contents. Nothing if the system has none.
pub fn room(bytes: usize) -> Option<Vec<u8>> {
    let kept = if bytes < LEAST {
        None
    } else {
        lock().take(bytes)
    };
    match kept {
        Some(mut memory) => {
            memory.resize(bytes, 0);
            Some(memory)
        }
        None => try_zeroed_vec(bytes).ok(),
    }
}

/// Keeps the memory of a message that nobody needs any more.
pub fn keep(message: Vec<u8>) {
    if message.capacity() >= LEAST {
        lock().keep(message);
    }
}

impl Kept {
    fn keep(&mut self, memory: Vec<u8>) {
        if memory.capacity() > MOST {
            return;
        }
        self.bytes += memory.capacity();
        self.memories.push_back(memory);
        while self.bytes > MOST {
            let oldest = self.memories.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.capacity());
        }
    }

    /// The smallest memory that has room for so many bytes, if less than half is left.
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let fits = |memory: &Vec<u8>| (bytes..bytes.saturating_mul(2)).contains(&memory.capacity());
        let found = (self.memories.iter().enumerate())
            .filter(|(_, memory)| fits(memory))
            .min_by_key(|(_, memory)| memory.capacity());
        let (index, _) = found?;
        let memory = self.memories.remove(index)?;
        self.bytes -= memory.capacity();
        Some(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_for_messages_that_fill_more_than_half() {
        let mut kept = Kept::default();
        for mebibytes in [1, 8, 5] {
            kept.keep(vec![7; mebibytes << 20]);
        }
        assert!(kept.take(2 << 20).is_none(), "two fifths");
        assert_eq!(kept.take(3 << 20).map(|memory| memory.len()), Some(5 << 20));
        assert_eq!(kept.take(5 << 20).map(|memory| memory.len()), Some(8 << 20));
        assert!(kept.take(9 << 20).is_none(), "none is as large");
        assert_eq!(kept.bytes, 1 << 20);
    }

    #[test]
    fn what_was_kept_first_goes_first() {
        let mut kept = Kept::default();
        for _ in 0..3 {
            kept.keep(Vec::with_capacity(MOST / 2));
        }
        kept.keep(Vec::with_capacity(MOST + 1));
        assert_eq!((kept.memories.len(), kept.bytes), (2, MOST));
    }

    #[test]
    fn messages_have_their_length_whatever_was_kept() {
        keep(vec![9; 3 * LEAST]);
        for bytes in [0, 1, LEAST - 1, LEAST, 2 * LEAST, 3 * LEAST, 4 * LEAST] {
            assert_eq!(room(bytes).map(|memory| memory.len()), Some(bytes));
        }
        assert!(room(usize::MAX / 4).is_none());
    }
}
