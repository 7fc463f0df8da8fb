//! Sorting. One machine by itself sorts all numbers in one subtask ([`sort_alone`]). Nodes sort
//! by samples ([`SortWorkload`]): bands of numbers are sorted in runs, whose regions between splitters
//! are redistributed by rank ([`Ranked`]), and each rank is sorted.
//!
//! Source: Shi and Schaeffer, "Parallel sorting by regular sampling", Journal of Parallel
//! and Distributed Computing 14, 1992; splitters are drawn from the input instead of from
//! the sorted runs, so that no node waits for them.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::program::{
    CodeletTask, Gathered, Program, ProgramTask, Space, Unit, Uses, View, ViewMut,
};
use super::{
    Check, ClusterWorkload, Contents, Fill, FillError, Fit, Layout, NewSpace, Operation, Placed,
    Placement,
};
use crate::cluster::space::{Block, SpaceId};
use crate::cluster::task::{Computed, Ranked, SubtaskLaunch, SubtaskValue};
use crate::codelet::sort::{Sort, cost};
pub use crate::codelet::sort::{Sorted, order};
use crate::random::uniform;
use crate::verify::Checked;
use crate::verify::sorted::{MultisetHash, ascends};

/// Runs of a band, and ranks of a subtask: each is a unit, which one core sorts.
const UNITS: u64 = 16;

/// Numbers of a band that is worth a subtask.
const LEAST_TILE: u64 = 1 << 14;

/// Samples for each splitter: more make ranks more even.
const SAMPLES: u64 = 64;

/// The spaces; one machine by itself has the first two.
const KEYS: usize = 0;
const RESULT: usize = 1;
const SPLITTERS: usize = 2;
const RUNS: usize = 3;
const COUNTS: usize = 4;

/// Numbers that are sorted.
#[derive(Clone)]
pub struct SortWorkload<T> {
    numbers: u64,
    /// Numbers of a band.
    tile: u64,
    keys: Fill,
    /// Between which two a rank lies.
    splitters: Arc<[T]>,
}

impl<T: Sorted> SortWorkload<T> {
    /// Sorts `numbers` of them, a row of which `keys` makes, in bands of `tile`.
    ///
    /// # Errors
    /// When samples cannot be read.
    ///
    /// # Panics
    /// When there are no numbers, or a band has none.
    pub fn new(numbers: u64, tile: u64, keys: Fill) -> Result<Self, FillError> {
        assert!(numbers > 0 && tile > 0, "nothing cannot be sorted");
        Ok(SortSamples::of(numbers, numbers.div_ceil(tile), keys)?.workload(tile))
    }
}

/// Most bands over nodes: all get how many numbers of each rank each band has.
pub const MOST_BANDS: u64 = 256;

/// Numbers of a band for so many in all: those that fit the nodes, and the least that are
/// allowed.
fn usual_tile(numbers: u64, fit: &Fit) -> u64 {
    let usual = numbers.div_ceil(fit.bands()).max(LEAST_TILE);
    usual.max(least_tile(numbers)).min(numbers)
}

/// The least numbers of a band.
pub fn least_tile(numbers: u64) -> u64 {
    numbers.div_ceil(MOST_BANDS)
}

/// Numbers that are sorted, with a sample of them.
pub struct SortSamples<T> {
    numbers: u64,
    keys: Fill,
    /// Ascending.
    sampled: Vec<T>,
}

impl<T: Sorted> SortSamples<T> {
    /// Samples for at most so many bands.
    ///
    /// # Errors
    /// When samples cannot be read.
    ///
    /// # Panics
    /// When there are no numbers.
    pub fn of(numbers: u64, bands: u64, keys: Fill) -> Result<Self, FillError> {
        assert!(numbers > 0, "nothing cannot be sorted");
        let samples = (UNITS * bands.max(1) * SAMPLES).min(numbers);
        let sample = |number: u64| {
            // One of each part of the input, so that a sorted one is sampled evenly.
            let part = |number: u64| {
                (u128::from(number) * u128::from(numbers) / u128::from(samples)) as u64
            };
            let (begin, end) = (part(number), part(number + 1));
            let at = begin + (uniform(1, number) * (end - begin) as f64) as u64;
            let mut one = T::zeroed();
            keys(
                &Block::new(0..1, at..at + 1),
                bytemuck::bytes_of_mut(&mut one),
            )?;
            Ok(one)
        };
        let mut sampled = (0..samples)
            .map(sample)
            .collect::<Result<Vec<T>, FillError>>()?;
        sampled.sort_by(order);
        Ok(Self {
            numbers,
            keys,
            sampled,
        })
    }

