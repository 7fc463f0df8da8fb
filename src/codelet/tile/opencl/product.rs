//! Products and symmetric updates: `kernels/gemm_tile.cl`, whose macros depend on the
//! sizes.

use super::super::{GemmTile, SyrkTile};
use crate::{KernelSource, NdRange, OpenClKernel, Precision, ProductPrecision, Shape};

/// The compile-time sizes of a kernel. All need at most 32 KiB of local memory and 128
/// work-items, which GPUs have.
#[derive(Debug, PartialEq)]
struct Variant {
    /// Rows and columns of C that a work-group computes.
    rows: u32,
    columns: u32,
    /// Columns of A in local memory at once.
    depth: u32,
    /// Rows and columns of C that a work-item computes.
    item_rows: u32,
    item_columns: u32,
    /// Parts of the depth that are summed by different work-items.
    slices: u32,
    /// Whether operands are read from local memory a step ahead.
    early: bool,
}

/// For many work-groups in single precision.
const LARGE_F32: Variant = Variant {
    rows: 128,
    columns: 128,
    depth: 8,
    item_rows: 16,
    item_columns: 8,
    slices: 1,
    early: false,
};

/// For fewer: four times as many groups, of as many work-items.
const SMALL_F32: Variant = Variant {
    rows: 64,
    columns: 64,
    depth: 16,
    item_rows: 16,
    item_columns: 8,
    slices: 4,
    early: true,
};

/// For many work-groups in double precision.
const LARGE_F64: Variant = Variant {
    rows: 64,
    columns: 64,
    depth: 16,
    item_rows: 16,
    item_columns: 4,
    slices: 1,
    early: false,
};

/// For fewer: twice as many work-items.
const SMALL_F64: Variant = Variant {
    item_rows: 8,
    ..LARGE_F64
};

/// For devices whose groups are small, in either precision.
const SMALL_GROUP: Variant = Variant {
    rows: 64,
    columns: 64,
    depth: 8,
    item_rows: 16,
    item_columns: 8,
    slices: 1,
    early: false,
};

/// Groups of either single-precision variant that run at once on a large GPU: two on
/// each of the 132 multiprocessors of an H100 or H200.
const AT_ONCE: u64 = 264;

/// TFLOP/s of the single-precision variants where groups fill the GPU, measured on an
/// H200 and an H100.
const LARGE_RATE: f64 = 51.0;
const SMALL_RATE: f64 = 43.0;

/// Groups in double precision from which on the large variant is faster, measured on
/// an H200.
const LARGE_F64_GROUPS: u64 = 900;

impl Variant {
    /// The faster variant for a product of this size on a large GPU.
    fn of(size: &Size) -> &'static Self {
        // As many groups as run at once take the time of one, however few they are.
        let time = |variant: &Self, rate: f64| {
            let times = variant.groups(size).div_ceil(AT_ONCE);
            (times * u64::from(variant.rows * variant.columns)) as f64 / rate
        };
        let large = match size.precision.sums() {
            Precision::F32 => time(&LARGE_F32, LARGE_RATE) < time(&SMALL_F32, SMALL_RATE),
            Precision::F64 => LARGE_F64.groups(size) >= LARGE_F64_GROUPS,
        };
        match (size.precision.sums(), large) {
            (Precision::F32, true) => &LARGE_F32,
            (Precision::F32, false) => &SMALL_F32,
            (Precision::F64, true) => &LARGE_F64,
            (Precision::F64, false) => &SMALL_F64,
        }
    }

    /// Groups across and down C, or in one row those of its triangle.
    fn grid(&self, size: &Size) -> [u64; 2] {
        let across = size.columns.div_ceil(self.columns).into();
        let down = size.rows.div_ceil(self.rows).into();
        match size.symmetric {
            true => [across * (across + 1) / 2, 1],
            false => [across, down],
        }
    }

    fn groups(&self, size: &Size) -> u64 {
        self.grid(size).iter().product()
    }

    /// Work-items of a group.
    fn items(&self) -> u32 {
        (self.rows / self.item_rows) * (self.columns / self.item_columns) * self.slices
    }

    /// Whether no group needs bounds checks.
    fn divides(&self, size: &Size) -> bool {
        size.rows.is_multiple_of(self.rows)
            && size.columns.is_multiple_of(self.columns)
            && size.depth.is_multiple_of(self.depth)
    }
}

/// What the choice of a variant and the options depend on.
struct Size {
    precision: ProductPrecision,
    rows: u32,
    columns: u32,
    depth: u32,
    transposed: bool,
    symmetric: bool,
    aligned: bool,
}

/// The OpenCL kernel of a product.
pub(in super::super) fn product(tile: &GemmTile) -> OpenClKernel {
    kernel(&Size {
        precision: tile.precision,
        rows: tile.rows,
        columns: tile.columns,
        depth: tile.depth,
        transposed: tile.transposed,
        symmetric: false,
        aligned: tile.aligned,
    })
}

