//! How much of a device's memory a run uses, and how long the chunks are that
//! pass through it.

/// Queues that a device streams over when no number is asked for: one chunk is
/// written, one computed and one read at a time.
pub const QUEUES: u32 = 3;

/// More queues than this help no device, and cost memory.
pub const MOST_QUEUES: u32 = 8;

/// Bytes of the shortest chunk worth streaming: long enough (about 0.1 ms at
/// 50 GB/s) to hide three submissions.
pub(super) const LEAST_STREAM: u64 = 4 << 20;

/// Bytes a core below which a chunk on a host-memory device is mostly overhead:
/// about 20 us of its bandwidth.
const LEAST_PER_CORE: u64 = 256 << 10;

/// Bytes of the longest streamed chunk: longer ones overlap no better.
pub(super) const MOST_STREAM: u64 = 32 << 20;

/// The longest streamed chunk is this fraction of the memory limit.
pub(super) const CHUNK_FRACTION: u64 = 512;

/// Bytes of a device's memory that a run uses: `asked` at most, and never all,
/// since drivers and displays keep some.
pub fn memory_limit(memory: u64, asked: Option<u64>) -> u64 {
    let usable = memory / 16 * 15;
    asked.map_or(usable, |asked| asked.min(usable))
}

/// Units of the shortest chunk for a host-memory device of so many cores.
pub fn least_host_chunk(unit_bytes: u64, cores: u32) -> u64 {
    (u64::from(cores.max(1)) * LEAST_PER_CORE / unit_bytes).max(1)
}

/// Units of the shortest chunk that passes through a device's memory, where the
/// longest has `longest` units.
pub fn least_streamed_chunk(unit_bytes: u64, longest: u64) -> u64 {
    (LEAST_STREAM / unit_bytes).clamp(1, longest.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_all_of_a_memory_is_used() {
        assert_eq!(memory_limit(1600, None), 1500);
        assert_eq!(memory_limit(1600, Some(1600)), 1500);
        assert_eq!(memory_limit(1600, Some(700)), 700);
    }
}
