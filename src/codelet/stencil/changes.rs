//! The codelet that also finds the largest change of a point, the cells that it raises, and the
//! codelet that folds these.
//!
//! The codelet of several steps at once.

use std::ops::Range;

use crate::host::{Arguments, Magnitude};
use crate::{Codelet, Cost, HostCode, HostKernel, HostValue, Memory, Value};

use super::opencl::{self, GROUP, GROUP_3D, PLANES_PER_ITEM, ROWS_PER_ITEM};
use super::{Dimensions, Precision, Rule, host};

/// Cells that [`fold_changes()`] leaves, which are its units: enough work-groups to read the
/// others at the speed of a GPU's cache, and few cells to copy.
pub const FOLDED_CELLS: u64 = 128;

/// The codelet of a stencil that also finds the largest change of a point.
///
/// Its results are those of [`codelet()`](super::codelet), whose arguments are followed by one
/// more, `changes`: memory of at least [`change_cells`] cells.
pub fn changes(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    Codelet {
        name: format!("{}-changes", super::name(dimensions, precision, rule)).into(),
        host: Some(HostCode::Kernel(host::changes(dimensions, precision, rule))),
        opencl: Some(opencl::changes(dimensions, precision, rule)),
        library: None,
    }
}

/// Cells that launches of at most `count` units need, on any device: one for each unit, and one
/// for each work-group. A row has `nx` points and a plane `ny` rows, 1 in 2-D.
pub fn change_cells(dimensions: Dimensions, nx: u64, ny: u64, count: u64) -> u64 {
    let groups = match dimensions {
        Dimensions::Two => nx.div_ceil(GROUP as u64) * count.div_ceil(ROWS_PER_ITEM as u64),
        Dimensions::Three => {
            let [x, y] = GROUP_3D.map(|points| points as u64);
            nx.div_ceil(x) * ny.div_ceil(y) * count.div_ceil(PLANES_PER_ITEM as u64)
        }
    };
    groups.max(count)
}

/// The codelet that folds cells which launches of [`changes()`] raised to [`FOLDED_CELLS`], its
/// units, and clears them. The largest is among these. All units are computed by one launch, or
/// by several with the same arguments that follow one another.
///
/// | # | argument | type | meaning |
/// |---|---|---|---|
/// | 0 | `cells` | memory | what was raised; zeros afterwards |
/// | 1 | `largest` | memory | [`FOLDED_CELLS`] cells |
/// | 2 | `count` | u32 | cells that were raised |
/// | 3 | `first` | u32 | 1: `largest` is overwritten; 0: it is raised |
pub fn fold_changes(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    let run: HostKernel = precision.choose(fold::<f32>, fold::<f64>);
    Codelet {
        name: format!("{}-fold-changes", super::name(dimensions, precision, rule)).into(),
        host: Some(HostCode::Kernel(run)),
        opencl: Some(opencl::fold_changes(dimensions, precision, rule)),
        library: None,
    }
}

/// The arguments of [`fold_changes()`].
///
/// # Panics
/// When there are 2^32 cells or more: half a petabyte of points.
pub fn fold_args(cells: Memory, largest: Memory, count: u64, first: bool) -> Vec<Value> {
    vec![
        Value::Memory(cells),
        Value::Memory(largest),
        Value::U32(u32::try_from(count).expect("fewer than 2^32 cells")),
        Value::U32(first.into()),
    ]
}

/// Each cell is read and written once.
pub fn fold_cost(precision: Precision, count: u64) -> Cost {
    Cost {
        flops: 0.0,
        bytes: (2 * count * precision.bytes()) as f64,
    }
}

/// The native implementation of [`fold_changes()`].
///
/// # Safety
/// That of [`HostKernel`].
unsafe fn fold<T: Magnitude>(args: &[HostValue], first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "fold of a stencil's changes",
        values: args,
    };
    let (cells, largest) = (args.memory::<T::Bits>(0), args.memory::<T::Bits>(1));
    let (count, begins) = (args.u32(2), args.u32(3) != 0);
    for unit in units.start - first..units.end - first {
        // SAFETY: the memory has so many cells, and only this unit uses these of them.
        let of_unit = unsafe { &mut *largest.add(unit as usize) };
        if begins {
            *of_unit = T::Bits::default();
        }
        for cell in (unit as usize..count).step_by(FOLDED_CELLS as usize) {
            // SAFETY: the same.
            let cell = unsafe { &mut *cells.add(cell) };
            *of_unit = (*of_unit).max(std::mem::take(cell));
        }
    }
}

/// The largest change in the cells: 0 if there are none, and NaN if one is.
///
/// # Panics
/// When the bytes are not those of whole, aligned cells, which is a fault in the caller's code.
pub fn largest_change(precision: Precision, cells: &[u8]) -> f64 {
    match precision {
        Precision::F64 => f64::from_bits(largest(bytemuck::cast_slice(cells))),
        Precision::F32 => f32::from_bits(largest(bytemuck::cast_slice(cells))).into(),
    }
}

fn largest<B: Copy + Default + Ord>(cells: &[B]) -> B {
    cells.iter().copied().max().unwrap_or_default()
}

/// Operations at a processor's peak rate that take as long as one of a superstep of so many
/// steps, beside the time in which the grid is read and written once: a core does one after the
/// other. A peak counts fused multiplications and additions, of which a stencil has none. A Zen 4
/// core at 3.66 GHz computes 4.1 Gpoint/s in 2-D, and in 3-D 1.7 with up to eight steps, and
/// half of that with twice as many, where a tile's halo no longer fits its cache
/// (`cargo bench --bench host_stencil`).
pub fn superstep_flops(dimensions: Dimensions, steps: u32) -> f64 {
    match dimensions {
        Dimensions::Two => 2.8,
        Dimensions::Three => 5.0 * (f64::from(steps) / 8.0).max(1.0),
    }
}

