//! Typed spaces, how the subtasks of a task use them, and what a function sees of them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut, Range};
use std::sync::Arc;

use bytemuck::Pod;

use super::touch::{Absent, Page};
use crate::cluster::space::{Block, Extent};

/// A space of a workload, whose elements are of type `T`.
pub struct Space<T> {
    pub(super) index: usize,
    rows: u64,
    columns: u64,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Space<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Space<T> {}

impl<T> fmt::Debug for Space<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { rows, columns, .. } = self;
        write!(f, "Space({}: {rows} x {columns})", self.index)
    }
}

/// The block of each subtask.
type BlockOf = Box<dyn Fn(u64) -> Block + Send + Sync>;

/// The block of some lines of each subtask.
type BlockOfLines = Box<dyn Fn(u64, Range<u64>) -> Block + Send + Sync>;

/// A block that a subtask reads.
pub struct Read<T> {
    space: Space<T>,
    block: BlockOf,
    by_lines: Option<BlockOfLines>,
    is_natural: bool,
}

/// Blocks that a subtask reads, as one argument.
pub struct Gather<T> {
    space: Space<T>,
    blocks: Box<dyn Fn(u64) -> Vec<Block> + Send + Sync>,
    is_natural: bool,
}

/// A block that a subtask writes.
pub struct Write<T> {
    space: Space<T>,
    block: BlockOf,
    cuts: Cuts,
    begin: Begin,
    is_natural: bool,
}

/// How the units of a subtask divide what is written.
enum Cuts {
    /// As evenly as possible.
    Even,
    /// A single unit has all of it.
    Undivided,
    At(Box<dyn Fn(u64) -> Vec<u64> + Send + Sync>),
}

/// What a written block begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    Zeros,
    /// Anything, as the function writes all elements.
    Anything,
    /// Its contents.
    Contents,
}

impl<T: Pod> Space<T> {
    /// The space at a place of a workload's list ([`ClusterWorkload::spaces`]).
    ///
    /// [`ClusterWorkload::spaces`]: super::super::ClusterWorkload::spaces
    pub fn at(index: usize, rows: u64, columns: u64) -> Self {
        Self {
            index,
            rows,
            columns,
            element: PhantomData,
        }
    }

    /// Its place in its program's list.
    pub fn number(self) -> usize {
        self.index
    }

    pub fn extent(self) -> Extent {
        Extent {
            rows: self.rows,
            columns: self.columns,
            element: size_of::<T>() as u64,
        }
    }

    /// All elements.
    pub fn whole(self) -> Block {
        self.extent().whole()
    }

    /// Each subtask reads a block, as it was when the task began.
    pub fn read(self, block: impl Fn(u64) -> Block + Send + Sync + 'static) -> Read<T> {
        Read {
            space: self,
            block: Box::new(block),
            by_lines: None,
            is_natural: false,
        }
    }

    /// Each subtask reads several blocks.
    pub fn gather(self, blocks: impl Fn(u64) -> Vec<Block> + Send + Sync + 'static) -> Gather<T> {
        Gather {
            space: self,
            blocks: Box::new(blocks),
            is_natural: false,
        }
    }

    /// Each subtask writes a block of its own. It begins with zeros.
    pub fn write(self, block: impl Fn(u64) -> Block + Send + Sync + 'static) -> Write<T> {
        Write {
            space: self,
            block: Box::new(block),
            cuts: Cuts::Even,
            begin: Begin::Zeros,
            is_natural: false,
        }
    }

    /// Each subtask changes a block of its own: it begins with its contents.
    pub fn update(self, block: impl Fn(u64) -> Block + Send + Sync + 'static) -> Write<T> {
        Write {
            begin: Begin::Contents,
            ..self.write(block)
        }
    }
}

impl<T> Read<T> {
    /// The block lies in memory as long as the whole space, where it has its place there (the
    /// paper's natural view): a kernel finds its elements as in the space. The other elements
    /// are not there, and may be anything. By default the memory has the block alone, by rows
    /// without gaps (the compact view).
    pub fn natural(self) -> Self {
        let is_natural = true;
        Self { is_natural, ..self }
    }

