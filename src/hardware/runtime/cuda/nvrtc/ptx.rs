//! PTX of NVRTC in the form in which NVIDIA's OpenCL compiler writes it, which
//! [`crate::runtime::cuda::ptx`] translates.
//!
//! The header (`header/`) leaves two marks that no other kernel has: arguments of 256 bytes
//! for local memory, and groups whose size along each axis is in the bits of one number.

/// The declaration of an argument in local memory.
const LOCAL: &str = ".param .align 256 .b8 ";
const LOCAL_SIZE: &str = "[256]";

/// Bits of each axis in the size of a group, as `language.cuh` writes them.
const AXIS: u32 = 11;

/// PTX as OpenCL's.
pub(super) fn as_of_opencl(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match local_argument(line).or_else(|| group(line)) {
            Some(line) => text.push_str(&line),
            None => text.push_str(line),
        }
    }
    text
}

fn local_argument(line: &str) -> Option<String> {
    let (before, rest) = line.split_once(LOCAL)?;
    let (name, after) = rest.split_once(LOCAL_SIZE)?;
    Some(format!(
        "{before}.param .u64 .ptr .shared .align 1 {name}{after}"
    ))
}

fn group(line: &str) -> Option<String> {
    let size = line.trim().strip_prefix(".maxntid ")?.split(',').next()?;
    let size: u32 = size.trim().parse().ok()?;
    let mask = (1 << AXIS) - 1;
    let [x, y, z] = [size & mask, size >> AXIS & mask, size >> (2 * AXIS)];
    Some(format!(".reqntid {x}, {y}, {z}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cuda::ptx::{Parameter, translate};

    const OF_NVRTC: &str = ".version 8.8
.target sm_90
.address_size 64
.visible .entry k(
\t.param .u64 k_param_0,
\t.param .align 256 .b8 k_param_1[256],
\t.param .align 16 .b8 k_param_2[16]
)
.maxntid 4210720, 1, 1
{
\tld.param.u64 \t%rd1, [k_param_1];
\tret;
}
";

    #[test]
    fn local_memory_and_groups_are_as_opencl_has_them() {
        let text = as_of_opencl(OF_NVRTC);
        assert!(
            text.contains(".param .u64 .ptr .shared .align 1 k_param_1,\n"),
            "{text}"
        );
        assert!(text.contains("\n)\n.reqntid 32, 8, 1\n{"), "{text}");
        assert_eq!(text.lines().count(), OF_NVRTC.lines().count());
        let kernels = translate(&text).unwrap().kernels;
        assert_eq!(kernels[0].group, Some([32, 8, 1]));
        assert_eq!(
            kernels[0].parameters,
            [
                Parameter::Value { bytes: 8 },
                Parameter::Local { bytes: 8 },
                Parameter::Value { bytes: 16 }
            ]
        );
    }

    #[test]
    fn other_lines_stay() {
        let plain = OF_NVRTC
            .replace("256", "128")
            .replace(".maxntid 4210720, 1, 1\n", "");
        assert_eq!(as_of_opencl(&plain), plain);
    }
}
