//! The convolution of an image with a square filter (Unicorn, section V), and its check.

use std::sync::Arc;

use super::program::{CodeletTask, Program, Uses};
use super::tiles::Tiles;
use super::{Contents, Fill, Operation, Place, Placed, Placement};
use crate::cluster::space::{Block, Extent};
use crate::cluster::task::{SubtaskLaunch, SubtaskValue};
use crate::codelet::Precision;
use crate::codelet::convolution::{Convolution, codelet};
use crate::verify::accuracy::Accuracy;
use crate::verify::product::{dot, greatest, norm, weights};
use crate::verify::{Checked, Rounding, Sum, numbers};

/// An image of singles, `channels` a pixel.
#[derive(Clone)]
pub struct ConvolutionWorkload {
    pub rows: u64,
    pub columns: u64,
    pub channels: u32,
    /// Rows of the filter, an odd number.
    pub size: u32,
    pub placement: Placement,
    /// The pixels and the filter.
    pub image: Fill,
    pub filter: Fill,
}

const IMAGE: usize = 0;
const FILTER: usize = 1;
const RESULT: usize = 2;

impl ConvolutionWorkload {
    fn extent(&self) -> Extent {
        Extent {
            rows: self.rows,
            columns: self.columns,
            element: 4 * u64::from(self.channels),
        }
    }

    pub(super) fn filter_extent(&self) -> Extent {
        let size = u64::from(self.size);
        Extent {
            rows: size,
            columns: size,
            element: 4,
        }
    }

    pub(super) fn halo(&self, block: &Block) -> Block {
        let radius = u64::from(self.size / 2);
        let widen = |range: &std::ops::Range<u64>, end: u64| {
            range.start.saturating_sub(radius)..(range.end + radius).min(end)
        };
        Block::new(
            widen(&block.rows, self.rows),
            widen(&block.columns, self.columns),
        )
    }
}

impl ConvolutionWorkload {
    /// The operation, in blocks of `alone` rows on one machine by itself.
    pub fn operation(self, alone: u64) -> Operation {
        let (rows, columns) = (self.rows, self.columns);
        Operation {
            title: format!(
                "{rows} x {columns} x {0} with {1} x {1}",
                self.channels, self.size
            ),
            fp64: false,
            bytes: 2 * self.extent().all_bytes() + self.filter_extent().all_bytes(),
            dense: None,
            hosts_only: false,
            outputs: vec![RESULT],
            make: Box::new(move |place, tile| {
                let reach = u64::from(self.size / 2);
                let suits = || match place {
                    Place::Alone(_) => alone,
                    Place::Nodes(fit) => {
                        let [channels, size] = [self.channels, self.size].map(u64::from);
                        let lengths = [rows, columns, channels, size, size];
                        let flops = lengths.iter().fold(2.0, |of, length| of * *length as f64);
                        fit.image(rows, columns, reach, flops)
                    }
                };
                let tile = tile.unwrap_or_else(suits);
                let parts = format!("blocks of {tile}");
                Ok(Placed::new(self.program(tile), parts, tile))
            }),
        }
    }

    /// The task, in blocks of so many rows and pixels a row.
    pub fn program(&self, tile: u64) -> Program {
        let mut program = Program::new("convolution");
        let image = Contents::placed(self.placement, Arc::clone(&self.image));
        let filter = Contents::placed(Placement::Central, Arc::clone(&self.filter));
        program.add_space(self.extent(), "pixels", Some(image));
        program.add_space(self.filter_extent(), "f32", Some(filter));
        let result = program.add_space(self.extent(), "pixels", None);
        program.set_result_number(result);
        let tiles = Tiles::new(self.extent(), [tile, tile]);
        let codelet = Arc::new(codelet(self.size, self.channels));
        let (of, launched) = (self.clone(), self.clone());
        let uses = move |subtask| {
            let block = tiles.block(subtask);
            Uses {
                reads: vec![
                    (IMAGE, of.halo(&block)),
                    (FILTER, of.filter_extent().whole()),
                ],
                cost: of.shape(&block).cost(),
                writes: vec![(RESULT, block)],
            }
        };
        let launch = move |subtask| {
            let shape = launched.shape(&tiles.block(subtask));
            SubtaskLaunch {
                codelet: Arc::clone(&codelet),
                units: 0..shape.units(),
                values: (SubtaskValue::place(0, 4).into_iter())
                    .chain(SubtaskValue::place(2, 4))
                    .chain(shape.sizes().map(SubtaskValue::from))
                    .collect(),
            }
        };
        program.add_task(CodeletTask::new("convolution", tiles.count(), uses, launch));
        let of = self.clone();
        program.set_compare(move |block, bytes, seed| of.compare(block, bytes, seed));
        program
    }

