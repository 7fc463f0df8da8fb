//! Spaces that subtasks read without saying which blocks: what a function touches is fetched
//! (Unicorn's automatic subscription, section IV).
//!
//! A function that touches an element that is not there is given up: it unwinds, and its
//! codelet ends. What it has written is not seen by anybody. The node fetches the page and
//! computes the subtask anew, until all is there that it touches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Index;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use super::access::{Access, Bytes, ReadOf, Space, Subscription, Use, View, elements, next, view};
use crate::cluster::space::{Block, Extent};

/// A space of which subtasks read what they touch, in pages.
pub struct Touch<T> {
    space: Space<T>,
    page: Page,
}

/// How a space is cut into pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub rows: u64,
    pub columns: u64,
}

/// A space that is read where it is touched.
pub struct Touched<'a, T> {
    extent: Extent,
    page: Page,
    /// By number.
    pages: HashMap<u64, View<'a, T>>,
    absent: Arc<Absent>,
    /// Its number among the accesses that touch.
    access: usize,
}

/// The pages that a function has touched, and that were not there.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// Numbers of accesses and pages.
    pages: Mutex<BTreeSet<(usize, u64)>>,
}

/// What unwinds when a function is given up.
struct GivenUp;

/// What the subtasks of a task read, as they have touched it.
#[derive(Debug, Default)]
pub(super) struct Touches {
    of: Mutex<HashMap<u64, OfSubtask>>,
}

#[derive(Debug, Default)]
struct OfSubtask {
    /// By number of the access.
    pages: BTreeMap<usize, BTreeSet<u64>>,
    absent: Arc<Absent>,
}

impl<T: Pod> Space<T> {
    /// Each subtask reads what its function touches, and nobody has to know that before. A page
    /// of so many rows and columns is fetched when one of its elements is touched for the first
    /// time; the function is given up then, and the subtask is computed anew with the page. So
    /// a function must do the same each time, and must not change anything but what it writes.
    /// Where it touches one page after another, more and more of them are fetched at once.
    ///
    /// Only hosts compute such a task, in a program that unwinds when it panics.
    ///
    /// ```
    /// use pdawl_core::cluster::space::Block;
    /// use pdawl_core::workload::cluster::program::{Program, ProgramTask};
    ///
    /// // Follows links from each vertex, ten times. Nobody knows where they lead.
    /// let mut program = Program::new("walk");
    /// let links = program.given(1, 1000, |_, vertex| (vertex * 7 + 1) % 1000);
    /// let ends = program.space::<u64>(1, 1000);
    /// let part = |subtask: u64| Block::new(0..1, 250 * subtask..250 * (subtask + 1));
    /// let accesses = (links.touch(1, 50), ends.write(part));
    /// program.add_task(ProgramTask::new("walk", 4, accesses, |_, (links, mut ends)| {
    ///     for vertex in ends.block().columns.clone() {
    ///         ends[(0, vertex)] = (0..10).fold(vertex, |at, _| links[(0, at)]);
    ///     }
    /// }));
    /// # program.set_result(ends);
    /// # assert!(program.check().is_ok());
    /// ```
    pub fn touch(self, rows: u64, columns: u64) -> Touch<T> {
        Touch {
            space: self,
            page: Page { rows, columns },
        }
    }
}

impl<T: Pod> Access for Touch<T> {
    type View<'a> = Touched<'a, T>;

    fn subscribe(&self, _subtask: u64, to: &mut Subscription) {
        to.uses.push(Use::Read(ReadOf {
            space: self.space.number(),
            extent: self.space.extent(),
            blocks: Vec::new(),
            is_natural: false,
            page: Some(self.page),
        }));
    }

    fn view<'a>(&self, from: &mut Bytes<'a>) -> Touched<'a, T> {
        let (places, bytes) = next(&mut from.reads);
        let access = from.touches;
        from.touches += 1;
        let (extent, page) = (self.space.extent(), self.page);
        let elements: &[T] = elements(bytes);
        let pages = places.into_iter().map(|place| {
            let number = page.number(extent, place.0.rows.start, place.0.columns.start);
            (number, view(place, elements))
        });
        Touched {
            extent,
            page,
            pages: pages.collect(),
            absent: Arc::clone(&from.absent),
            access,
        }
    }
}

impl<'a, T> Touched<'a, T> {
    /// The rows, the columns and the bytes of an element of the whole space.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The page that has an element: its elements are found faster there than one by one.
    ///
    /// # Panics
    /// When the space does not have the element.
    pub fn page(&self, row: u64, column: u64) -> &View<'a, T> {
        let Extent { rows, columns, .. } = self.extent;
        assert!(
            row < rows && column < columns,
            "row {row}, column {column} is not in a space of {rows} rows and {columns} columns"
        );
        let number = self.page.number(self.extent, row, column);
        match self.pages.get(&number) {
            Some(page) => page,
            None => self.absent.give_up(self.access, number),
        }
    }
}

/// The element at a row and a column of the space.
impl<T> Index<(u64, u64)> for Touched<'_, T> {
    type Output = T;

    /// # Panics
    /// When the space does not have it.
    fn index(&self, (row, column): (u64, u64)) -> &T {
        &self.page(row, column)[(row, column)]
    }
}

impl Page {
    /// How many are side by side.
    fn across(self, extent: Extent) -> u64 {
        extent.columns.div_ceil(self.columns.max(1)).max(1)
    }

