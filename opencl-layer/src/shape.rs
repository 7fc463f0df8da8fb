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
        // SAFETY: promised by the caller.
        let given = unsafe { ShapeOf::new(dimensions, offset, global, local)? };
        Ok(Self {
            offset: given.offset,
            global: given.global.unwrap_or_else(|| vec![0; dimensions as usize]),
            local: given.local,
        })
    }
}

/// What a program gives of a shape. As that of launches on a device, it has the work-items and
/// the groups of each launch if it has none of its own.
#[derive(Clone, Debug)]
pub struct ShapeOf {
    dimensions: cl_uint,
    offset: Option<Vec<usize>>,
    pub global: Option<Vec<usize>>,
    pub local: Option<Vec<usize>>,
}

impl ShapeOf {
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
            dimensions,
            offset: numbers(offset),
            global: numbers(global),
            local: numbers(local),
        })
    }

    /// A shape that it allows: of one group, if it has no work-items of its own.
    pub fn one(&self) -> Shape {
        let items = self.global.as_ref().or(self.local.as_ref());
        Shape {
            offset: None,
            global: items.map_or_else(Vec::new, Vec::clone),
            local: self.local.clone(),
        }
    }

    /// The shape of a launch there.
    ///
    /// # Errors
    /// `CL_INVALID_WORK_DIMENSION` if the launch has work-items along other dimensions than
    /// the groups that they belong to.
    pub fn of(&self, launch: &Shape) -> Fallible<Shape> {
        if let Some(global) = &self.global {
            return Ok(Shape {
                offset: self.offset.clone(),
                global: global.clone(),
                local: self.local.clone(),
            });
        }
        if launch.global.len() != self.dimensions as usize {
            return Err(CL_INVALID_WORK_DIMENSION);
        }
        let or = |own: &Option<Vec<usize>>, other: &Option<Vec<usize>>| {
            own.as_ref().or(other.as_ref()).cloned()
        };
        Ok(Shape {
            offset: or(&self.offset, &launch.offset),
            global: launch.global.clone(),
            local: or(&self.local, &launch.local),
        })
    }
}