    /// Where several devices of a node compute a subtask together, each reads this block for the
    /// lines that it writes: rows of the first block that the subtask writes, or columns if that
    /// has one row. The block is a part of what the subtask reads. By default each device reads
    /// all of that.
    pub fn by_lines(
        self,
        block: impl Fn(u64, Range<u64>) -> Block + Send + Sync + 'static,
    ) -> Self {
        let by_lines: Option<BlockOfLines> = Some(Box::new(block));
        Self { by_lines, ..self }
    }
}

impl<T> Gather<T> {
    /// As [`Read::natural`], for all blocks. By default they follow one another.
    pub fn natural(self) -> Self {
        let is_natural = true;
        Self { is_natural, ..self }
    }
}

impl<T> Write<T> {
    /// As [`Read::natural`]. Blocks have all columns then, or one row.
    pub fn natural(self) -> Self {
        let is_natural = true;
        Self { is_natural, ..self }
    }

    /// The function or the kernel writes all elements, which therefore need not begin with zeros.
    pub fn full(self) -> Self {
        let begin = match self.begin {
            Begin::Contents => Begin::Contents,
            _ => Begin::Anything,
        };
        Self { begin, ..self }
    }

    /// Where the units of a subtask begin, and the end of the last one: rows of the space, or
    /// columns if the block has one row.
    pub fn cut(self, cuts: impl Fn(u64) -> Vec<u64> + Send + Sync + 'static) -> Self {
        Self {
            cuts: Cuts::At(Box::new(cuts)),
            ..self
        }
    }

    /// A subtask is a single unit, which one core computes.
    pub fn undivided(self) -> Self {
        Self {
            cuts: Cuts::Undivided,
            ..self
        }
    }
}

/// What a subtask uses, in the order of its accesses.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    pub(super) uses: Vec<Use>,
    /// Where it is of a part of the subtask: the lines of the first written block.
    pub(super) lines: Option<Range<u64>>,
}

#[derive(Clone, Debug)]
pub(super) enum Use {
    Read(ReadOf),
    Write(WriteOf),
}

#[derive(Clone, Debug)]
pub(super) struct ReadOf {
    pub space: usize,
    pub extent: Extent,
    pub blocks: Vec<Block>,
    pub is_natural: bool,
    /// Of an access that touches: its blocks are the pages that were touched.
    pub page: Option<Page>,
}

#[derive(Clone, Debug)]
pub(super) struct WriteOf {
    pub space: usize,
    pub extent: Extent,
    pub block: Block,
    /// Whether units have rows of it, and not columns.
    pub has_rows: bool,
    pub cuts: Option<Vec<u64>>,
    pub begin: Begin,
    pub is_natural: bool,
}

impl ReadOf {
    pub fn elements(&self) -> u64 {
        self.blocks.iter().map(Block::elements).sum()
    }
}

/// Where a block that is read begins in its memory, and from one of its rows to the next, in
/// elements.
pub(super) type Place = (Block, usize, usize);

/// The bytes of what a unit uses, in the order of the accesses.
pub struct Bytes<'a> {
    pub(super) reads: std::vec::IntoIter<(Vec<Place>, &'a [u8])>,
    pub(super) writes: std::vec::IntoIter<(Block, &'a mut [u8])>,
    /// Accesses that touch have taken so many of the reads.
    pub(super) touches: usize,
    pub(super) absent: Arc<Absent>,
}

/// How subtasks use a space, or several.
pub trait Access: Send + Sync + 'static {
    /// What a function sees.
    type View<'a>;

    /// Adds what a subtask uses.
    fn subscribe(&self, subtask: u64, to: &mut Subscription);

    /// Takes the view of a unit: that of what [`Self::subscribe`] has added.
    fn view<'a>(&self, from: &mut Bytes<'a>) -> Self::View<'a>;
}

/// The next of the bytes, of which there is one for each access.
pub(super) fn next<I>(of: &mut std::vec::IntoIter<I>) -> I {
    let one = of.next();
    one.unwrap_or_else(|| unreachable!("each access has added what it takes"))
}

