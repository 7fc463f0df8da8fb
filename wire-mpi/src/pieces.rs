//! Messages in pieces, since MPI counts bytes in 32 bits, and since a rank sends no beats
//! while a large one is copied or sent.
//!
//! A piece's tag says how many pieces follow. MPI keeps the order of the messages of one
//! rank to another, so no piece needs a header, and a receiver knows at the first one how
//! much memory suffices: all pieces but the last one are equally large. It takes memory for
//! some pieces ahead alone, as what a piece says of others may be wrong.

use std::env;
use std::ops::Range;

use crate::call::Failure;

/// The largest tag that every MPI has (MPI 3.1, section 8.1.2). It marks control messages,
/// which are never divided.
pub const CONTROL: i32 = 32767;
/// Bytes of the largest piece. Beats wait for up to two pieces: 0.7 s where eight ranks
/// share a network of 100 MB/s. MPI may copy all of a piece within one call, and it took
/// 7 s for 1 GiB on a virtual machine with slow page faults. Smaller pieces would cost
/// bandwidth.
const LIMIT: usize = 4 << 20;
/// The largest limit: MPI's counts are positive 32-bit numbers.
const LARGEST: usize = i32::MAX as usize;
/// The variable with another limit, for tests. All ranks need the same.
const VARIABLE: &str = "PDAWL_WIRE_PIECE";

/// Bytes of the largest piece.
pub fn limit() -> Result<usize, Failure> {
    let Some(set) = env::var_os(VARIABLE) else {
        return Ok(LIMIT);
    };
    let bytes = set.to_str().and_then(|text| text.parse().ok());
    bytes
        .filter(|bytes| (1..=LARGEST).contains(bytes))
        .ok_or_else(|| {
            Failure::new(format!(
                "{VARIABLE} is {}; give bytes from 1 to {LARGEST}, or remove it",
                set.display()
            ))
        })
}

/// The pieces of a message of this size: the bytes of each, and how many follow. Nothing
/// if there are more pieces than tags.
pub fn pieces(size: usize, limit: usize) -> Option<impl Iterator<Item = (Range<usize>, i32)>> {
    let last = size.saturating_sub(1) / limit;
    let follow = i32::try_from(last).ok().filter(|&last| last < CONTROL)?;
    Some((0..=follow).map(move |number| {
        let begin = number as usize * limit;
        (begin..size.min(begin + limit), follow - number)
    }))
}

/// Pieces for which memory is taken before they come: 1 GiB, which is nothing before it is
/// written.
const AHEAD: usize = 256;

/// Bytes of the memory for the next pieces of a message, when so many have not come, and so
/// many bytes have. `first` is the size of the first piece. A message that is larger than all
/// that is taken ahead has several such memories, each as large as all before.
pub fn room(first: usize, left: usize, there: usize) -> usize {
    first * left.min(AHEAD.max(there / first.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_takes_memory_for_as_many_as_there_are() {
        assert_eq!(room(LIMIT, 32767, 0), 1 << 30);
        assert_eq!(room(LIMIT, 32000, 1 << 30), 1 << 30);
        assert_eq!(room(LIMIT, 32000, 3 << 30), 3 << 30);
        assert_eq!(room(LIMIT, 3, 3 << 30), 3 * LIMIT);
        assert_eq!((room(0, 5, 0), room(7, 1, 0)), (0, 7));
    }

    #[test]
    fn pieces_make_the_message_and_the_first_tells_the_room() {
        for limit in 1..8 {
            for size in 0..50 {
                let all: Vec<_> = pieces(size, limit).unwrap().collect();
                let mut end = 0;
                for (number, (bytes, follow)) in all.iter().enumerate() {
                    assert_eq!(bytes.start, end);
                    assert_eq!(*follow as usize, all.len() - 1 - number);
                    assert!(bytes.len() <= limit);
                    end = bytes.end;
                }
                assert_eq!(end, size);
                let (first, follow) = &all[0];
                let room = room(first.len(), *follow as usize + 1, 0);
                assert!(room >= size && room < size + limit, "{size} {limit}");
            }
        }
    }

    #[test]
    fn a_message_of_too_many_pieces_is_refused() {
        assert!(pieces(32767, 1).is_some());
        assert!(pieces(32768, 1).is_none());
    }
}
