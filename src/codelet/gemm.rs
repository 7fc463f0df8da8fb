//! General matrix multiplication, `C = A B` or `C = A B^T` with B stored transposed, for one
//! pair of matrices or for a batch of them. All matrices are stored in one format, and sums are
//! singles, rounded once when they are stored.
//!
//! Source: the kernel that each head of the PySchedCL paper's transformer uses six
//! times (section 2.1); tiles in local memory and blocks in registers are the common
//! way, described for instance by Volkov and Demmel, "Benchmarking GPUs to tune
//! dense linear algebra", SC 2008.
//!
//! All matrices are stored by rows without gaps: A is `rows x depth`, C is
//! `rows x columns`, B is `depth x columns` or, transposed, `columns x depth`.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `a` | memory | of every matrix A |
//! | 1 | `b` | memory | of every matrix B |
//! | 2 | `c` | memory | of every matrix C; overlaps neither |
//! | 3 | `rows` | u32 | rows of A and C |
//! | 4 | `columns` | u32 | columns of C |
//! | 5 | `depth` | u32 | what is summed over |
//! | 6 | `a_apart` | u64 | numbers from one A to the next; 0: all use the first |
//! | 7 | `b_apart` | u64 | likewise for B |
//! | 8 | `c_apart` | u64 | likewise for C; not 0 in a batch |
//! | 9 | `a_first` | u64 | numbers before the first A, a multiple of a matrix's |
//! | 10 | `b_first` | u64 | likewise for B |
//!
//! ## Units
//!
//! A unit is a block of [`BLOCK`] rows and columns of a C, less at its edges;
//! blocks are counted by rows, and through the batch. The host gets all units at once, and
//! divides them among its threads. An OpenCL launch takes whole matrices: its units begin
//! and end with one.
//!
//! How a GPU divides a product: tiles of work-groups, blocks of work-items.
//!
//! The product's native implementation.
//!
//! The product's OpenCL implementation: source, options and sizes.

use std::fmt;
use std::ops::Range;

use half::{bf16, f16};

use crate::host::{Arguments, for_each_piece, piece};
use crate::tile::gemm::{Product, rectangles};
use crate::tile::matrix::Matrix;
use crate::{HostValue, KernelSource, NdRange, OpenClKernel, Shape};

use super::library::{Library, LibraryCall, Operand, are_sizes, u32_at, u64_at};
use super::number_format::Tf32;
use super::{Codelet, Cost, HostCode, LibraryKernel, NumberFormat, SharedKernel, Value};

/// Rows and columns of a unit.
pub const BLOCK: u32 = 64;

/// The shapes of a product's matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Of all matrices.
    pub format: NumberFormat,
    pub rows: u32,
    pub columns: u32,
    pub depth: u32,
    /// Pairs of matrices.
    pub batch: u32,
    /// Whether B is stored transposed.
    pub transposed: bool,
    /// Whether every pair has the first A.
    pub common_a: bool,
    /// Matrices in the memory of A, and of B, before the first that is meant.
    pub skip_a: u32,
    pub skip_b: u32,
}

impl Gemm {
    /// Square matrices of this many rows, of singles.
    pub fn square(size: u32) -> Self {
        Self {
            format: NumberFormat::F32,
            rows: size,
            columns: size,
            depth: size,
            batch: 1,
            transposed: false,
            common_a: false,
            skip_a: 0,
            skip_b: 0,
        }
    }

    /// With matrices of this format.
    pub fn format(self, format: NumberFormat) -> Self {
        Self { format, ..self }
    }

    /// So many pairs of matrices.
    pub fn batch(self, batch: u32) -> Self {
        Self { batch, ..self }
    }

    /// With B stored transposed.
    pub fn transposed(self) -> Self {
        Self {
            transposed: true,
            ..self
        }
    }

    /// One A for all pairs.
    pub fn common_a(self) -> Self {
        Self {
            common_a: true,
            ..self
        }
    }

    /// With operands that begin after this many matrices of their memory.
    pub fn after(self, skip_a: u32, skip_b: u32) -> Self {
        Self {
            skip_a,
            skip_b,
            ..self
        }
    }

    /// Blocks of all matrices.
    pub fn units(&self) -> u64 {
        self.blocks() * u64::from(self.batch)
    }

    /// Blocks of a matrix.
    fn blocks(&self) -> u64 {
        let along = |size: u32| u64::from(size.div_ceil(BLOCK));
        along(self.rows) * along(self.columns)
    }

    /// Two operations a multiplication and addition; every matrix once.
    pub fn cost(&self) -> Cost {
        let [rows, columns, depth, batch] =
            [self.rows, self.columns, self.depth, self.batch].map(f64::from);
        let of_a = if self.common_a { 1.0 } else { batch };
        let numbers = of_a * rows * depth + batch * (depth * columns + rows * columns);
        Cost {
            flops: 2.0 * rows * columns * depth * batch,
            bytes: self.format.element().bytes() as f64 * numbers,
        }
    }