    /// Sorts the numbers in bands of `tile`.
    ///
    /// # Panics
    /// When a band has no number.
    pub fn workload(&self, tile: u64) -> SortWorkload<T> {
        assert!(tile > 0, "nothing cannot be sorted");
        let (numbers, samples) = (self.numbers, self.sampled.len() as u64);
        let ranks = UNITS * numbers.div_ceil(tile);
        let splitter = |rank: u64| self.sampled[(rank * samples / ranks) as usize];
        SortWorkload {
            numbers,
            tile,
            splitters: (1..ranks).map(splitter).collect(),
            keys: Arc::clone(&self.keys),
        }
    }
}

type Views<'a, T> = (View<'a, T>, View<'a, T>, ViewMut<'a, T>, ViewMut<'a, u64>);

impl<T: Sorted> SortWorkload<T> {
    fn bands(&self) -> u64 {
        self.numbers.div_ceil(self.tile)
    }

    fn ranks(&self) -> u64 {
        UNITS * self.bands()
    }

    fn band(&self, number: u64) -> Range<u64> {
        number * self.tile..((number + 1) * self.tile).min(self.numbers)
    }

    /// Where the runs of a band begin, and its end.
    fn runs(&self, band: u64) -> Vec<u64> {
        let Range { start, end } = self.band(band);
        let cut = |run| start + (end - start) * run / UNITS;
        (0..=UNITS).map(cut).collect()
    }

    fn row<N: bytemuck::Pod>(&self, space: usize, numbers: u64) -> Space<N> {
        Space::at(space, 1, numbers)
    }

    /// Sorts the runs of bands, and counts their numbers of each rank.
    fn sort_runs(&self) -> ProgramTask {
        let (bands, ranks) = (self.bands(), self.ranks());
        let of = self.clone();
        let band = move |subtask: u64| Block::new(0..1, of.band(subtask));
        let of = self.clone();
        let counts = move |subtask: u64| {
            let each = UNITS * of.ranks();
            Block::new(0..1, subtask * each..(subtask + 1) * each)
        };
        let (of, each) = (self.clone(), UNITS * ranks);
        let splitters = self.row::<T>(SPLITTERS, self.splitters.len() as u64);
        let accesses = (
            self.row::<T>(KEYS, self.numbers).read(band.clone()),
            splitters.read(move |_| splitters.whole()),
            (self.row::<T>(RUNS, self.numbers).write(band).full())
                .cut(move |subtask| of.runs(subtask)),
            (self.row::<u64>(COUNTS, bands * each).write(counts).full()).cut(move |subtask| {
                (0..=UNITS)
                    .map(|run| subtask * each + run * ranks)
                    .collect()
            }),
        );
        let function = |_, views: Views<T>| {
            let (keys, splitters, mut run, mut counts) = views;
            let first = (run.block().columns.start - keys.block().columns.start) as usize;
            let run = run.slice();
            run.copy_from_slice(&keys.slice()[first..first + run.len()]);
            radsort::sort_by_key(run, T::key);
            let mut begin = 0;
            let ends = splitters
                .slice()
                .iter()
                .map(|splitter| run.partition_point(|key| order(key, splitter) == Ordering::Less));
            let ends = ends.chain([run.len()]);
            for (count, end) in counts.slice().iter_mut().zip(ends) {
                *count = (end - begin) as u64;
                begin = end;
            }
        };
        let of = self.clone();
        let task = ProgramTask::new("sort-runs", bands, accesses, function);
        task.cost(move |subtask| {
            let Range { start, end } = of.band(subtask);
            cost::<T>(end - start)
        })
    }

