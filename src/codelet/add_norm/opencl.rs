//! Sum and normalisation on OpenCL devices: a work-group a row.

use crate::{KernelSource, LEAST_GROUP, NdRange, NumberFormat, OpenClKernel, Shape};

/// Work-items of a row.
const LANES: usize = 64;

/// The kernel for so many memories of summands of a format.
pub(super) fn kernel(parts: usize, format: NumberFormat) -> OpenClKernel {
    in_groups(LANES, parts, format).or(in_groups(LEAST_GROUP, parts, format))
}

fn in_groups(lanes: usize, parts: usize, format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            source(parts),
            "kernels/add_norm.cl",
            "add_norm",
            format!("{} -DLANES={lanes}", format.unmultiplied().option()),
        ),
        fp64: false,
        shape: Shape::with(move |units, _| NdRange::exact_group_per_unit(units, lanes)),
    }
}

/// The file, behind the definitions of its summands.
fn source(parts: usize) -> String {
    let each = |text: &dyn Fn(usize) -> String| (0..parts).map(text).collect::<String>();
    let memories = each(&|z| format!(", __global const stored *restrict z{z}"));
    let counts = each(&|z| format!(", uint n{z}"));
    let sums = each(&|z| format!(" SUM_OF(z{z}, n{z}, at)"));
    format!(
        "#define Z_PARAMETERS {memories}{counts}\n#define ADD_ALL(at){sums}\n{}",
        concat!(
            include_str!("../../../kernels/stored.h"),
            include_str!("../../../kernels/add_norm.cl")
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_summand_is_a_parameter_and_added() {
        let source = source(2);
        assert!(source.starts_with(
            "#define Z_PARAMETERS , __global const stored *restrict z0, \
             __global const stored *restrict z1, uint n0, uint n1\n\
             #define ADD_ALL(at) SUM_OF(z0, n0, at) SUM_OF(z1, n1, at)\n"
        ));
    }

    #[test]
    fn rows_count_from_the_first_unit() {
        let sizes = (kernel(1, NumberFormat::F32).steps(&(3..5), &[]))
            .remove(0)
            .1;
        assert_eq!(sizes.global, [2 * LANES]);
        assert_eq!(sizes.offset, Some(vec![3 * LANES]));
    }
}