/// The precision of the codelet of several steps at once that has this name; `None` if none has.
pub fn superstep_named(codelet: &str) -> Option<Precision> {
    let (stencil, _) = codelet.split_once("-superstep")?;
    let is = |precision: Precision| stencil.split('-').any(|part| part == precision.name());
    [Precision::F64, Precision::F32]
        .into_iter()
        .find(|p| is(*p))
}

/// The codelet that computes so many steps of a stencil at once. Memory is read and written
/// once for all of them.
///
/// Results agree bit for bit with those of as many launches of the stencil's own codelet, whose
/// arguments these are but for:
///
/// | # | argument | type | meaning |
/// |---|---|---|---|
/// | 0 | `from` | memory | present versions of `first - steps .. first + count + steps`, as far as the grid has these units |
/// | 1 | `to` | memory | versions of `first .. first + count` that are `steps` steps later |
/// | the last | `steps` | u32 | 1 or more, after the stencil's own |
///
/// `from` stays as it is. Other units' slots may hold anything.
///
/// How many steps are best: in 2-D about 16 to 32; in 3-D 4 to 8, since a tile's halo grows in
/// two directions.
pub fn superstep(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    Codelet {
        name: name(dimensions, precision, rule).into(),
        host: Some(HostCode::Shared(host::superstep(
            dimensions, precision, rule,
        ))),
        opencl: None,
        library: None,
    }
}

/// The codelet that computes so many steps and finds the largest change of the last one.
///
/// Its arguments are those of [`superstep()`], and after these `changes`, as
/// [`changes()`] has it.
pub fn superstep_changes(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    Codelet {
        name: format!("{}-changes", name(dimensions, precision, rule)).into(),
        host: Some(HostCode::Shared(host::superstep_changes(
            dimensions, precision, rule,
        ))),
        opencl: None,
        library: None,
    }
}

fn name(dimensions: Dimensions, precision: Precision, rule: Rule) -> String {
    format!("{}-superstep", super::name(dimensions, precision, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_work_groups_have_cells() {
        assert_eq!(change_cells(Dimensions::Two, 5, 1, 17), 17);
        assert_eq!(change_cells(Dimensions::Two, 129, 1, 17), 17);
        assert_eq!(change_cells(Dimensions::Two, 8192, 1, 17), 64 * 3);
        assert_eq!(change_cells(Dimensions::Three, 65, 9, 5), 2 * 3 * 2);
        assert_eq!(change_cells(Dimensions::Three, 9, 9, 0), 0);
    }

    #[test]
    fn a_fold_keeps_the_largest_and_clears_all() {
        for count in [0, 1, 127, 128, 129, 1000] {
            let mut cells: Vec<u64> = (0..count).map(|cell| (cell * 7919) % 1009).collect();
            let wanted = cells.iter().copied().max().unwrap_or_default();
            cells.push(u64::MAX);
            let mut largest = vec![u64::MAX; FOLDED_CELLS as usize];
            for (begins, wanted) in [(1, wanted), (0, wanted)] {
                let args = [
                    memory(&mut cells),
                    memory(&mut largest),
                    HostValue::U32(count as u32),
                    HostValue::U32(begins),
                ];
                for unit in 0..FOLDED_CELLS {
                    // SAFETY: both have so many cells.
                    unsafe { fold::<f64>(&args, 0, unit..unit + 1) };
                }
                assert_eq!(largest.iter().copied().max(), Some(wanted), "{count}");
                assert!(cells[..count as usize].iter().all(|cell| *cell == 0));
                assert_eq!(cells[count as usize], u64::MAX);
            }
        }
    }

    fn memory(cells: &mut [u64]) -> HostValue {
        HostValue::Memory {
            address: cells.as_mut_ptr().cast(),
            bytes: size_of_val(cells) as u64,
        }
    }

    #[test]
    fn the_largest_change_is_exact_and_keeps_nan() {
        let doubles = [0.5, 1e-300, f64::INFINITY].map(f64::to_bits);
        let of = |cells: &[u64]| largest_change(Precision::F64, bytemuck::cast_slice(cells));
        assert_eq!(of(&doubles[..2]), 0.5);
        assert_eq!(of(&doubles), f64::INFINITY);
        assert!(of(&[doubles[2], f64::NAN.to_bits(), 0]).is_nan());
        assert_eq!(of(&[]), 0.0);
        let singles = [1e-45f32, 0.1].map(f32::to_bits);
        let of = |cells: &[u32]| largest_change(Precision::F32, bytemuck::cast_slice(cells));
        assert_eq!(of(&singles), f64::from(0.1f32));
        assert_eq!(of(&singles[..1]), f64::from(1e-45f32));
    }

    #[test]
    fn names_tell_the_precision_of_supersteps() {
        for precision in [Precision::F64, Precision::F32] {
            for dimensions in [Dimensions::Two, Dimensions::Three] {
                for rule in [Rule::Mean, Rule::Weighted] {
                    let of = |codelet: Codelet| superstep_named(&codelet.name);
                    let several = superstep(dimensions, precision, rule);
                    assert_eq!(of(several), Some(precision));
                    let changes = superstep_changes(dimensions, precision, rule);
                    assert_eq!(of(changes), Some(precision));
                    let one = super::super::codelet(dimensions, precision, rule);
                    assert_eq!(of(one), None);
                }
            }
        }
    }
}
