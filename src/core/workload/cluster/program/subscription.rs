//! What a subtask reads and writes, and the units that its blocks are cut into.

use std::ops::Range;
use std::sync::Arc;

use super::access::{Begin, Bytes, ReadOf, Subscription, Use, WriteOf};
use super::touch::Absent;
use crate::cluster::space::Block;
use crate::codelet::function::{FunctionArgument, FunctionMemory, UnitMemory};

/// Most units of a subtask, unless it is cut otherwise: a few for each core of most machines.
pub(super) const UNITS: u64 = 64;

impl Subscription {
    /// Whether an access reads what is touched.
    pub(super) fn touches(&self) -> bool {
        self.reads().any(|read| read.page.is_some())
    }

    pub(super) fn reads(&self) -> impl Iterator<Item = &ReadOf> {
        self.uses.iter().filter_map(|one| match one {
            Use::Read(read) => Some(read),
            Use::Write(_) => None,
        })
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = &WriteOf> {
        self.uses.iter().filter_map(|one| match one {
            Use::Read(_) => None,
            Use::Write(write) => Some(write),
        })
    }

    /// What is written, but for blocks without elements.
    pub(super) fn written(&self) -> impl Iterator<Item = &WriteOf> {
        self.writes().filter(|write| !write.block.is_empty())
    }

    /// Has only some lines of what is written, by written block: the lines at which units begin,
    /// and the end.
    pub(super) fn take_lines(&mut self, cuts: &[Vec<u64>]) {
        let mut cuts = cuts.iter();
        let writes = self.uses.iter_mut().filter_map(|one| match one {
            Use::Write(write) if !write.block.is_empty() => Some(write),
            _ => None,
        });
        for write in writes {
            if let Some(own @ [begin, .., end]) = cuts.next().map(|cuts| &cuts[..]) {
                write.block = write.part(*begin..*end);
                write.cuts = Some(own.to_vec());
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let reads = self
            .reads()
            .map(|read| read.elements() * read.extent.element);
        let writes = self.writes().map(|write| write.extent.bytes(&write.block));
        reads.sum::<u64>() + writes.sum::<u64>()
    }

    /// Why no memory can be as the accesses say.
    pub(super) fn fault(&self) -> Option<String> {
        let mut pages = self.reads().filter_map(|read| read.page);
        if pages.any(|page| page.rows == 0 || page.columns == 0) {
            return Some(
                "it touches pages without rows or columns; let each have one at least".to_owned(),
            );
        }
        let mut natural = self.written().filter(|write| write.is_natural);
        let one = natural.find(|write| {
            write.block.height() > 1 && write.block.width() != write.extent.columns
        })?;
        Some(format!(
            "its natural view of space {} is of columns {:?} of several rows, and a natural view \
             that is written has all columns or one row; use the compact view",
            one.space, one.block.columns
        ))
    }

    /// The memory of a function's launch.
    pub(super) fn memory(&self, cuts: &[Vec<u64>]) -> FunctionMemory {
        let mut cuts = cuts.iter();
        let arguments = self.uses.iter().filter_map(|one| match one {
            Use::Read(read) if read.elements() > 0 => Some(FunctionArgument::Read {
                first: 0,
                bytes: read.bytes(),
            }),
            Use::Write(write) if !write.block.is_empty() => {
                let cuts = cuts.next()?;
                Some(FunctionArgument::Written(write.bytes(cuts)))
            }
            _ => None,
        });
        FunctionMemory(arguments.collect())
    }

    /// The lines at which the units of each written block begin, and the end.
    pub(super) fn cuts(&self) -> Result<Vec<Vec<u64>>, String> {
        let mut given = self.written().filter_map(|write| write.cuts.as_ref());
        let lines = |write: &WriteOf| write.lines().end - write.lines().start;
        let units = match given.next() {
            Some(cuts) => cuts.len().saturating_sub(1) as u64,
            None => self.written().map(lines).min().unwrap_or(1).min(UNITS),
        };
        self.written().map(|write| write.cut(units)).collect()
    }

    /// A single unit.
    pub(super) fn whole(&self) -> Vec<Vec<u64>> {
        self.written().map(WriteOf::ends).collect()
    }

    /// The bytes of a unit, in the order of the accesses. Of what is written it has the part
    /// of this number.
    pub(super) fn of_unit<'a>(
        &self,
        cuts: &[Vec<u64>],
        number: usize,
        memory: UnitMemory<'a>,
        (zeroes, absent): (bool, &Arc<Absent>),
    ) -> Bytes<'a> {
        let mut found = memory.reads.into_iter();
        let reads = self.reads().map(|read| {
            let bytes = match read.elements() {
                0 => None,
                _ => found.next(),
            };
            (read.places(), bytes.unwrap_or_default())
        });
        let reads: Vec<_> = reads.collect();
        let mut written = memory.writes.into_iter().zip(cuts);
        let writes = self.writes().map(|write| {
            let own = match write.block.is_empty() {
                true => None,
                false => written.next(),
            };
            match own {
                None => (write.block.clone(), &mut [][..]),
                Some((bytes, cuts)) => {
                    if zeroes && write.begin == Begin::Zeros {
                        bytes.fill(0);
                    }
                    (write.part(cuts[number]..cuts[number + 1]), bytes)
                }
            }
        });
        let writes: Vec<_> = writes.collect();
        Bytes {
            reads: reads.into_iter(),
            writes: writes.into_iter(),
            touches: 0,
            absent: Arc::clone(absent),
        }
    }
}

impl ReadOf {
    /// The bytes of its memory.
    pub(super) fn bytes(&self) -> u64 {
        match self.is_natural {
            true => self.extent.bytes(&self.extent.whole()),
            false => self.elements() * self.extent.element,
        }
    }