    /// The arguments after the three memories.
    pub fn sizes(&self) -> [Value; 8] {
        let of = |rows: u32, columns: u32| u64::from(rows) * u64::from(columns);
        let (a, b) = (of(self.rows, self.depth), of(self.depth, self.columns));
        [
            Value::U32(self.rows),
            Value::U32(self.columns),
            Value::U32(self.depth),
            Value::U64(if self.common_a { 0 } else { a }),
            Value::U64(b),
            Value::U64(of(self.rows, self.columns)),
            Value::U64(u64::from(self.skip_a) * a),
            Value::U64(u64::from(self.skip_b) * b),
        ]
    }

    /// The codelet, with the tile that suits these sizes.
    pub fn codelet(&self) -> Codelet {
        self.codelet_with(Tile::of(self))
    }

    /// The codelet with this tile. A library may serve instead.
    pub fn codelet_with(&self, tile: &Tile) -> Codelet {
        Codelet {
            name: match self.transposed {
                true => format!("gemm-nt-{}", self.format.name()).into(),
                false => format!("gemm-{}", self.format.name()).into(),
            },
            host: Some(HostCode::Shared(match self.transposed {
                true => on_host::<true>(self.format),
                false => on_host::<false>(self.format),
            })),
            opencl: Some(opencl_kernel(self, tile)),
            library: Some(library(self)),
        }
    }
}

/// The host's implementation.
fn on_host<const TRANSPOSED: bool>(format: NumberFormat) -> SharedKernel {
    match format {
        NumberFormat::F16 => multiply::<f16, TRANSPOSED>,
        NumberFormat::Bf16 => multiply::<bf16, TRANSPOSED>,
        NumberFormat::Tf32 => multiply::<Tf32, TRANSPOSED>,
        NumberFormat::F32 => multiply::<f32, TRANSPOSED>,
    }
}

/// A call of a library for the matrices of some units.
fn library(gemm: &Gemm) -> LibraryKernel {
    let (blocks, transposed, format) = (gemm.blocks(), gemm.transposed, gemm.format);
    LibraryKernel::call(Library::Blas, move |units, args| {
        let size = |index| u32_at(args, index);
        let [rows, columns, depth] = [size(3)?, size(4)?, size(5)?];
        let place = |index| u64_at(args, index);
        let distance = [place(6)?, place(7)?, place(8)?];
        let before = units.start / blocks.max(1);
        let batch = (units.end / blocks.max(1)).saturating_sub(before);
        let batch = u32::try_from(batch).ok()?;
        let matrix = |argument: usize, first: u64, stride: u32| Operand {
            argument,
            first: first + before * distance[argument],
            stride,
        };
        let call = LibraryCall::Gemm {
            precision: format.into(),
            result: format.element(),
            rows,
            columns,
            depth,
            transposed,
            alpha: 1.0,
            beta: 0.0,
            a: matrix(0, place(9)?, depth),
            b: matrix(1, place(10)?, if transposed { depth } else { columns }),
            c: matrix(2, 0, columns),
            batch,
            distance,
        };
        let sizes = [rows, columns, depth, batch];
        are_sizes(&sizes).then(|| (call, sizes.map(u64::from).to_vec()))
    })
}

/// The compile-time sizes of `kernels/gemm.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows and columns of C that a work-group computes.
    pub rows: u32,
    pub columns: u32,
    /// Columns of A, and rows of B, in local memory at once.
    pub depth: u32,
    /// Rows and columns of C that a work-item computes, multiples of 4.
    pub item_rows: u32,
    pub item_columns: u32,
}

const fn tile(rows: u32, columns: u32, depth: u32, item_rows: u32, item_columns: u32) -> Tile {
    Tile {
        rows,
        columns,
        depth,
        item_rows,
        item_columns,
    }
}

/// The tiles to choose from, the largest first.
pub const TILES: [Tile; 12] = [
    tile(128, 256, 8, 8, 16),
    tile(128, 128, 8, 8, 8),
    tile(128, 128, 16, 8, 8),
    tile(128, 64, 8, 8, 8),
    tile(128, 64, 16, 8, 8),
    tile(64, 128, 16, 8, 8),
    tile(64, 64, 16, 8, 8),
    tile(64, 64, 8, 8, 4),
    tile(64, 64, 16, 8, 4),
    tile(64, 64, 16, 4, 4),
    tile(32, 64, 16, 4, 4),
    tile(32, 32, 16, 4, 4),
];

/// For devices whose groups are small.
const SMALL_GROUP: &Tile = &tile(32, 64, 16, 8, 8);

/// For many work-groups: the most arithmetic on registers.
const LARGE: &Tile = &TILES[2];

