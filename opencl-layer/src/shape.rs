//! The shapes of launches, and which of them a place can run.

use std::ptr;

use opencl_sys::*;

use crate::kernel::Kernel;
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

    /// Whether a kernel can be launched so at a place, as drivers check it. What is recorded
    /// goes to a driver after the program's call, which must tell.
    pub fn check(&self, kernel: &Kernel, place: usize) -> Fallible<()> {
        let Some(local) = &self.local else {
            return Ok(());
        };
        let most = kernel.group_limit(place).unwrap_or(usize::MAX);
        if local.contains(&0) {
            // Drivers disagree.
            return Ok(());
        }
        let items = local
            .iter()
            .try_fold(1_usize, |all, one| all.checked_mul(*one));
        let fits = items.is_some_and(|items| items <= most);
        let mut pairs = self.global.iter().zip(local);
        if !fits || !pairs.all(|(global, local)| global % local == 0) {
            return Err(CL_INVALID_WORK_GROUP_SIZE);
        }
        match kernel.required_group(place) {
            Some(required) if !required.iter().zip(local).all(|(own, local)| own == local) => {
                Err(CL_INVALID_WORK_GROUP_SIZE)
            }
            _ => Ok(()),
        }
    }
}

impl Kernel {
    /// The size of groups that the kernel's text requires.
    fn required_group(&self, place: usize) -> Option<[usize; 3]> {
        let mut required = [0_usize; 3];
        let (size, value) = (size_of_val(&required), ptr::from_mut(&mut required).cast());
        self.ask_place(place, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, size, value)
            .ok()?;
        (required != [0; 3]).then_some(required)
    }
}