    /// Where its blocks are in the memory: their first elements, and those from row to row.
    pub(super) fn places(&self) -> Vec<(Block, usize, usize)> {
        let mut end = 0;
        let places = self.blocks.iter().map(|block| {
            let begin = end;
            end += block.elements();
            let (first, pitch) = match self.is_natural && !block.is_empty() {
                true => (self.extent.whole().offset_of(block), self.extent.columns),
                false => (begin, block.width()),
            };
            (block.clone(), first as usize, pitch as usize)
        });
        places.collect()
    }
}

impl WriteOf {
    /// The rows of the block, or its columns if it has one row.
    pub(super) fn lines(&self) -> Range<u64> {
        match self.has_rows {
            true => self.block.rows.clone(),
            false => self.block.columns.clone(),
        }
    }

    /// The cuts of a single unit.
    pub(super) fn ends(&self) -> Vec<u64> {
        vec![self.lines().start, self.lines().end]
    }

    /// Some lines of the block.
    pub(super) fn part(&self, lines: Range<u64>) -> Block {
        match self.has_rows {
            true => Block::new(lines, self.block.columns.clone()),
            false => Block::new(self.block.rows.clone(), lines),
        }
    }

    /// The lines where so many units begin, and the end.
    pub(super) fn cut(&self, units: u64) -> Result<Vec<u64>, String> {
        let lines = self.lines();
        let Some(cuts) = &self.cuts else {
            let cut = |unit| lines.start + (lines.end - lines.start) * unit / units;
            return Ok((0..=units).map(cut).collect());
        };
        let is_whole = cuts.is_sorted()
            && cuts.first() == Some(&lines.start)
            && cuts.last() == Some(&lines.end);
        match is_whole && cuts.len() as u64 == units + 1 {
            true => Ok(cuts.clone()),
            false => Err(format!(
                "lines {lines:?} of space {} are cut at {cuts:?}; cuts ascend from the first line \
                 to the end, and are as many for all blocks of a subtask",
                self.space
            )),
        }
    }

    /// The bytes of its memory at which lines begin.
    pub(super) fn bytes(&self, cuts: &[u64]) -> Vec<u64> {
        let line = match self.has_rows {
            true => self.block.width() * self.extent.element,
            false => self.extent.element,
        };
        let first = match self.is_natural {
            true => self.extent.offset(&self.block),
            false => 0,
        };
        let begin = self.lines().start;
        cuts.iter()
            .map(|cut| first + (cut - begin) * line)
            .collect()
    }
}