    /// Sorts the ranks, of which each run has so many numbers.
    fn sort_ranks(&self, counts: &[u64]) -> ProgramTask {
        let runs: Vec<u64> = (0..self.bands())
            .flat_map(|band| self.runs(band).into_iter().take(UNITS as usize))
            .collect();
        let counts: Arc<[u64]> = counts.into();
        let ranked = Arc::new(Ranked::new(&runs, &counts));
        let ranks =
            move |subtask: u64| (UNITS * subtask) as usize..(UNITS * (subtask + 1)) as usize;
        let of = Arc::clone(&ranked);
        let cuts = move |subtask: u64| {
            let cut = |rank: usize| of.place(rank..rank).start;
            let last = ranks(subtask).end;
            ranks(subtask)
                .map(cut)
                .chain([of.place(0..last).end])
                .collect()
        };
        let of = Arc::clone(&ranked);
        let written = move |subtask: u64| Block::new(0..1, of.place(ranks(subtask)));
        let (all, bands) = (ranked.ranks(), self.bands() as usize);
        // The ranks of a subtask follow one another in each run: where they begin, run by run.
        let of_runs = runs.iter().zip(counts.chunks(all));
        let begins: Vec<u64> = of_runs
            .flat_map(|(begin, counts)| {
                let lengths = counts.chunks(UNITS as usize).map(|some| some.iter().sum());
                let ends = lengths.scan(*begin, |end, length: u64| {
                    *end += length;
                    Some(*end)
                });
                [*begin].into_iter().chain(ends).collect::<Vec<_>>()
            })
            .collect();
        let regions = move |subtask: u64| {
            let runs = begins.chunks(bands + 1);
            let of_run = |begins: &[u64]| begins[subtask as usize]..begins[subtask as usize + 1];
            runs.map(|begins| Block::new(0..1, of_run(begins)))
                .collect()
        };
        let accesses = (
            self.row::<T>(RUNS, self.numbers).gather(regions),
            (self.row::<T>(RESULT, self.numbers).write(written).full()).cut(cuts),
        );
        let (counts, of) = (Arc::clone(&counts), ranked);
        let function = move |unit: Unit, (regions, mut to): (Gathered<T>, ViewMut<T>)| {
            let ranks = ranks(unit.subtask);
            let rank = ranks.start + unit.number as usize;
            let mut at = 0;
            for (region, counts) in regions.views().iter().zip(counts.chunks(all)) {
                let before: u64 = counts[ranks.start..rank].iter().sum();
                let from = &region.slice()[before as usize..(before + counts[rank]) as usize];
                to.slice()[at..at + from.len()].copy_from_slice(from);
                at += from.len();
            }
            // Faster than to merge so many runs.
            radsort::sort_by_key(to.slice(), T::key);
        };
        let task = ProgramTask::new("sort-ranks", self.bands(), accesses, function);
        task.cost(move |subtask| {
            let place = of.place(ranks(subtask));
            cost::<T>(place.end - place.start)
        })
    }
}

impl<T: Sorted> ClusterWorkload for SortWorkload<T> {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let splitters = Arc::clone(&self.splitters);
        let (bands, ranks) = (self.bands(), self.ranks());
        let empty = |extent| NewSpace {
            extent,
            contents: None,
        };
        let cuts = (0..bands).map(|band| self.band(band).start);
        let layout = Layout::Columns(cuts.chain([self.numbers]).collect());
        let numbers = self.row::<T>(KEYS, self.numbers).extent();
        vec![
            NewSpace {
                extent: numbers,
                contents: Some(Contents::placed(layout, Arc::clone(&self.keys))),
            },
            empty(numbers),
            NewSpace {
                extent: self.row::<T>(SPLITTERS, ranks - 1).extent(),
                contents: Some(Contents::everywhere(Arc::new(move |block, bytes| {
                    let some = block.columns.start as usize..block.columns.end as usize;
                    bytes.copy_from_slice(bytemuck::cast_slice(&splitters[some]));
                    Ok(())
                }))),
            },
            empty(numbers),
            empty(self.row::<u64>(COUNTS, UNITS * bands * ranks).extent()),
        ]
    }

    fn tasks(&self) -> u64 {
        2
    }

    /// The second task is that of numbers of which each run has as many of each rank.
    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        if number == 0 {
            return self.sort_runs().on(spaces);
        }
        let ranks = self.ranks();
        let runs = (0..self.bands()).flat_map(|band| {
            let runs = self.runs(band);
            let lengths: Vec<u64> = runs.windows(2).map(|run| run[1] - run[0]).collect();
            lengths
        });
        let counts = runs.flat_map(|length| {
            (0..ranks).map(move |rank| length * (rank + 1) / ranks - length * rank / ranks)
        });
        self.sort_ranks(&counts.collect::<Vec<_>>()).on(spaces)
    }

    fn depends(&self, number: u64) -> Option<usize> {
        (number == 1).then_some(COUNTS)
    }

    fn task_by(&self, _number: u64, spaces: &[SpaceId], bytes: &[u8]) -> Arc<dyn Computed> {
        let counts: Vec<u64> = bytemuck::pod_collect_to_vec(bytes);
        self.sort_ranks(&counts).on(spaces)
    }

    fn result(&self) -> usize {
        RESULT
    }

    fn check(&self) -> Check<'_> {
        let compare = |spaces: &[&[u8]], _| compare::<T>(1, self.numbers, &self.keys, spaces[0]);
        Check::Whole(vec![RESULT], Box::new(compare))
    }
}

