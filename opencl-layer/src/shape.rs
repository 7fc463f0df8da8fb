//! The shapes of launches.

use opencl_sys::*;

use crate::status::Fallible;

/// The shape of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub offset: Option<Vec<usize>>,
    /// By dimension: the work-items. With a zero, the launch does nothing.
    pub global: Vec<usize>,
    pub local: Option<Vec<usize>>,
}

impl Shape {
    /// The shape that a program gives. No list of work-items means none, as since OpenCL 2.1;
    /// earlier drivers refuse both.
    ///
    /// # Safety
    /// Each list is null or valid for `dimensions` reads.
    pub unsafe fn new(
        dimensions: cl_uint,
        offset: *const usize,
        global: *const usize,
        local: *const usize,
    ) -> Fallible<Self> {
        if !(1..=3).contains(&dimensions) {
            return Err(CL_INVALID_WORK_DIMENSION);
        }
        let numbers = |list: *const usize| {
            // SAFETY: promised by the caller.
            let numbers = || unsafe { std::slice::from_raw_parts(list, dimensions as usize) };
            (!list.is_null()).then(|| numbers().to_vec())
        };
        Ok(Self {
            offset: numbers(offset),
            global: numbers(global).unwrap_or_else(|| vec![0; dimensions as usize]),
            local: numbers(local),
        })
    }
}
