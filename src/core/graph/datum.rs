//! The data of a task graph, and the places of those that lie in a common piece of host memory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::codelet::Name;
use crate::codelet::rows::Lines;
use crate::parallel;

/// A datum: its index in [`super::TaskGraph::data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatumId(pub usize);

/// A piece of memory that is written once, by one kernel or by the host before the
/// graph runs, and read by any number of kernels.
#[derive(Clone, Debug)]
pub struct Datum {
    /// Its name in messages and charts.
    pub name: Name,
    /// Length in bytes, at least 1.
    pub bytes: u64,
    /// Its contents when the graph begins; `None` if a kernel makes it.
    pub contents: Option<Contents>,
    /// Whether the host wants it when the graph has ended.
    pub wanted: bool,
    /// Where it is in host memory; `None` if it has host memory of its own.
    pub place: Option<Place>,
    /// Of a view: the data of which it consists, each with a place in the same space. It has
    /// a place itself, and no kernel makes it.
    pub pieces: Vec<DatumId>,
    /// Data of its space that are no more in host memory when it is there: it lies on them.
    pub overwrites: Vec<DatumId>,
    /// How the pieces of a view without a place lie in it, in this order: of what they have
    /// in common, the last one counts.
    pub copies: Vec<Piece>,
    /// Bytes of a row, of which the datum has several without gaps.
    pub row: u64,
    /// The bytes that are copied between memories; `None`: all of them. A kernel may work on
    /// a part of a memory that is as long as a whole buffer.
    pub used: Option<Range<u64>>,
}

impl Datum {
    /// A datum that a kernel makes.
    pub fn new(name: impl Into<Name>, bytes: u64) -> Self {
        Self {
            name: name.into(),
            bytes,
            contents: None,
            wanted: false,
            place: None,
            pieces: Vec::new(),
            overwrites: Vec::new(),
            copies: Vec::new(),
            row: bytes,
            used: None,
        }
    }

    /// A view of these pieces, which need no place.
    pub fn gathered(name: impl Into<Name>, bytes: u64, copies: Vec<Piece>) -> Self {
        Self {
            pieces: copies.iter().map(|piece| piece.datum).collect(),
            copies,
            ..Self::new(name, bytes)
        }
    }

    /// The same datum, with rows of so many bytes.
    pub fn by_rows(self, row: u64) -> Self {
        Self { row, ..self }
    }

    /// A datum at a place.
    pub fn at(name: impl Into<Name>, place: Place) -> Self {
        let (bytes, row) = (place.bytes(), place.width());
        Self {
            place: Some(place),
            ..Self::new(name, bytes).by_rows(row)
        }
    }

    /// The datum, which lies on others in host memory. Its kernel runs when these have been
    /// read.
    pub fn over(self, overwrites: Vec<DatumId>) -> Self {
        Self { overwrites, ..self }
    }

    /// What kernels see at a place where several data are.
    pub fn view(name: impl Into<Name>, place: Place, pieces: Vec<DatumId>) -> Self {
        Self {
            pieces,
            ..Self::at(name, place)
        }
    }

    /// The datum with contents from the host.
    pub fn with(self, contents: Contents) -> Self {
        Self {
            contents: Some(contents),
            ..self
        }
    }

    /// The datum as the host wants it at the end.
    pub fn wanted(self) -> Self {
        Self {
            wanted: true,
            ..self
        }
    }
}

/// What a view has of a datum: rows of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub datum: DatumId,
    pub rows: u64,
    /// Bytes of a row.
    pub row: u64,
    /// Where the rows are in the datum, and in the view.
    pub from: Lines,
    pub to: Lines,
}

/// The contents of a given datum. They are written once into host memory, when a
/// graph is prepared, and stay there unchanged however often it runs.
#[derive(Clone)]
pub enum Contents {
    /// These bytes; as many as the datum has.
    Bytes(Arc<[u8]>),
    /// What this function writes into the datum's bytes. The memory is
    /// page-aligned, its former contents are unspecified, and the function writes
    /// all of it.
    Filled(Filler),
    /// What the space of the datum's place has there.
    OfSpace,
}

/// A function that writes contents.
pub type Filler = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

impl Contents {
    /// These bytes.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// What a function writes.
    pub fn filled(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self::Filled(Arc::new(fill))
    }

    /// Zeros.
    pub fn zeros() -> Self {
        Self::filled(|bytes| bytes.fill(0))
    }

    /// Writes the contents. Of [`Contents::Bytes`] as many as fit.
    pub fn write(&self, to: &mut [u8]) {
        match self {
            Self::Bytes(bytes) => {
                let count = bytes.len().min(to.len());
                parallel::copy(&mut to[..count], &bytes[..count]);
            }
            Self::Filled(fill) => fill(to),
            Self::OfSpace => {}
        }
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Filled(_) => f.write_str("filled"),
            Self::OfSpace => f.write_str("of its space"),
        }
    }
}

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
pub struct SpaceContents(Arc<PlaceFiller>);

/// Writes the bytes of a place.
type PlaceFiller = dyn Fn(&Place, &mut [u8]) + Send + Sync;

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