/// A block of some memory.
pub(super) fn view<T>((block, first, pitch): Place, elements: &[T]) -> View<'_, T> {
    let length = match block.is_empty() {
        true => 0,
        false => (block.height() as usize - 1) * pitch + block.width() as usize,
    };
    let own = elements.get(first..first + length).unwrap_or_default();
    View::new(block, own, pitch)
}

/// The elements of bytes. Nothing has no address that suits elements.
pub(super) fn elements<T: Pod>(bytes: &[u8]) -> &[T] {
    match bytes.is_empty() {
        true => &[],
        false => bytemuck::cast_slice(bytes),
    }
}

impl<T: Pod> Access for Read<T> {
    type View<'a> = View<'a, T>;

    fn subscribe(&self, subtask: u64, to: &mut Subscription) {
        let block = match (&self.by_lines, &to.lines) {
            (Some(by_lines), Some(lines)) => by_lines(subtask, lines.clone()),
            _ => (self.block)(subtask),
        };
        to.uses.push(Use::Read(ReadOf {
            space: self.space.index,
            extent: self.space.extent(),
            blocks: vec![block],
            is_natural: self.is_natural,
            page: None,
        }));
    }

    fn view<'a>(&self, from: &mut Bytes<'a>) -> View<'a, T> {
        let (mut places, bytes) = next(&mut from.reads);
        view(places.remove(0), elements(bytes))
    }
}

impl<T: Pod> Access for Gather<T> {
    type View<'a> = Gathered<'a, T>;

    fn subscribe(&self, subtask: u64, to: &mut Subscription) {
        to.uses.push(Use::Read(ReadOf {
            space: self.space.index,
            extent: self.space.extent(),
            blocks: (self.blocks)(subtask),
            is_natural: self.is_natural,
            page: None,
        }));
    }

    fn view<'a>(&self, from: &mut Bytes<'a>) -> Gathered<'a, T> {
        let (places, bytes) = next(&mut from.reads);
        let elements: &[T] = elements(bytes);
        let views = places.into_iter().map(|place| view(place, elements));
        let views = views.collect();
        Gathered { views, elements }
    }
}

impl<T: Pod> Access for Write<T> {
    type View<'a> = ViewMut<'a, T>;

    fn subscribe(&self, subtask: u64, to: &mut Subscription) {
        let block = (self.block)(subtask);
        let mut of = WriteOf {
            space: self.space.index,
            extent: self.space.extent(),
            has_rows: block.height() > 1,
            block,
            cuts: None,
            begin: self.begin,
            is_natural: self.is_natural,
        };
        of.cuts = match &self.cuts {
            Cuts::Even => None,
            Cuts::Undivided => Some(of.ends()),
            Cuts::At(cuts) => Some(cuts(subtask)),
        };
        to.uses.push(Use::Write(of));
    }

    fn view<'a>(&self, from: &mut Bytes<'a>) -> ViewMut<'a, T> {
        let (block, bytes) = next(&mut from.writes);
        // Nothing has no address that suits elements.
        let elements = match bytes.is_empty() {
            true => &mut [],
            false => bytemuck::cast_slice_mut(bytes),
        };
        ViewMut::new(block, elements)
    }
}

macro_rules! several {
    ($($access:ident)+) => {
        impl<$($access: Access),+> Access for ($($access,)+) {
            type View<'a> = ($($access::View<'a>,)+);

            #[allow(non_snake_case, reason = "the types' names name the values")]
            fn subscribe(&self, subtask: u64, to: &mut Subscription) {
                let ($($access,)+) = self;
                $($access.subscribe(subtask, to);)+
            }

            #[allow(non_snake_case, reason = "the types' names name the values")]
            fn view<'a>(&self, from: &mut Bytes<'a>) -> Self::View<'a> {
                let ($($access,)+) = self;
                ($($access.view(from),)+)
            }
        }
    };
}

several!(A);
several!(A B);
several!(A B C);
several!(A B C D);
several!(A B C D E);
several!(A B C D E F);

