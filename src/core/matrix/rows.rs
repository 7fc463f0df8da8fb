//! Divides the arrays of a matrix into blocks of whole rows, which threads fill
//! without sharing anything, and runs loops over them on all cores.

use std::mem::take;
use std::ops::Range;

use super::MatrixError;
use super::control::Control;
use crate::parallel::map_while;

pub(super) use crate::parallel::threads;

/// A block of rows and its parts of the matrix's arrays.
pub struct RowBlock<'a> {
    /// The number of the first row.
    pub first: u32,
    /// Where each row starts in the whole matrix, and where the last one ends.
    pub starts: &'a [u64],
    pub column_of: &'a mut [u32],
    pub values: &'a mut [f64],
}

impl<'a> RowBlock<'a> {
    /// The rows, each with the range of its entries within the block.
    pub fn rows(&self) -> impl Iterator<Item = (u32, Range<usize>)> + use<'a> {
        let (starts, base) = (self.starts, self.starts[0]);
        let entries =
            move |bounds: &[u64]| (bounds[0] - base) as usize..(bounds[1] - base) as usize;
        (self.first..).zip(starts.windows(2).map(entries))
    }
}

/// Divides the arrays. `end_of` gives the end of the block that begins with a row; a
/// block has at least one row.
pub fn divide<'a>(
    starts: &'a [u64],
    mut column_of: &'a mut [u32],
    mut values: &'a mut [f64],
    mut end_of: impl FnMut(usize) -> usize,
) -> Vec<RowBlock<'a>> {
    let rows = starts.len() - 1;
    let (mut blocks, mut first) = (Vec::new(), 0);
    while first < rows {
        let end = end_of(first).clamp(first + 1, rows);
        let entries = (starts[end] - starts[first]) as usize;
        let (columns_of_block, columns_left) = take(&mut column_of).split_at_mut(entries);
        let (values_of_block, values_left) = take(&mut values).split_at_mut(entries);
        (column_of, values) = (columns_left, values_left);
        blocks.push(RowBlock {
            first: first as u32,
            starts: &starts[first..=end],
            column_of: columns_of_block,
            values: values_of_block,
        });
        first = end;
    }
    blocks
}

/// Turns the lengths of rows, which are in `starts[1..]`, into row starts.
pub fn accumulate(starts: &mut [u64]) {
    for row in 1..starts.len() {
        starts[row] += starts[row - 1];
    }
}

/// Calls `work` with each item and returns the results in the order of the items.
/// Progress is reported, and an interruption noticed, after each item.
///
/// # Errors
/// [`MatrixError::Interrupted`].
pub fn map<T: Send, R: Send>(
    items: Vec<T>,
    what: &'static str,
    control: &mut Control,
    work: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>, MatrixError> {
    let total = items.len() as u64;
    let mut reported = Ok(());
    let results = map_while(items, work, |done| {
        reported = control.report(what, done as u64, total);
        reported.is_ok()
    });
    reported?;
    Ok(results.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::matrix::control::quietly;

    #[test]
    fn results_are_in_order() {
        let squares = quietly(|control| map((0..1000u64).collect(), "", control, |i| i * i));
        let expected: Vec<u64> = (0..1000).map(|i| i * i).collect();
        assert_eq!(squares.unwrap(), expected);
        let none = quietly(|control| map(Vec::<u64>::new(), "", control, |i| i));
        assert!(none.unwrap().is_empty());
    }

    #[test]
    fn an_interruption_leaves_work_undone() {
        let (stop, worked) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut control = Control {
            stop: &stop,
            progress: &mut |_| stop.store(true, Ordering::Relaxed),
        };
        let result = map((0..100_000u64).collect(), "", &mut control, |_| {
            worked.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        });
        assert!(matches!(result, Err(MatrixError::Interrupted)));
        assert!(worked.load(Ordering::Relaxed) < 100_000);
    }
}
