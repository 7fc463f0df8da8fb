//! Sum and normalisation on OpenCL devices: a work-group a row.

use std::ops::Range;

use crate::codelet::{KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Work-items of a row.
const LANES: usize = 64;

/// The kernel for so many memories of summands.
pub(super) fn kernel(parts: usize) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            source(parts),
            "kernels/add_norm.cl",
            "add_norm",
            format!("-DLANES={LANES}"),
        ),
        fp64: false,
        shape: Shape::Of(rows),
    }
}

/// The file, behind the definitions of its summands.
fn source(parts: usize) -> String {
    let parameters: String = (0..parts)
        .map(|part| format!(", __global const float *restrict z{part}"))
        .collect();
    let summands: Vec<String> = (0..parts).map(|part| format!("z{part}[at]")).collect();
    format!(
        "#define Z_PARAMETERS {parameters}\n#define Z_SUM(at) ({})\n{}",
        summands.join(" + "),
        include_str!("../../../kernels/add_norm.cl")
    )
}

fn rows(units: &Range<u64>, _args: &[Value]) -> NdRange {
    NdRange::new(vec![(units.end - units.start) as usize * LANES])
        .exactly(vec![LANES])
        .starting_at(vec![units.start as usize * LANES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_summand_is_a_parameter_and_added() {
        let source = source(2);
        assert!(source.starts_with(
            "#define Z_PARAMETERS , __global const float *restrict z0, \
             __global const float *restrict z1\n#define Z_SUM(at) (z0[at] + z1[at])\n"
        ));
    }

    #[test]
    fn rows_count_from_the_first_unit() {
        let sizes = rows(&(3..5), &[]);
        assert_eq!(sizes.global, [2 * LANES]);
        assert_eq!(sizes.offset, Some(vec![3 * LANES]));
    }
}
