//! The checking codelet's OpenCL implementation: a kernel for each number of memories.

use std::fmt::Write;

use super::{FACTOR, Mix};
use crate::{KernelSource, NdRange, OpenClKernel, Shape};

/// The kernel's name; OpenCL C has a function `mix`.
const ENTRY: &str = "mix_bytes";

pub(super) fn kernel(mix: &Mix) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(source(mix), "kernels/mix.cl", ENTRY, ""),
        fp64: false,
        shape: Shape::Of(|_, _| NdRange::new(vec![1])),
    }
}

/// The text of `kernels/mix.cl` and the kernel.
fn source(mix: &Mix) -> String {
    let inputs = mix.reads + mix.updates;
    let (mut parameters, mut takes, mut gives) = (String::new(), String::new(), String::new());
    for memory in 0..inputs + mix.writes {
        let constant = if memory < mix.reads { "const " } else { "" };
        // Writing to a string never fails.
        let _ = write!(
            parameters,
            ", __global {constant}uchar *m{memory}, ulong bytes{memory}"
        );
        if memory < inputs {
            let _ = writeln!(
                takes,
                "    digest = take(digest, m{memory}, bytes{memory});"
            );
        }
        if memory >= mix.reads {
            let result = memory - mix.reads;
            let _ = writeln!(
                gives,
                "    give(digest, {result}, m{memory}, bytes{memory});"
            );
        }
    }
    format!(
        "{}\n__kernel void {ENTRY}(ulong number, uint reads, uint updates{parameters})\n{{\n    \
         ulong digest = number * {FACTOR}UL;\n{takes}{gives}}}\n",
        include_str!("../../../kernels/mix.cl")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_what_it_reads_and_gives_what_it_writes() {
        let text = source(&Mix {
            reads: 1,
            updates: 1,
            writes: 1,
        });
        let kernel = text.split("__kernel").nth(1).unwrap();
        let lines: Vec<&str> = kernel.lines().map(str::trim).collect();
        assert_eq!(
            lines[3..7],
            [
                "digest = take(digest, m0, bytes0);",
                "digest = take(digest, m1, bytes1);",
                "give(digest, 0, m1, bytes1);",
                "give(digest, 1, m2, bytes2);",
            ]
        );
        assert!(kernel.contains("__global const uchar *m0, ulong bytes0, __global uchar *m1"));
    }
}