/// For fewer: as many numbers a work-item, in groups of half the size.
const MIDDLE: &Tile = &TILES[5];

/// For few: more groups, of fewer numbers each.
const SMALL: &Tile = &TILES[8];

/// For very few.
const LEAST: &Tile = &TILES[11];

/// The groups that fill a large GPU, such as the 132 multiprocessors of an H200: two
/// each of the large tiles, one of the middle ones. A single product of small tiles
/// does not fill it, but several at once on several queues do.
const LARGE_GROUPS: u64 = 256;
const MIDDLE_GROUPS: u64 = 128;
const SMALL_GROUPS: u64 = 32;

impl Tile {
    /// The tile for these sizes: the largest that still makes enough groups. Measured on an H200 launch by launch, in TFLOP/s
    /// (the others' best in brackets): 16 of 512 rows 41 (40), 48 of 256 rows 37
    /// (36), 16 of 256 rows 27 (27), single ones of 512 rows on eight queues 34
    /// (35) and on one queue 12 (15).
    pub fn of(gemm: &Gemm) -> &'static Self {
        let choice = [
            (LARGE, LARGE_GROUPS),
            (MIDDLE, MIDDLE_GROUPS),
            (SMALL, SMALL_GROUPS),
        ];
        let enough = |(tile, least): &&(&Self, u64)| tile.groups(gemm) >= *least;
        choice.iter().find(enough).map_or(LEAST, |(tile, _)| tile)
    }

    /// Work-items of a group.
    pub fn items(&self) -> u32 {
        (self.rows / self.item_rows) * (self.columns / self.item_columns)
    }

    /// Work-groups of a product.
    pub fn groups(&self, gemm: &Gemm) -> u64 {
        let [across, down] = self.grid(gemm);
        across * down * u64::from(gemm.batch)
    }

    /// Work-groups across and down one C.
    fn grid(&self, gemm: &Gemm) -> [u64; 2] {
        [
            gemm.columns.div_ceil(self.columns).into(),
            gemm.rows.div_ceil(self.rows).into(),
        ]
    }

    /// Whether tiles and stages divide the sizes, so that nothing is guarded.
    fn divides(&self, gemm: &Gemm) -> bool {
        gemm.rows.is_multiple_of(self.rows)
            && gemm.columns.is_multiple_of(self.columns)
            && gemm.depth.is_multiple_of(self.depth)
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = format!(
            "{}x{}x{}/{}x{}",
            self.rows, self.columns, self.depth, self.item_rows, self.item_columns
        );
        f.pad(&text)
    }
}

/// Blocks of many small matrices are divided among threads by matrices, those of few
/// matrices within them.
const MANY: usize = 4;

/// `C = A B`, or `C = A B^T`.
///
/// # Safety
/// That of `HostKernel`.
unsafe fn multiply<T: Product, const TRANSPOSED: bool>(
    args: &[HostValue],
    _first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let args = Arguments {
        codelet: "gemm",
        values: args,
    };
    let (rows, columns, depth) = (args.u32(3), args.u32(4), args.u32(5));
    let distance = [args.u64(6), args.u64(7), args.u64(8)];
    let block = BLOCK as usize;
    let across = columns.div_ceil(block).max(1);
    let blocks = (rows.div_ceil(block) * across).max(1);
    let units = units.start as usize..units.end as usize;
    let matrices = units.start / blocks..units.end.div_ceil(blocks);
    let b_stride = if TRANSPOSED { depth } else { columns };
    // SAFETY: the memories hold the matrices that are skipped.
    let (a, b) = unsafe {
        (
            args.memory::<T>(0).add(args.u64(9)),
            args.memory::<T>(1).add(args.u64(10)),
        )
    };
    let [a, b, c] = [(a, depth), (b, b_stride), (args.memory(2), columns)]
        .map(|(first, stride)| Matrix::<T>::new(first, stride));
    let multiply_one = |matrix: usize, threads: usize| {
        let [a, b, c] = [(a, distance[0]), (b, distance[1]), (c, distance[2])]
            .map(|(of, distance)| of.skip(matrix * distance));
        let within = |unit: usize| unit.clamp(matrix * blocks, (matrix + 1) * blocks);
        let of_matrix = within(units.start) - matrix * blocks..within(units.end) - matrix * blocks;
        for (down, right) in rectangles(of_matrix, across) {
            let down = down.start * block..(down.end * block).min(rows);
            let right = right.start * block..(right.end * block).min(columns);
            let size = (down.len(), right.len(), depth);
            let of = (
                a.from(down.start, 0),
                b.beginning_at(right.start, TRANSPOSED),
                TRANSPOSED,
            );
            let c = c.from(down.start, right.start);
            // SAFETY: the matrices hold these rows and columns, and only this call touches
            // these of C.
            unsafe { T::multiply_on(c, threads, size, of) }
        }
    };
    if matrices.len() < MANY * threads {
        matrices.for_each(|matrix| multiply_one(matrix, threads));
        return;
    }
    let count = MANY * threads;
    for_each_piece(threads, count, |number| {
        for matrix in piece(matrices.len(), 1, number, count) {
            multiply_one(matrices.start + matrix, 1);
        }
    });
}