/// A block that is read.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    block: Block,
    elements: &'a [T],
    /// Elements from the begin of a row to that of the next one.
    pitch: usize,
}

/// A block that a unit of a subtask writes: the unit's rows or columns of it.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    block: Block,
    elements: &'a mut [T],
}

/// Several blocks of a space that are read.
#[derive(Clone, Debug)]
pub struct Gathered<'a, T> {
    pub(super) views: Vec<View<'a, T>>,
    pub(super) elements: &'a [T],
}

/// The place of an element in the slice of a block, whose rows begin so many elements apart.
fn place(block: &Block, pitch: usize, row: u64, column: u64) -> usize {
    assert!(
        block.rows.contains(&row) && block.columns.contains(&column),
        "row {row}, column {column} is not in rows {:?} and columns {:?}",
        block.rows,
        block.columns
    );
    (row - block.rows.start) as usize * pitch + (column - block.columns.start) as usize
}

/// The places of a row in the slice of a block.
fn row(block: &Block, pitch: usize, row: u64) -> std::ops::Range<usize> {
    match block.width() {
        0 => 0..0,
        width => {
            let begin = place(block, pitch, row, block.columns.start);
            begin..begin + width as usize
        }
    }
}

impl<'a, T> View<'a, T> {
    pub(super) fn new(block: Block, elements: &'a [T], pitch: usize) -> Self {
        Self {
            block,
            elements,
            pitch,
        }
    }

    /// The rows and columns of the space that it has.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The elements, by rows without gaps (the paper's compact view).
    ///
    /// # Panics
    /// When there are gaps, as in a natural view of some columns of several rows.
    pub fn slice(&self) -> &'a [T] {
        assert!(
            self.block.height() <= 1 || self.pitch as u64 == self.block.width(),
            "the rows of {:?} have gaps between them in its natural view; ask for one row",
            self.block
        );
        self.elements
    }

    /// The elements of a row of the space.
    ///
    /// # Panics
    /// When the block does not have it.
    pub fn row(&self, number: u64) -> &'a [T] {
        &self.elements[row(&self.block, self.pitch, number)]
    }
}

/// The element at a row and a column of the space.
impl<T> Index<(u64, u64)> for View<'_, T> {
    type Output = T;

    /// # Panics
    /// When the block does not have it.
    fn index(&self, (row, column): (u64, u64)) -> &T {
        &self.elements[place(&self.block, self.pitch, row, column)]
    }
}

impl<'a, T> ViewMut<'a, T> {
    pub(super) fn new(block: Block, elements: &'a mut [T]) -> Self {
        Self { block, elements }
    }

    /// The rows and columns of the space that it has.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The elements, by rows without gaps.
    pub fn slice(&mut self) -> &mut [T] {
        self.elements
    }

    /// The elements of a row of the space.
    ///
    /// # Panics
    /// When the block does not have it.
    pub fn row(&mut self, number: u64) -> &mut [T] {
        &mut self.elements[row(&self.block, self.block.width() as usize, number)]
    }
}

impl<T> Index<(u64, u64)> for ViewMut<'_, T> {
    type Output = T;

    /// # Panics
    /// When the block does not have it.
    fn index(&self, (row, column): (u64, u64)) -> &T {
        &self.elements[place(&self.block, self.block.width() as usize, row, column)]
    }
}

impl<T> IndexMut<(u64, u64)> for ViewMut<'_, T> {
    /// # Panics
    /// When the block does not have it.
    fn index_mut(&mut self, (row, column): (u64, u64)) -> &mut T {
        &mut self.elements[place(&self.block, self.block.width() as usize, row, column)]
    }
}

impl<'a, T> Gathered<'a, T> {
    /// The blocks, in the order in which the task names them.
    pub fn views(&self) -> &[View<'a, T>] {
        &self.views
    }

    /// The elements of all blocks, one block after the other; in a natural view, the memory of
    /// the whole space.
    pub fn slice(&self) -> &'a [T] {
        self.elements
    }
}
