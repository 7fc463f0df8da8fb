//! Boxes of buffers.
//!
//! Elsewhere a box is the range of bytes from its first to its last. A command that
//! writes a box leaves the bytes between its rows as they are, so it reads them too.

use std::ops::Range;

use opencl_sys::CL_INVALID_VALUE;

use crate::command::Use;
use crate::handle::Ref;
use crate::mem::Mem;
use crate::status::Fallible;

pub type Three = [usize; 3];

/// A box of bytes in a buffer or in host memory.
#[derive(Clone, Copy)]
pub struct Rect {
    origin: Three,
    region: Three,
    pub row: usize,
    pub slice: usize,
}

impl Rect {
    /// # Safety
    /// Both lists are null or have three numbers.
    pub unsafe fn new(
        origin: *const usize,
        region: *const usize,
        row: usize,
        slice: usize,
    ) -> Fallible<Self> {
        // SAFETY: promised by the caller.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        if region.contains(&0) || (row != 0 && row < region[0]) {
            return Err(CL_INVALID_VALUE);
        }
        let row = if row == 0 { region[0] } else { row };
        let least = region[1].checked_mul(row).ok_or(CL_INVALID_VALUE)?;
        if slice != 0 && (slice < least || !slice.is_multiple_of(row)) {
            return Err(CL_INVALID_VALUE);
        }
        Ok(Self {
            origin,
            region,
            row,
            slice: if slice == 0 { least } else { slice },
        })
    }

    /// From the first byte to the last.
    fn range(&self) -> Option<Range<usize>> {
        let at = |point: Three| {
            let slices = point[2].checked_mul(self.slice)?;
            slices
                .checked_add(point[1].checked_mul(self.row)?)?
                .checked_add(point[0])
        };
        let begin = at(self.origin)?;
        let last = [self.region[0], self.region[1] - 1, self.region[2] - 1];
        Some(begin..begin.checked_add(at(last)?)?)
    }

    /// The range, which must be within a buffer.
    pub fn within(&self, mem: &Mem) -> Fallible<Range<usize>> {
        let range = self.range().filter(|range| range.end <= mem.size);
        range.ok_or(CL_INVALID_VALUE)
    }

    /// Whether no byte lies between the rows.
    fn is_dense(&self) -> bool {
        let bytes = self.region.iter().product::<usize>();
        self.range().is_some_and(|range| range.len() == bytes)
    }

    /// How a command uses a buffer that writes the box.
    pub fn write(&self, mem: &Ref<Mem>) -> Fallible<Use> {
        let range = self.within(mem)?;
        Ok(Use::new(mem, range, (!self.is_dense(), true)))
    }

    /// Where this box and another one begin, and their region, as drivers take them.
    pub fn lists(&self, other: &Self) -> (*const usize, *const usize, *const usize) {
        (
            self.origin.as_ptr(),
            other.origin.as_ptr(),
            self.region.as_ptr(),
        )
    }
}

/// # Safety
/// `list` is null or has three numbers.
pub unsafe fn three(list: *const usize) -> Fallible<Three> {
    if list.is_null() {
        return Err(CL_INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    Ok(unsafe { list.cast::<Three>().read_unaligned() })
}

/// Whether two boxes of one buffer with the same pitches share bytes. As in OpenCL's own
/// text, boxes that wrap around the ends of rows count as they lie in memory.
pub fn overlap(source: &Rect, target: &Rect) -> bool {
    let begins = |rect: &Rect| rect.range().map_or(0, |range| range.start);
    let (one, other) = (begins(source), begins(target));
    let meets = |other_row: usize, row: usize| {
        other_row < row + source.region[0] && row < other_row + source.region[0]
    };
    let rows = |begin: usize| {
        let [_, rows, slices] = source.region;
        (0..slices)
            .flat_map(move |z| (0..rows).map(move |y| begin + z * source.slice + y * source.row))
    };
    let (Some(a), Some(b)) = (source.range(), target.range()) else {
        return false;
    };
    if a.end <= b.start || b.end <= a.start {
        return false;
    }
    // Rows begin in ascending order in both boxes, so one walk along both finds a meeting.
    let mut right = rows(other).peekable();
    for row in rows(one) {
        while right
            .next_if(|other| *other + source.region[0] <= row)
            .is_some()
        {}
        if right.peek().is_some_and(|other| meets(*other, row)) {
            return true;
        }
    }
    false
}
