//! What a function sees of spaces: slices, and elements by their place in the space.

use std::ops::{Index, IndexMut};

use crate::cluster::space::Block;

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