    fn shape(&self, block: &Block) -> Convolution {
        let around = self.halo(block);
        Convolution {
            rows: block.height() as u32,
            columns: block.width() as u32,
            in_rows: around.height() as u32,
            in_columns: around.width() as u32,
            above: (block.rows.start - around.rows.start) as u32,
            left: (block.columns.start - around.columns.start) as u32,
            size: self.size,
            channels: self.channels,
        }
    }
}

// The check of a convolution, without computing it again.
//
// A weighted sum of a row of the result is one of the rows of the image around it, whose
// weights are those of the row after the filter: each row of a block has two such sums, with
// random weights. The error of a pixel of n terms is at most `g u sqrt(n) |filter| |pixels|`
// in the Euclidean norms, as in `product`, of which the docs give
// the law and its factor g, and the sums may differ by 8 times the norm of that over a row.
// Up to 256 pixels of a block are compared one by one, each with its own bound, and all of
// them with the accuracy of single precision.

/// Numbers that are compared because they are infinite or none where no given number says
/// so, or the reverse. One that is wrong is enough.
const ODD: usize = 1024;

impl ConvolutionWorkload {
    /// Compares all rows of a block, samples of its pixels, and all numbers that are not finite
    /// where they should be, or the reverse.
    pub(super) fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let channels = u64::from(self.channels);
        let again = |of: &Fill, part: &Block, channels: u64| {
            let mut bytes = vec![0; 4 * (part.elements() * channels) as usize];
            Contents::again(of, part, &mut bytes);
            numbers(&bytes, Precision::F32)
        };
        let given = Given {
            filter: again(&self.filter, &self.filter_extent().whole(), 1),
            around: self.halo(block),
            image: again(&self.image, &self.halo(block), channels),
            size: u64::from(self.size),
            channels,
        };
        let all = numbers(bytes, Precision::F32);
        let odd = given.odd(block, &all);
        let mut checked = Checked::default();
        let mut accuracy = Accuracy::of(Precision::F32.into());
        for [row, column] in positions(block, seed).into_iter().chain(odd) {
            for channel in 0..channels {
                let found = single(block, bytes, [row, column], channels, channel);
                let found = f64::from(found);
                let terms = given.terms([row, column, channel]);
                checked.error(given.error(&terms, found));
                if let Some(accuracy) = &mut accuracy {
                    let terms: Vec<f64> = terms.iter().map(|term| term.unwrap_or(0.0)).collect();
                    accuracy.add(&given.filter, &terms, found);
                }
            }
        }
        let growth = accuracy.as_ref().map_or(1.0, Accuracy::growth);
        // Not the numbers that were generated.
        given.compare_rows(
            (block, &all),
            seed.wrapping_add(1 << 32),
            growth,
            &mut checked,
        );
        let of_samples = accuracy.map_or(0.0, |of| of.error());
        if checked.wrong == 0 && of_samples > 1.0 {
            checked.together(block.elements() * channels, of_samples);
        }
        checked
    }
}

/// The filter, and the pixels around a block.
struct Given {
    filter: Vec<f64>,
    around: Block,
    image: Vec<f64>,
    size: u64,
    channels: u64,
}

impl Given {
    /// A number of the image, which has it around the block.
    fn number(&self, row: u64, column: u64, channel: u64) -> f64 {
        let pixel = (row - self.around.rows.start) * self.around.width() + column
            - self.around.columns.start;
        self.image[(pixel * self.channels + channel) as usize]
    }

