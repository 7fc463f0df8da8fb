//! The header of a binary file: the text that it belongs to, and its size.

use bytemuck::{Pod, Zeroable};

use crate::matrix::checksum::{Checksum, Digest};
use crate::matrix::csr::Csr;
use crate::matrix::memory;

pub(super) const MAGIC: [u8; 8] = *b"PDAWLCSR";
/// Increased whenever the form of the file changes.
const VERSION: u32 = 1;
/// Has another value when it is read in another byte order.
const ORDER: u32 = 0x0102_0304;

/// The first bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    magic: [u8; 8],
    version: u32,
    order: u32,
    pub source_bytes: u64,
    source_checksum: [u64; 2],
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
    /// The checksum of rows, columns, nonzeros and all that follows the header.
    checksum: [u64; 2],
}

/// The kind of file that a header belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A file as this version writes it on this machine.
    Ours,
    /// A file of another version, or of a machine with another byte order.
    Another,
    /// Something else.
    Strange,
}

impl Header {
    /// The header of a matrix that was read from this text, without the checksum.
    pub fn of(source: Digest, csr: &Csr) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            order: ORDER,
            source_bytes: source.bytes,
            source_checksum: halves(source.checksum),
            rows: csr.rows().into(),
            columns: csr.columns().into(),
            nonzeros: csr.nonzeros(),
            checksum: [0; 2],
        }
    }

    pub fn form(&self) -> Form {
        match (self.magic == MAGIC, (self.version, self.order)) {
            (true, (VERSION, ORDER)) => Form::Ours,
            (true, _) => Form::Another,
            (false, _) => Form::Strange,
        }
    }

    /// Whether the matrix was read from a text, rather than generated.
    pub fn has_source(&self) -> bool {
        self.source_bytes > 0
    }

    /// Bytes of the whole file.
    pub fn length(&self) -> u64 {
        (size_of::<Self>() as u64).saturating_add(memory::matrix_bytes(self.rows, self.nonzeros))
    }

    /// Whether the matrix was read from this text.
    pub fn is_of(&self, source: Digest) -> bool {
        (self.source_bytes, self.source_checksum) == (source.bytes, halves(source.checksum))
    }

    /// The checksum of the sizes in the header, to which the arrays are added.
    pub fn checksum_of_sizes(&self) -> Checksum {
        let mut checksum = Checksum::default();
        checksum.add(bytemuck::cast_slice(&[
            self.rows,
            self.columns,
            self.nonzeros,
        ]));
        checksum
    }

    /// The header with the checksum.
    pub fn completed(self, checksum: &Checksum) -> Self {
        Self {
            checksum: halves(checksum.digest().checksum),
            ..self
        }
    }

    /// Whether this is the checksum in the header.
    pub fn fits(&self, checksum: &Checksum) -> bool {
        self.checksum == halves(checksum.digest().checksum)
    }
}

fn halves(checksum: u128) -> [u64; 2] {
    [checksum as u64, (checksum >> 64) as u64]
}