/// The OpenCL kernel of a symmetric update.
pub(in super::super) fn symmetric(tile: &SyrkTile) -> OpenClKernel {
    kernel(&Size {
        precision: tile.precision.into(),
        rows: tile.rows,
        columns: tile.rows,
        depth: tile.depth,
        transposed: true,
        symmetric: true,
        aligned: tile.aligned,
    })
}

fn kernel(size: &Size) -> OpenClKernel {
    by(size, Variant::of(size)).or(by(size, &SMALL_GROUP))
}

fn by(size: &Size, variant: &Variant) -> OpenClKernel {
    let [across, down] = variant.grid(size).map(|groups| groups as usize);
    let items = variant.items() as usize;
    OpenClKernel {
        source: KernelSource::new(
            source(size.precision),
            "kernels/gemm_tile.cl",
            match size.symmetric {
                true => "syrk_tile",
                false => "gemm_tile",
            },
            options(size, variant),
        ),
        fp64: size.precision == ProductPrecision::Double,
        shape: Shape::with(move |_, _| {
            NdRange::new(vec![across * items, down]).exactly(vec![items, 1])
        }),
    }
}

/// The source, behind the conversions of the formats.
fn source(precision: ProductPrecision) -> &'static str {
    match precision {
        ProductPrecision::Single(_) => concat!(
            include_str!("../../../../kernels/stored.h"),
            include_str!("../../../../kernels/gemm_tile.cl")
        ),
        ProductPrecision::Double => include_str!("../../../../kernels/gemm_tile.cl"),
    }
}

fn options(size: &Size, variant: &Variant) -> String {
    // Numbers of 16 bytes of C, as many of which a work-item reads at once of each matrix.
    let at_once = (16 / size.precision.sums().bytes()) as u32;
    let strides = [size.depth, size.columns];
    let aligned = size.aligned && strides.iter().all(|stride| stride.is_multiple_of(at_once));
    let (double, format) = match size.precision {
        ProductPrecision::Single(format) => (false, format.option()),
        ProductPrecision::Double => (true, ""),
    };
    format!(
        "{format} -DDOUBLE={} -DTENSOR={} -DTRANSPOSED={} -DSYRK={} -DTM={} -DTN={} -DTK={} -DWM={} \
         -DWN={} -DSLICES={} -DEARLY={} -DWHOLE={} -DALIGNED={}",
        u8::from(double),
        u8::from(double),
        u8::from(size.transposed),
        u8::from(size.symmetric),
        variant.rows,
        variant.columns,
        variant.depth,
        variant.item_rows,
        variant.item_columns,
        variant.slices,
        u8::from(variant.early),
        u8::from(variant.divides(size)),
        u8::from(aligned),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(precision: Precision, rows: u32) -> Size {
        Size {
            precision: precision.into(),
            rows,
            columns: rows,
            depth: rows,
            transposed: false,
            symmetric: false,
            aligned: true,
        }
    }

    #[test]
    fn every_variant_fits_every_gpu() {
        for (variant, bytes) in [
            (&LARGE_F32, 4),
            (&SMALL_F32, 4),
            (&LARGE_F64, 8),
            (&SMALL_F64, 8),
            (&SMALL_GROUP, 8),
        ] {
            let local = 2 * variant.depth * (variant.rows + variant.columns) * bytes;
            assert!(local <= 32 << 10 && variant.items() <= 128, "{variant:?}");
        }
        assert_eq!(SMALL_GROUP.items() as usize, crate::LEAST_GROUP);
    }

    #[test]
    fn large_products_have_large_groups() {
        let chosen = |precision, rows| Variant::of(&size(precision, rows));
        for small in [1, 512, 960, 1024, 1536] {
            assert_eq!(chosen(Precision::F32, small), &SMALL_F32, "{small}");
        }
        for large in [2048, 4096] {
            assert_eq!(chosen(Precision::F32, large), &LARGE_F32, "{large}");
            assert_eq!(chosen(Precision::F64, large), &LARGE_F64, "{large}");
        }
        assert_eq!(chosen(Precision::F64, 1536), &SMALL_F64);
    }

    #[test]
    fn guards_are_only_where_sizes_need_them() {
        let of = |rows| {
            kernel(&size(Precision::F32, rows))
                .source
                .options()
                .to_owned()
        };
        assert!(of(960).ends_with("-DWHOLE=1 -DALIGNED=1"));
        assert!(of(100).ends_with("-DWHOLE=0 -DALIGNED=1"));
        assert!(of(101).ends_with("-DWHOLE=0 -DALIGNED=0"));
    }

    #[test]
    fn a_launch_covers_the_tile() {
        let global = |size: &Size| kernel(size).steps(&(0..4), &[]).remove(0).1.global;
        let mut size = size(Precision::F64, 100);
        assert_eq!(global(&size), [2 * 128, 2]);
        (size.symmetric, size.transposed) = (true, true);
        assert_eq!(global(&size), [3 * 128, 1]);
    }
}