    /// What each weight is multiplied with for a number of the result; `None` beyond the image.
    fn terms(&self, [row, column, channel]: [u64; 3]) -> Vec<Option<f64>> {
        let radius = self.size / 2;
        let places = (0..self.size).flat_map(|y| (0..self.size).map(move |x| (y, x)));
        let of_place = |(y, x): (u64, u64)| {
            let (y, x) = (
                (row + y).checked_sub(radius)?,
                (column + x).checked_sub(radius)?,
            );
            let is_inside = self.around.rows.contains(&y) && self.around.columns.contains(&x);
            is_inside.then(|| self.number(y, x, channel))
        };
        places.map(of_place).collect()
    }

    /// The error of a number of the result, as a multiple of what is allowed. Weights beyond
    /// the image count with zeros there or not at all: that is the same, unless they are
    /// infinite or none.
    fn error(&self, terms: &[Option<f64>], found: f64) -> f64 {
        let rounding = Rounding::from(Precision::F32);
        let (mut sum, mut with_zeros) = (Sum::default(), Sum::default());
        for (weight, term) in self.filter.iter().zip(terms) {
            with_zeros.add(*weight, term.unwrap_or(0.0));
            if let Some(term) = term {
                sum.add(*weight, *term);
            }
        }
        (sum.error(found, rounding)).min(with_zeros.error(found, rounding))
    }

    /// Compares weighted sums of each row of a block. Rows near a number that is not finite, or
    /// with one, are left out.
    fn compare_rows(
        &self,
        (block, found): (&Block, &[f64]),
        seed: u64,
        growth: f64,
        checked: &mut Checked,
    ) {
        let (rounding, radius) = (Rounding::from(Precision::F32), self.size / 2);
        let numbers = |of: &Block| of.width() * self.channels;
        let own = weights(seed, 0..numbers(block));
        let of_image: Vec<_> = own
            .iter()
            .map(|own| self.weights_of_image(block, own))
            .collect();
        let width = numbers(&self.around) as usize;
        let norms: Vec<f64> = self.image.chunks_exact(width.max(1)).map(norm).collect();
        let (of_filter, terms) = (norm(&self.filter), self.filter.len() as f64);
        let near_zero = 8.0 * (numbers(block) as f64).sqrt() * terms * rounding.least;
        let rows = found.chunks_exact(own[0].len().max(1));
        for (row, found) in block.rows.clone().zip(rows) {
            // The image's rows around it, each with its row of the filter.
            let near = (0..self.size).filter_map(|y| {
                let of_image = (row + y).checked_sub(radius)?;
                let is_inside = self.around.rows.contains(&of_image);
                is_inside.then(|| (y as usize, (of_image - self.around.rows.start) as usize))
            });
            let squares: f64 = near.clone().map(|(_, row)| norms[row] * norms[row]).sum();
            let of_pixels = (self.size as f64 * squares).sqrt();
            let law = growth * rounding.unit * terms.sqrt() * of_filter * of_pixels;
            let allowed = 8.0 * law + near_zero;
            let errors = own.iter().zip(&of_image).map(|(own, of_image)| {
                let right: f64 = (near.clone())
                    .map(|(y, row)| dot(&self.image[row * width..][..width], &of_image[y]))
                    .sum();
                (dot(found, own) - right).abs() / allowed
            });
            let error = errors.fold(0.0, greatest);
            if found.iter().all(|number| number.is_finite()) && allowed.is_finite() {
                checked.together(found.len() as u64, error);
            }
        }
    }

    /// The weights of the numbers of the image's rows, by row of the filter, for those of a row
    /// of the result.
    fn weights_of_image(&self, block: &Block, own: &[f64]) -> Vec<Vec<f64>> {
        let radius = self.size / 2;
        let of_row = |filter: &[f64]| {
            let mut weights = vec![0.0; (self.around.width() * self.channels) as usize];
            for (column, own) in block
                .columns
                .clone()
                .zip(own.chunks_exact(self.channels as usize))
            {
                for (x, filter) in (column..).zip(filter) {
                    let Some(x) = x.checked_sub(radius) else {
                        continue;
                    };
                    if self.around.columns.contains(&x) {
                        let at = ((x - self.around.columns.start) * self.channels) as usize;
                        let to = weights[at..].iter_mut();
                        to.zip(own).for_each(|(to, own)| *to += filter * own);
                    }
                }
            }
            weights
        };
        self.filter
            .chunks_exact(self.size as usize)
            .map(of_row)
            .collect()
    }

