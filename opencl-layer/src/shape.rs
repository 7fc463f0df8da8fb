//! The shapes of launches, and launches cut in blocks of groups.

use std::ops::Range;

use opencl_sys::*;
use pdawl_api::workload::kernel::Axis;

use crate::form::Form;
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

/// Blocks of a launch at most. Shares are as fine as a sixty-fourth.
const MOST: u64 = 64;

/// Work-items of a group along the first dimension at most, where the program leaves the
/// group's size to the driver. Every device can run so many.
const GROUP: usize = 64;

/// A way to divide a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The blocks are its units.
    pub axis: Axis,
    global: Vec<usize>,
    local: Vec<usize>,
}

/// The group's size of a launch's parts: the launch's own, or one that divides its range.
pub fn local_size(shape: &Shape) -> Vec<usize> {
    if let Some(local) = &shape.local {
        return local.clone();
    }
    let mut local = vec![1; shape.global.len()];
    if let (Some(one), Some(size)) = (local.first_mut(), shape.global.first()) {
        *one = 1 << size.trailing_zeros().min(GROUP.trailing_zeros());
    }
    local
}

impl Cut {
    /// The ways to divide a launch: along each axis with several groups, the slowest first.
    pub fn all(shape: &Shape) -> Vec<Self> {
        let local = local_size(shape);
        let dimensions = shape.global.len();
        let whole = |axis: usize| local[axis] > 0 && shape.global[axis].is_multiple_of(local[axis]);
        if local.len() != dimensions || !(0..dimensions).all(whole) {
            return Vec::new();
        }
        let cut = |dimension: usize| {
            let (extent, group) = (shape.global[dimension], local[dimension]);
            Self {
                axis: Axis::new(dimension, extent as u64, group as u64, MOST),
                global: shape.global.clone(),
                local: local.clone(),
            }
        };
        // A launch may have no work-items at all.
        let has_several = |axis: &usize| shape.global[*axis] > local[*axis];
        let axes = (0..dimensions).rev().filter(has_several);
        axes.map(cut).collect()
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.axis.units()
    }

    /// The form of the program for the parts.
    pub fn form(&self) -> Form {
        let dimensions = self.global.len();
        Form::Part {
            axis: self.axis.dimension,
            dimensions,
            extent: (dimensions == 3).then_some(self.axis.extent),
        }
    }

    /// The work-items of a group.
    pub fn items_of_group(&self) -> usize {
        self.local.iter().product()
    }

    /// The groups along the axis of some blocks.
    pub fn groups_of(&self, blocks: &Range<u64>) -> usize {
        let items = self.axis.items(blocks);
        (items.end - items.start) as usize / self.local[self.axis.dimension]
    }

    /// The launch of some blocks, for the program's form.
    pub fn part(&self, blocks: &Range<u64>) -> Shape {
        let (axis, items) = (self.axis.dimension, self.axis.items(blocks));
        let mut offset = vec![0; self.global.len()];
        let (mut global, mut local) = (self.global.clone(), self.local.clone());
        offset[axis] = items.start as usize;
        global[axis] = (items.end - items.start) as usize;
        if global.len() < 3 {
            offset.push(self.global[axis]);
            global.push(1);
            local.push(1);
        }
        Shape {
            offset: Some(offset),
            global,
            local: Some(local),
        }
    }

    /// The part of `bytes` bytes that belongs to some blocks; `None` if a block's part is no
    /// whole number of bytes.
    pub fn slice(&self, bytes: usize, blocks: &Range<u64>) -> Option<Range<usize>> {
        let slice = self.axis.slice(bytes as u64, blocks)?;
        Some(slice.start as usize..slice.end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(global: &[usize], local: Option<&[usize]>) -> Shape {
        Shape {
            offset: None,
            global: global.to_vec(),
            local: local.map(<[usize]>::to_vec),
        }
    }

    #[test]
    fn the_slowest_axis_with_several_groups_is_first() {
        let cuts = Cut::all(&shape(&[64, 8, 4], Some(&[8, 8, 1])));
        let axes: Vec<usize> = cuts.iter().map(|cut| cut.axis.dimension).collect();
        assert_eq!(axes, [2, 0]);
        assert!(Cut::all(&shape(&[64], Some(&[64]))).is_empty());
        assert!(Cut::all(&shape(&[10], Some(&[4]))).is_empty());
        assert!(Cut::all(&shape(&[0], Some(&[4]))).is_empty());
    }

    #[test]
    fn parts_and_slices_make_the_whole() {
        for groups in [2, 3, 63, 64, 65, 1000, 4096] {
            let cut = &Cut::all(&shape(&[groups * 8], Some(&[8])))[0];
            assert!(cut.blocks() <= MOST);
            let (mut items, mut bytes) = (0, 0);
            for block in 0..cut.blocks() {
                let part = cut.part(&(block..block + 1));
                assert_eq!(part.offset, Some(vec![items, groups * 8]));
                assert_eq!(
                    (&part.global[1..], part.local),
                    (&[1][..], Some(vec![8, 1]))
                );
                items += part.global[0];
                let slice = cut.slice(groups * 12, &(block..block + 1)).unwrap();
                assert_eq!(slice.start, bytes);
                bytes = slice.end;
            }
            assert_eq!((items, bytes), (groups * 8, groups * 12));
        }
        let cut = &Cut::all(&shape(&[3], Some(&[1])))[0];
        assert_eq!(cut.slice(4, &(0..1)), None);
    }

    #[test]
    fn a_driver_s_choice_is_made_for_it() {
        assert_eq!(local_size(&shape(&[96, 7], None)), [32, 1]);
        assert_eq!(local_size(&shape(&[1 << 20], None)), [64]);
        assert_eq!(local_size(&shape(&[7], None)), [1]);
    }
}