/// Sorts rows of numbers, which `keys` makes: one machine by itself in one subtask, which all
/// workers share. Nodes sort one row.
pub fn sort<T: Sorted>(rows: u64, numbers: u64, keys: Fill) -> Operation {
    let samples: OnceLock<Result<SortSamples<T>, FillError>> = OnceLock::new();
    Operation {
        title: match rows {
            1 => format!("{numbers} numbers"),
            rows => format!("{rows} rows of {numbers} numbers"),
        },
        fp64: false,
        bytes: 2 * size_of::<T>() as u128 * u128::from(rows) * u128::from(numbers),
        dense: None,
        hosts_only: true,
        outputs: vec![RESULT],
        make: Box::new(move |place, tile| {
            let Some(fit) = place.several(tile).filter(|_| rows == 1) else {
                return Ok(Placed {
                    workload: Arc::new(sort_alone::<T>(rows, numbers, &keys)),
                    parts: String::new(),
                    tile: numbers,
                });
            };
            let sampled = || SortSamples::of(numbers, MOST_BANDS, keys.clone());
            let samples = samples
                .get_or_init(sampled)
                .as_ref()
                .map_err(Clone::clone)?;
            let least = least_tile(numbers);
            let suits = || usual_tile(numbers, &fit);
            let tile = tile.unwrap_or_else(suits).max(least).min(numbers);
            let parts = format!("{tile} a subtask");
            Ok(Placed::new(samples.workload(tile), parts, tile))
        }),
    }
}

/// All numbers in one subtask.
pub fn sort_alone<T: Sorted>(rows: u64, numbers: u64, keys: &Fill) -> Program {
    let mut program = Program::new("sort");
    let extent = Space::<T>::at(KEYS, rows, numbers).extent();
    let given = Contents::placed(Placement::Rows, Arc::clone(keys));
    let name = T::PRECISION.name();
    program.add_space(extent, name, Some(given));
    let result = program.add_space(extent, name, None);
    program.set_result_number(result);
    let sort = Sort { rows, numbers };
    let uses = move |_| Uses {
        reads: vec![(KEYS, extent.whole())],
        writes: vec![(RESULT, extent.whole())],
        cost: sort.cost::<T>(),
    };
    let launch = move |_| SubtaskLaunch {
        codelet: Arc::new(Sort::codelet::<T>()),
        units: 0..sort.units(),
        values: sort.values().map(SubtaskValue::from).to_vec(),
    };
    program.add_task(CodeletTask::new("sort", 1, uses, launch));
    let keys = Arc::clone(keys);
    program.set_compare_whole(vec![RESULT], move |spaces, _| {
        compare::<T>(rows, numbers, &keys, spaces[0])
    });
    program
}

/// Numbers that are read at once for a comparison.
const READ: u64 = 1 << 22;

/// Checks that the numbers of each row are sorted, and are the given ones.
fn compare<T: Sorted>(rows: u64, numbers: u64, keys: &Fill, bytes: &[u8]) -> Checked {
    let mut checked = Checked::default();
    let (mut found, mut given) = (MultisetHash::default(), MultisetHash::default());
    let row_bytes = numbers as usize * size_of::<T>();
    for (row, sorted) in (0..rows).zip(bytes.chunks(row_bytes)) {
        let mut before = None;
        for number in sorted.chunks_exact(size_of::<T>()) {
            let number: T = bytemuck::pod_read_unaligned(number);
            // The row counts, too: numbers stay in theirs.
            found.add(number.bits() ^ row.rotate_right(16));
            let next = number.into();
            checked.exactly(before.is_none_or(|before| ascends(before, next)));
            before = Some(next);
        }
        for begin in (0..numbers).step_by(READ as usize) {
            let part = Block::new(row..row + 1, begin..(begin + READ).min(numbers));
            let mut some = vec![T::zeroed(); part.elements() as usize];
            Contents::again(keys, &part, bytemuck::cast_slice_mut(&mut some));
            let some = some.iter();
            some.for_each(|key| given.add(key.bits() ^ row.rotate_right(16)));
        }
    }
    if found != given {
        // Nobody knows which.
        checked.wrong = checked.numbers;
        checked.worst = f64::MAX;
    }
    checked
}
