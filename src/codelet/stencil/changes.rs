//! The codelet that also finds the largest change of a point, and the cells that it raises.

use super::opencl::{GROUP, GROUP_3D, PLANES_PER_ITEM, ROWS_PER_ITEM};
use super::{Dimensions, Precision, Rule, host, opencl};
use crate::codelet::{Codelet, HostCode};

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
}