    /// The number of the page with an element: from left to right, then down.
    fn number(self, extent: Extent, row: u64, column: u64) -> u64 {
        row / self.rows.max(1) * self.across(extent) + column / self.columns.max(1)
    }

    /// How many pages a space has.
    fn count(self, extent: Extent) -> u64 {
        extent.rows.div_ceil(self.rows.max(1)) * self.across(extent)
    }

    fn block(self, extent: Extent, number: u64) -> Block {
        let across = self.across(extent);
        let (row, column) = (number / across * self.rows, number % across * self.columns);
        Block::new(
            row..(row + self.rows).min(extent.rows),
            column..(column + self.columns).min(extent.columns),
        )
    }
}

/// No code panics while it holds the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Absent {
    /// Gives the function up that has touched a page.
    fn give_up(&self, access: usize, page: u64) -> ! {
        locked(&self.pages).insert((access, page));
        // It is no panic, so nothing is printed.
        resume_unwind(Box::new(GivenUp))
    }

    /// Runs a function until it ends or is given up.
    pub(super) fn run(function: impl FnOnce()) {
        // What the function has written is not used when it is given up.
        if let Err(why) = catch_unwind(AssertUnwindSafe(function))
            && !why.is::<GivenUp>()
        {
            resume_unwind(why);
        }
    }
}

impl Touches {
    /// Adds the pages that a subtask has touched to what it uses.
    pub fn subscribe(&self, subtask: u64, to: &mut Subscription) {
        if !to.touches() {
            return;
        }
        let of = locked(&self.of);
        let Some(of) = of.get(&subtask) else { return };
        let mut access = 0;
        for one in &mut to.uses {
            if let Use::Read(ReadOf {
                page: Some(page),
                extent,
                blocks,
                ..
            }) = one
            {
                let pages = of.pages.get(&access).into_iter().flatten();
                blocks.extend(pages.map(|number| page.block(*extent, *number)));
                access += 1;
            }
        }
    }

    /// Where a run of a subtask notes what it has touched and has not.
    pub fn absent(&self, subtask: u64) -> Arc<Absent> {
        let mut of = locked(&self.of);
        Arc::clone(&of.entry(subtask).or_default().absent)
    }

    /// Takes what the last run of a subtask has touched and has not, and adds it to what the
    /// subtask reads: by access, the pages that are new.
    pub fn take(&self, subtask: u64, subscription: &Subscription) -> Vec<(ReadOf, Vec<Block>)> {
        let mut of = locked(&self.of);
        let Some(of) = of.get_mut(&subtask) else {
            return Vec::new();
        };
        let absent = std::mem::take(&mut *locked(&of.absent.pages));
        let reads = subscription.reads().filter(|read| read.page.is_some());
        let mut all = Vec::new();
        for (access, read) in reads.enumerate() {
            let Some(page) = read.page else { continue };
            let known = of.pages.entry(access).or_default();
            let mut new = BTreeSet::new();
            for (_, number) in absent.iter().filter(|(of, _)| *of == access) {
                new.extend(ahead(known, *number, page, read.extent));
            }
            new.retain(|number| known.insert(*number));
            if !new.is_empty() {
                let blocks = new.iter().map(|number| page.block(read.extent, *number));
                all.push((read.clone(), blocks.collect()));
            }
        }
        all
    }
}

/// A page that is touched, and as many behind it as have been touched before it without a gap:
/// in its row of pages, or in its column of them.
fn ahead(known: &BTreeSet<u64>, number: u64, page: Page, extent: Extent) -> Vec<u64> {
    let before = |step: u64| {
        let pages = (1..).map_while(|count| number.checked_sub(count * step));
        pages.take_while(|page| known.contains(page)).count() as u64
    };
    let (across, count) = (page.across(extent), page.count(extent));
    let step = if before(1) > 0 { 1 } else { across };
    let pages = (0..=before(step)).map(|further| number + further * step);
    pages.take_while(|page| *page < count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent {
        rows: 7,
        columns: 10,
        element: 8,
    };
    const PAGE: Page = Page {
        rows: 3,
        columns: 4,
    };

    #[test]
    fn each_element_is_in_the_page_of_its_number() {
        let mut elements = 0;
        for number in 0..PAGE.count(EXTENT) {
            let block = PAGE.block(EXTENT, number);
            for row in block.rows.clone() {
                for column in block.columns.clone() {
                    assert_eq!(PAGE.number(EXTENT, row, column), number);
                    elements += 1;
                }
            }
        }
        assert_eq!(elements, 70);
    }

    #[test]
    fn more_pages_follow_where_one_after_another_is_touched() {
        let pages = |known: &[u64], number| {
            let known = known.iter().copied().collect();
            ahead(&known, number, PAGE, EXTENT)
        };
        assert_eq!(pages(&[], 4), [4]);
        assert_eq!(pages(&[0, 1, 2], 3), [3, 4, 5, 6]);
        assert_eq!(pages(&[5, 6], 7), [7, 8], "there are nine");
        // Downwards.
        assert_eq!(pages(&[1], 4), [4, 7]);
        assert_eq!(pages(&[8], 4), [4]);
    }

    #[test]
    fn other_panics_are_not_caught() {
        Absent::run(|| Absent::default().give_up(0, 0));
        let caught = catch_unwind(|| Absent::run(|| resume_unwind(Box::new("other"))));
        assert!(caught.is_err());
    }
}
