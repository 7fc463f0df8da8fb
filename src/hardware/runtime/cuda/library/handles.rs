//! Owners of the libraries' handles, one for each device, and of cuFFT's plans. A handle's
//! calls go to the stream that was set last, which is set before each.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute;

use super::functions::{Cublas, Cufft, Cusolver, Pointer, check};
use crate::codelet::library::Lines;
use crate::runtime::cuda::device::OpenDevice;
use crate::runtime::cuda::discover::attribute;
use crate::runtime::cuda::handle::Context;

/// Bytes of memory that cuBLAS may use on each queue, which NVIDIA's manual recommends for
/// GPUs of Hopper and later, and for earlier ones.
const ROOM: u64 = 32 << 20;
const EARLIER_ROOM: u64 = 4 << 20;

/// The major compute capability of Hopper.
const HOPPER: i32 = 9;

/// Plans of a device that are kept.
const MOST_PLANS: usize = 64;

/// cuBLAS on a device.
pub(super) struct Blas {
    pub functions: Arc<Cublas>,
    pub handle: Pointer,
    pub name: String,
    pub room: u64,
    context: Arc<Context>,
}

// SAFETY: a handle may be used from any thread, by one at a time; the backend, which has all of
// them, is one thread's.
unsafe impl Send for Blas {}
// SAFETY: as above.
unsafe impl Sync for Blas {}

impl Blas {
    pub(super) fn open(functions: Arc<Cublas>, device: &OpenDevice) -> Result<Self, String> {
        (device.context.make_current()).map_err(|failure| failure.describe())?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library writes a handle; a context is current.
        check("cublasCreate", unsafe { (functions.create)(&mut handle) })?;
        let what = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let capability = attribute(device.context.device(), what).unwrap_or(0);
        let mut blas = Self {
            functions,
            handle,
            name: String::new(),
            room: match capability >= HOPPER {
                true => ROOM,
                false => EARLIER_ROOM,
            },
            context: Arc::clone(&device.context),
        };
        let mut version = 0;
        // SAFETY: the handle is alive; the library writes a number.
        let code = unsafe { (blas.functions.version)(handle, &mut version) };
        check("cublasGetVersion", code)?;
        blas.name = format!("cublas-{version}");
        Ok(blas)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: the handle is owned by `self` alone.
            let _ = unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

/// cuSOLVER on a device.
pub(super) struct Solver {
    pub functions: Arc<Cusolver>,
    pub handle: Pointer,
    pub name: String,
    context: Arc<Context>,
}

// SAFETY: as for `Blas`.
unsafe impl Send for Solver {}
// SAFETY: as above.
unsafe impl Sync for Solver {}

impl Solver {
    pub(super) fn open(functions: Arc<Cusolver>, device: &OpenDevice) -> Result<Self, String> {
        (device.context.make_current()).map_err(|failure| failure.describe())?;
        let mut version = 0;
        // SAFETY: the library writes a number.
        let code = unsafe { (functions.version)(&mut version) };
        check("cusolverGetVersion", code)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library writes a handle; a context is current.
        let code = unsafe { (functions.create)(&mut handle) };
        check("cusolverDnCreate", code)?;
        Ok(Self {
            functions,
            handle,
            name: format!("cusolver-{version}"),
            context: Arc::clone(&device.context),
        })
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: the handle is owned by `self` alone.
            let _ = unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

/// What a plan is made for: the length and the number of lines, and where their numbers are,
/// counted from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub length: u32,
    pub lines: u32,
    /// From one number of a line to the next, and from one line to the next: of x and of y.
    strides: [u32; 4],
}

impl Shape {
    pub(super) fn new(length: u32, lines: u32, x: &Lines, y: &Lines) -> Self {
        Self {
            length,
            lines,
            strides: [x.stride, x.distance, y.stride, y.distance],
        }
    }
}

/// A plan of cuFFT's.
pub(super) struct Plan {
    pub functions: Arc<Cufft>,
    pub plan: i32,
    /// Bytes of memory that it needs.
    pub room: u64,
    context: Arc<Context>,
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: the plan is owned by `self` alone.
            let _ = unsafe { (self.functions.destroy)(self.plan) };
        }
    }
}

/// cuFFT on a device.
pub(super) struct Plans {
    functions: Arc<Cufft>,
    pub name: String,
    plans: HashMap<Shape, Arc<Plan>>,
}

impl Plans {
    pub(super) fn open(functions: Arc<Cufft>) -> Result<Self, String> {
        let mut version = 0;
        // SAFETY: the library writes a number.
        check("cufftGetVersion", unsafe {
            (functions.version)(&mut version)
        })?;
        Ok(Self {
            functions,
            name: format!("cufft-{version}"),
            plans: HashMap::new(),
        })
    }

    /// The plan of a shape, made when it is asked for the first time.
    pub(super) fn plan(
        &mut self,
        shape: Shape,
        context: &Arc<Context>,
    ) -> Result<Arc<Plan>, String> {
        if let Some(plan) = self.plans.get(&shape) {
            return Ok(Arc::clone(plan));
        }
        context
            .make_current()
            .map_err(|failure| failure.describe())?;
        let functions = &self.functions;
        let mut plan = 0;
        // SAFETY: the library writes a plan's number; a context is current.
        check("cufftCreate", unsafe { (functions.create)(&mut plan) })?;
        let mut plan = Plan {
            functions: Arc::clone(functions),
            plan,
            room: 0,
            context: Arc::clone(context),
        };
        // SAFETY: the plan is alive. Its memory is that of the queue.
        let code = unsafe { (functions.set_own_room)(plan.plan, 0) };
        check("cufftSetAutoAllocation", code)?;
        // The description of a call has sizes and strides that fit.
        let number = |number: u32| number as i32;
        let mut length = number(shape.length);
        // The extent of a line's dimension, which a transform of one dimension does not read.
        let mut extents = [length; 2];
        let [x_stride, x_distance, y_stride, y_distance] = shape.strides.map(number);
        let mut room = 0;
        let [of_x, of_y] = &mut extents;
        // SAFETY: the plan is alive; there is a length for its one dimension, and the library
        // writes the bytes that it needs.
        let code = unsafe {
            (functions.make_plan)(
                plan.plan,
                1,
                &mut length,
                of_x,
                x_stride,
                x_distance,
                of_y,
                y_stride,
                y_distance,
                COMPLEX_SINGLES,
                number(shape.lines),
                &mut room,
            )
        };
        check("cufftMakePlanMany", code)?;
        plan.room = room as u64;
        if self.plans.len() >= MOST_PLANS {
            // Launches keep theirs.
            self.plans.clear();
        }
        let plan = Arc::new(plan);
        self.plans.insert(shape, Arc::clone(&plan));
        Ok(plan)
    }
}

/// `CUFFT_C2C`.
const COMPLEX_SINGLES: i32 = 0x29;
