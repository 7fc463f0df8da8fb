//! Answers to the `clGet...Info` functions, also of later versions.

use std::ptr;

use libc::c_void;
use opencl_sys::*;

use crate::boundary::status;
use crate::handle::{Kind, Ref};
use crate::status::{Fallible, check};

/// A kind of object that answers to a function for questions; `Question` tells its functions
/// apart, if it has several.
pub trait Answers<Question = ()>: Kind {
    fn answer(object: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()>;
}

/// The function of a kind of objects for questions.
///
/// # Safety
/// As OpenCL promises about both pointers.
pub unsafe extern "C" fn get_info<T: Answers<Question>, Question>(
    handle: *mut c_void,
    what: cl_uint,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let object = Ref::<T>::of(handle)?;
        // SAFETY: promised by the caller.
        let answer = unsafe { Answer::to(size, value, needed) };
        T::answer(&object, what, answer)
    })
}

/// Where a program wants an answer: a buffer with its size, and where the answer's size
/// is written. Both are optional.
pub struct Answer {
    capacity: usize,
    value: *mut c_void,
    size: *mut usize,
}

impl Answer {
    /// # Safety
    /// `value` is null or valid for `capacity` written bytes; `size` is null or valid
    /// for a write.
    pub unsafe fn to(capacity: usize, value: *mut c_void, size: *mut usize) -> Self {
        Self {
            capacity,
            value,
            size,
        }
    }

    /// Answers with bytes.
    pub fn bytes(self, bytes: &[u8]) -> Fallible<()> {
        if !self.value.is_null() {
            if self.capacity < bytes.len() {
                return Err(CL_INVALID_VALUE);
            }
            // SAFETY: the buffer has `capacity` bytes, and a program's buffer does not
            // overlap ours.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.value.cast(), bytes.len()) };
        }
        if !self.size.is_null() {
            // SAFETY: promised by `to`. Programs pass numbers of 32 bits, too, which no
            // driver complains of.
            unsafe { self.size.write_unaligned(bytes.len()) };
        }
        Ok(())
    }

    /// Answers with one plain value: a number or a handle.
    pub fn value<T: Copy>(self, value: T) -> Fallible<()> {
        self.list(&[value])
    }

    /// Answers with the handle of an object, null if there is none.
    pub fn handle<T: Kind>(self, object: Option<&Ref<T>>) -> Fallible<()> {
        self.value(object.map_or(ptr::null_mut(), Ref::handle))
    }

    /// Answers with the handles of objects.
    pub fn handles<T: Kind>(self, objects: &[Ref<T>]) -> Fallible<()> {
        self.list(&objects.iter().map(Ref::handle).collect::<Vec<_>>())
    }

    /// Answers with plain values.
    pub fn list<T: Copy>(self, values: &[T]) -> Fallible<()> {
        // SAFETY: numbers and pointers, as all callers pass, have no padding.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        self.bytes(bytes)
    }

    /// Answers with a text that ends in a null byte.
    pub fn text(self, text: &str) -> Fallible<()> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(&bytes)
    }

    /// Fills the lists of bytes whose addresses the program gives, but for null ones. The program
    /// has asked for their lengths before.
    pub fn into_lists(self, lists: impl ExactSizeIterator<Item = Vec<u8>>) -> Fallible<()> {
        let bytes = size_of::<*mut u8>() * lists.len();
        if !self.value.is_null() {
            if self.capacity < bytes {
                return Err(CL_INVALID_VALUE);
            }
            for (index, list) in lists.enumerate() {
                // SAFETY: there is an address for each list.
                let to = unsafe { *self.value.cast::<*mut u8>().add(index) };
                if !to.is_null() {
                    // SAFETY: the program asked for the list's length before.
                    unsafe { ptr::copy_nonoverlapping(list.as_ptr(), to, list.len()) };
                }
            }
        }
        if !self.size.is_null() {
            // SAFETY: promised by `to`.
            unsafe { *self.size = bytes };
        }
        Ok(())
    }

    /// Lets a driver answer: `ask` gets the capacity, the buffer and where the size goes.
    pub fn pass(self, ask: impl FnOnce(usize, *mut c_void, *mut usize) -> cl_int) -> Fallible<()> {
        check(ask(self.capacity, self.value, self.size))
    }
}

// Answers to questions of later versions of OpenCL, by which programs find out what a platform
// of 1.2 lacks.

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