    /// The pixels of a block that are finite although one of their terms is not, or the
    /// reverse.
    fn odd(&self, block: &Block, found: &[f64]) -> Vec<[u64; 2]> {
        let has_odd_weight = self.filter.iter().any(|weight| !weight.is_finite());
        let width = (self.around.width() * self.channels) as usize;
        // By row around the block: whether a pixel near a column is not finite.
        let mut near = vec![false; (self.around.height() * block.width()) as usize];
        let of_rows = self.image.chunks_exact(width.max(1));
        for (image, near) in of_rows.zip(near.chunks_exact_mut(block.width() as usize)) {
            let others = image
                .iter()
                .enumerate()
                .filter(|(_, value)| !value.is_finite());
            for (place, _) in others {
                let column = self.around.columns.start + place as u64 / self.channels;
                let reach = reach(column, self.size / 2, &block.columns);
                near[reach].fill(true);
            }
        }
        let mut is_other = vec![has_odd_weight; block.elements() as usize];
        let of_rows = self
            .around
            .rows
            .clone()
            .zip(near.chunks_exact(block.width() as usize));
        for (row, near) in of_rows.filter(|(_, near)| near.contains(&true)) {
            for to in reach(row, self.size / 2, &block.rows) {
                let to = &mut is_other[to * near.len()..(to + 1) * near.len()];
                to.iter_mut().zip(near).for_each(|(to, near)| *to |= near);
            }
        }
        let (first, width) = ([block.rows.start, block.columns.start], block.width());
        let pixels = found.chunks_exact(self.channels as usize);
        (0..)
            .zip(pixels.zip(is_other))
            .filter(|(_, (pixel, is_other))| {
                let is_finite = pixel.iter().all(|value| value.is_finite());
                is_finite == *is_other
            })
            .map(|(place, _)| [first[0] + place / width, first[1] + place % width])
            .take(ODD)
            .collect()
    }
}

/// The places of a range that are at most `radius` from a number, from the range's begin.
fn reach(number: u64, radius: u64, range: &std::ops::Range<u64>) -> std::ops::Range<usize> {
    let place = |number: u64| (number.clamp(range.start, range.end) - range.start) as usize;
    place(number.saturating_sub(radius))..place(number + radius + 1)
}

/// Elements of a block that are compared, if it has more.
const SAMPLES: u64 = 256;

/// Positions of a block that are compared: row and column in the space.
fn positions(block: &Block, seed: u64) -> Vec<[u64; 2]> {
    let all = block.elements();
    let position = |number: u64| {
        [
            block.rows.start + number / block.width(),
            block.columns.start + number % block.width(),
        ]
    };
    if all <= SAMPLES {
        return (0..all).map(position).collect();
    }
    let first = block
        .rows
        .start
        .wrapping_mul(31)
        .wrapping_add(block.columns.start);
    let mut random = fastrand::Rng::with_seed(seed ^ first.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The corners are where halos end.
    let corners = [0, block.width() - 1, all - block.width(), all - 1];
    let others = (4..SAMPLES).map(|_| random.u64(..all));
    corners.into_iter().chain(others).map(position).collect()
}

/// A single of a block's bytes.
fn single(block: &Block, bytes: &[u8], [row, column]: [u64; 2], per: u64, which: u64) -> f32 {
    let number = (row - block.rows.start) * block.width() + column - block.columns.start;
    let at = 4 * (number * per + which) as usize;
    match bytes.get(at..at + 4).and_then(|four| four.first_chunk()) {
        Some(four) => f32::from_ne_bytes(*four),
        None => f32::NAN,
    }
}