/// The OpenCL opencl_kernel of a product, with this tile.
pub fn opencl_kernel(gemm: &Gemm, tile: &Tile) -> OpenClKernel {
    tiled(gemm, tile).or(tiled(gemm, SMALL_GROUP))
}

fn tiled(gemm: &Gemm, tile: &Tile) -> OpenClKernel {
    let (gemm, tile) = (*gemm, *tile);
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../kernels/stored.h"),
                include_str!("../../kernels/gemm.cl")
            ),
            "kernels/gemm.cl",
            "gemm",
            options(&gemm, &tile),
        ),
        fp64: false,
        shape: Shape::with(move |units, _: &[Value]| groups(&gemm, &tile, units)),
    }
}

fn options(gemm: &Gemm, tile: &Tile) -> String {
    let quads = gemm.columns.is_multiple_of(4) && gemm.depth.is_multiple_of(4);
    format!(
        "{} -DTM={} -DTN={} -DTK={} -DWM={} -DWN={} -DWHOLE={} -DQUADS={} -DTRANSPOSED={}",
        gemm.format.option(),
        tile.rows,
        tile.columns,
        tile.depth,
        tile.item_rows,
        tile.item_columns,
        u8::from(tile.divides(gemm)),
        u8::from(quads),
        u8::from(gemm.transposed),
    )
}

/// A group a tile, a layer of groups a matrix. The matrices of these units
/// only: the layers' numbers begin with the first.
fn groups(gemm: &Gemm, tile: &Tile, units: &Range<u64>) -> NdRange {
    let blocks = gemm.blocks().max(1);
    let [across, down] = tile.grid(gemm);
    let items = tile.items() as usize;
    let matrices = (units.end - units.start) / blocks;
    NdRange::new(vec![
        across as usize * items,
        down as usize,
        matrices as usize,
    ])
    .exactly(vec![items, 1, 1])
    .starting_at(vec![0, 0, (units.start / blocks) as usize])
}

#[cfg(test)]
mod tests {
    use crate::gemm::TILES;

    use super::*;

    #[test]
    fn every_tile_is_what_the_kernel_can() {
        assert_eq!(SMALL_GROUP.items() as usize, crate::LEAST_GROUP);
        for tile in TILES.iter().chain([SMALL_GROUP]) {
            let (across, down) = (tile.columns / tile.item_columns, tile.rows / tile.item_rows);
            assert!(across.is_multiple_of(8) && down.is_multiple_of(4), "{tile}");
            assert!(tile.item_rows.is_multiple_of(4) && tile.item_columns.is_multiple_of(4));
            for side in [tile.rows, tile.columns] {
                let reads = side * tile.depth / 4;
                assert!(
                    reads >= tile.items() && reads.is_multiple_of(tile.items()),
                    "{tile}"
                );
            }
            // What every OpenCL GPU has: 256 work-items, 32 KiB, NVIDIA's 48.
            let local = 2 * tile.depth * (tile.rows + tile.columns + 8) * 4;
            assert!(tile.items() <= 256 && local <= 48 << 10, "{tile}");
        }
    }

    #[test]
    fn tiles_shrink_with_the_work() {
        let chosen = |size, batch| Tile::of(&Gemm::square(size).batch(batch)).to_string();
        assert_eq!(chosen(512, 16), "128x128x16/8x8");
        assert_eq!(chosen(256, 48), "64x128x16/8x8");
        assert_eq!(chosen(512, 1), "64x64x16/8x4");
        assert_eq!(chosen(256, 16), "64x128x16/8x8");
        assert_eq!(chosen(64, 1), "32x32x16/4x4");
    }

    #[test]
    fn a_launch_covers_the_matrices_of_its_units() {
        // 4 blocks a matrix.
        let gemm = Gemm::square(100).batch(3);
        assert_eq!(gemm.units(), 12);
        let tile = &TILES[11];
        let sizes = groups(&gemm, tile, &(4..12));
        assert_eq!(sizes.global, [4 * 64, 4, 2]);
        assert_eq!(sizes.offset, Some(vec![0, 0, 1]));
    }

    #[test]
    fn guards_are_only_where_sizes_need_them() {
        let of = |size| options(&Gemm::square(size), &TILES[11]);
        assert!(of(64).contains("-DWHOLE=1"));
        assert!(of(100).contains("-DWHOLE=0 -DQUADS=1"));
        assert!(of(101).contains("-DWHOLE=0 -DQUADS=0"));
    }
}
