//! Answers to questions of later versions of OpenCL, by which programs find out what a platform
//! of 1.2 lacks.

use opencl_sys::*;

use crate::answer::Answer;
use crate::status::Fallible;

/// The version of the platform and of all devices.
const OURS: cl_version = number(1, 2);

/// A version as a number: ten bits for the major part, ten for the minor, twelve for the patch.
const fn number(major: cl_version, minor: cl_version) -> cl_version {
    major << 22 | minor << 12
}

/// Answers with the version.
pub fn ours(answer: Answer) -> Fallible<()> {
    answer.value(OURS)
}

/// Answers with names and their versions.
fn named<'a>(answer: Answer, names: impl Iterator<Item = (&'a str, cl_version)>) -> Fallible<()> {
    let entry = |(text, version): (&str, cl_version)| {
        let mut name = [0; CL_NAME_VERSION_MAX_NAME_SIZE];
        let last = name.len() - 1;
        for (to, from) in name[..last].iter_mut().zip(text.bytes()) {
            *to = from;
        }
        cl_name_version { version, name }
    };
    answer.list(&names.map(entry).collect::<Vec<_>>())
}

/// Answers with extensions, each of its first version.
pub fn extensions(answer: Answer, names: &str) -> Fallible<()> {
    named(
        answer,
        names.split_whitespace().map(|name| (name, number(1, 0))),
    )
}

/// Answers to a question about a device of which 1.2 knows nothing, as a device of 3.0 does that
/// has nothing optional.
pub fn of_device(what: cl_device_info, answer: Answer) -> Fallible<()> {
    match what {
        CL_DEVICE_NUMERIC_VERSION => ours(answer),
        CL_DEVICE_OPENCL_C_ALL_VERSIONS => {
            let versions = [0, 1, 2].map(|minor| ("OpenCL C", number(1, minor)));
            named(answer, versions.into_iter())
        }
        CL_DEVICE_ILS_WITH_VERSION
        | CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION
        | CL_DEVICE_OPENCL_C_FEATURES => named(answer, std::iter::empty()),
        CL_DEVICE_IL_VERSION | CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED => answer.text(""),
        CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES => {
            answer.value(CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP)
        }
        CL_DEVICE_ATOMIC_FENCE_CAPABILITIES => answer.value(
            CL_DEVICE_ATOMIC_ORDER_RELAXED
                | CL_DEVICE_ATOMIC_ORDER_ACQ_REL
                | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP,
        ),
        CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE | CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE => {
            answer.value(0_usize)
        }
        CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES
        | CL_DEVICE_SVM_CAPABILITIES
        | CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES => answer.value::<cl_bitfield>(0),
        CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS
        | CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE
        | CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE
        | CL_DEVICE_MAX_ON_DEVICE_QUEUES
        | CL_DEVICE_MAX_ON_DEVICE_EVENTS
        | CL_DEVICE_MAX_PIPE_ARGS
        | CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS
        | CL_DEVICE_PIPE_MAX_PACKET_SIZE
        | CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT
        | CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT
        | CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT
        | CL_DEVICE_MAX_NUM_SUB_GROUPS
        | CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS
        | CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT
        | CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT
        | CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT
        | CL_DEVICE_PIPE_SUPPORT => answer.value::<cl_uint>(0),
        _ => Err(CL_INVALID_VALUE),
    }
}
