//! Data that lie in a common piece of host memory: rectangles of a matrix, say.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::codelet::Name;
use crate::parallel;

/// A space of host memory: its index in [`super::TaskGraph::spaces`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostSpaceId(pub usize);

/// Host memory in which data lie by rows: a datum that has a place in it needs no memory of
/// its own there, and devices that compute in host memory use it where it is. Devices with
/// memory of their own have its rows without gaps.
#[derive(Clone, Debug)]
pub struct HostSpace {
    /// Its name in messages.
    pub name: Name,
    pub rows: u64,
    /// Bytes of a row.
    pub pitch: u64,
    /// What is there when the graph begins; `None` if kernels write all that is read.
    pub contents: Option<SpaceContents>,
}

/// The first contents of a space: a function that writes the bytes of a place, by rows
/// without gaps, as often as they are needed.
#[derive(Clone)]
pub struct SpaceContents(Arc<Filler>);

/// Writes the bytes of a place.
type Filler = dyn Fn(&Place, &mut [u8]) + Send + Sync;

/// Bytes that a thread makes at a time.
const PIECE: u64 = 1 << 20;

impl SpaceContents {
    /// What a function writes.
    pub fn filled(fill: impl Fn(&Place, &mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    /// Writes a place, by rows without gaps.
    pub fn write(&self, place: &Place, to: &mut [u8]) {
        (self.0)(place, to);
    }

    /// Writes all of a space, by several threads.
    pub fn write_all(&self, id: HostSpaceId, space: &HostSpace, to: &mut [u8]) {
        let rows = (PIECE / space.pitch.max(1)).max(1);
        parallel::pieces(to, (rows * space.pitch) as usize, |piece, to| {
            let first = piece as u64 * rows;
            let place = Place {
                space: id,
                rows: first..(first + rows).min(space.rows),
                columns: 0..space.pitch,
            };
            self.write(&place, to);
        });
    }
}

impl fmt::Debug for SpaceContents {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("filled")
    }
}

impl HostSpace {
    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.pitch)
    }
}

/// The place of a datum in a space: rows, and the bytes of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub space: HostSpaceId,
    pub rows: Range<u64>,
    pub columns: Range<u64>,
}

impl Place {
    /// The number of rows.
    pub fn height(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// Bytes of a row.
    pub fn width(&self) -> u64 {
        self.columns.end.saturating_sub(self.columns.start)
    }

    /// All its bytes.
    pub fn bytes(&self) -> u64 {
        self.height().saturating_mul(self.width())
    }

    /// The bytes of the space before its first one.
    pub fn first(&self, pitch: u64) -> u64 {
        self.rows.start * pitch + self.columns.start
    }

    /// What both have; `None` if that is nothing.
    pub fn common(&self, other: &Self) -> Option<Self> {
        let both = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
        let common = Self {
            space: self.space,
            rows: both(&self.rows, &other.rows),
            columns: both(&self.columns, &other.columns),
        };
        (self.space == other.space && common.bytes() > 0).then_some(common)
    }

    /// The bytes of this place before the first one of a part of it, where its rows have no
    /// gaps.
    pub fn offset_of(&self, part: &Self) -> u64 {
        (part.rows.start - self.rows.start) * self.width() + part.columns.start - self.columns.start
    }
}
