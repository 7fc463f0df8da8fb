//! Kernels. One of ours has a kernel of a driver for each of the drivers' programs.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::{Arc, OnceLock};

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::answer::{Answer, Answers};
use crate::argument::{Argument, Kept, Takes};
use crate::boundary::{object, status};
use crate::context::Place;
use crate::device::Device;
use crate::domain::{Own, set_argument};
use crate::drivers::number;
use crate::form::{Form, ProgramKey};
use crate::handle::{Ref, kind};
use crate::lock::{ARGUMENTS, KERNEL, Mutex, SHAPES};
use crate::own_queue::Lane;
use crate::program::{Accesses, Program, SeparateGroups};
use crate::records::Records;
use crate::shape::{Shape, ShapeOf};
use crate::status::{Fallible, asking, check, driver};

/// A kernel.
pub struct Kernel {
    pub program: Ref<Program>,
    pub name: CString,
    count: usize,
    /// By argument: what the kernel takes.
    takes: Vec<Takes>,
    pub accesses: Accesses,
    /// By place: whether its driver has built the program, which is not built again while
    /// it has kernels.
    built: Vec<bool>,
    /// By place: the work-items of a group at most, as its driver says when it is asked.
    group_limits: Vec<OnceLock<Option<usize>>>,
    /// What is known of its launches.
    pub records: Records,
    args: Mutex<Vec<Option<(u64, Kept)>>, ARGUMENTS>,
    /// The shapes of launches at some places, whatever a launch says.
    shapes: Mutex<Vec<(usize, ShapeOf)>, SHAPES>,
    natives: Mutex<Vec<Native>, KERNEL>,
    /// What its text tells of running its groups separately; read when it is first wanted.
    separate_groups: OnceLock<Arc<SeparateGroups>>,
}

kind!(Kernel, CL_INVALID_KERNEL);

/// An argument as the program set it. Numbers tell one setting from the next.
#[derive(Clone)]
pub struct Set {
    pub number: u64,
    pub argument: Argument,
}

// SAFETY: a driver's handles may be used by every thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A driver's kernel.
struct Native {
    program: ProgramKey,
    kernel: Own,
    /// The numbers of its arguments' settings, and the places of memory objects.
    set: Vec<Option<(u64, usize)>>,
}

impl Kernel {
    pub fn new(program: Ref<Program>, name: CString) -> Fallible<Self> {
        let places = 0..program.context.places.len();
        let group_limits = places.clone().map(|_| OnceLock::new());
        let built = places.map(|place| program.is_built_for(place));
        program.count_kernels(1);
        let mut kernel = Self {
            count: 0,
            takes: Vec::new(),
            accesses: Accesses::default(),
            built: built.collect(),
            group_limits: group_limits.collect(),
            records: Records::default(),
            name,
            args: Mutex::default(),
            shapes: Mutex::default(),
            natives: Mutex::default(),
            separate_groups: OnceLock::new(),
            program,
        };
        let (native, table, _) = kernel.to_ask(kernel.any_place()?)?;
        let what = CL_KERNEL_NUM_ARGS;
        let count: cl_uint = number(asking!(table, clGetKernelInfo(native, what)))?;
        let takes = (0..count).map(|index| Takes::of(table, native, index));
        kernel.takes = takes.collect();
        kernel.count = count as usize;
        kernel.accesses = kernel.program.accesses(&kernel.name, kernel.count);
        *kernel.args.lock() = vec![None; kernel.count];
        Ok(kernel)
    }

    /// Sets the shape of launches at a place.
    pub fn set_shape(&self, place: usize, shape: ShapeOf) {
        let mut shapes = self.shapes.lock();
        shapes.retain(|(other, _)| *other != place);
        shapes.push((place, shape));
    }

    /// The shapes of launches by place, where they were set.
    pub fn shapes(&self) -> Vec<(usize, ShapeOf)> {
        self.shapes.lock().clone()
    }

    /// What its text tells of running its groups separately.
    pub fn separate_groups(&self) -> &SeparateGroups {
        let read = || self.program.separate_groups(&self.name, self.count);
        self.separate_groups.get_or_init(read)
    }

    /// The arguments as they are set now.
    ///
    /// # Errors
    /// `CL_INVALID_KERNEL_ARGS` if some are not.
    pub fn arguments(&self) -> Fallible<Vec<Set>> {
        let args = self.args.lock();
        let set = |arg: &Option<(u64, Kept)>| {
            let (number, kept) = arg.as_ref()?;
            Some(Set {
                number: *number,
                argument: kept.get()?,
            })
        };
        let args: Option<Vec<Set>> = args.iter().map(set).collect();
        args.ok_or(CL_INVALID_KERNEL_ARGS)
    }

    /// The driver's kernel, made when it is first needed.
    fn native<'a>(
        &self,
        natives: &'a mut Vec<Native>,
        key: ProgramKey,
    ) -> Fallible<&'a mut Native> {
        let known = natives.iter().position(|native| native.program == key);
        if let Some(index) = known {
            return Ok(&mut natives[index]);
        }
        let program = self.program.executable(key)?;
        let kernel = self.program.context.domains[key.domain].kernel(program, &self.name)?;
        natives.push(Native {
            program: key,
            kernel,
            set: Vec::new(),
        });
        natives.last_mut().ok_or(CL_INVALID_KERNEL)
    }

    /// Calls the driver of a queue with its kernel, whose arguments are set; some are
    /// replaced by other memory objects of the driver.
    pub fn with<T>(
        &self,
        lane: &Lane,
        form: Form,
        arguments: &[Set],
        replaced: &[(usize, cl_mem)],
        call: impl FnOnce(cl_kernel) -> Fallible<T>,
    ) -> Fallible<T> {
        let mut natives = self.natives.lock();
        let native = self.native(&mut natives, lane.program(form))?;
        native.set.resize(arguments.len(), None);
        for (index, set) in arguments.iter().enumerate() {
            let known = native.set[index];
            if known == Some((set.number, lane.place)) {
                continue;
            }
            set_native(lane, native.kernel.handle(), index, &set.argument)?;
            native.set[index] = Some((set.number, lane.place));
        }
        for (index, mem) in replaced {
            let value = (size_of::<cl_mem>(), ptr::from_ref(mem).cast());
            set_argument(lane.table, native.kernel.handle(), *index, value)?;
            native.set[*index] = None;
        }
        call(native.kernel.handle())
    }

    /// The kernel of a place's driver for questions, the driver's table and its device.
    fn to_ask(
        &self,
        place: usize,
    ) -> Fallible<(cl_kernel, &'static cl_icd_dispatch, cl_device_id)> {
        let context = &self.program.context;
        let Place { domain, real, .. } = &context.places[place];
        let mut natives = self.natives.lock();
        let native = self.native(&mut natives, ProgramKey::first(*domain))?;
        let table = context.domains[*domain].table;
        Ok((native.kernel.handle(), table, real.id))
    }

    /// Whether a place's driver has built its program.
    pub fn is_built_for(&self, place: usize) -> bool {
        self.built[place]
    }

    /// The work-items of a group at a place, at most, if its driver says it.
    pub fn group_limit(&self, place: usize) -> Option<usize> {
        *self.group_limits[place].get_or_init(|| self.ask_group_limit(place))
    }

    fn ask_group_limit(&self, place: usize) -> Option<usize> {
        let real = &self.program.context.places[place].real;
        match real.text(CL_DEVICE_VENDOR).starts_with("NVIDIA") {
            // Its driver launches larger groups than it says that a kernel may have.
            true => real.number(CL_DEVICE_MAX_WORK_GROUP_SIZE).ok(),
            false => self.ask_place(place, CL_KERNEL_WORK_GROUP_SIZE).ok(),
        }
    }

    /// Whether it can be launched so at a place, as drivers check it. What is recorded
    /// goes to a driver after the program's call, which must tell.
    pub fn check_shape(&self, shape: &Shape, place: usize) -> Fallible<()> {
        let Some(local) = &shape.local else {
            return Ok(());
        };
        let most = self.group_limit(place).unwrap_or(usize::MAX);
        if local.contains(&0) {
            // Drivers disagree.
            return Ok(());
        }
        let items = local
            .iter()
            .try_fold(1_usize, |all, one| all.checked_mul(*one));
        let fits = items.is_some_and(|items| items <= most);
        let mut pairs = shape.global.iter().zip(local);
        if !fits || !pairs.all(|(global, local)| global % local == 0) {
            return Err(CL_INVALID_WORK_GROUP_SIZE);
        }
        match self.required_group(place) {
            Some(required) if !required.iter().zip(local).all(|(own, local)| own == local) => {
                Err(CL_INVALID_WORK_GROUP_SIZE)
            }
            _ => Ok(()),
        }
    }

    /// The size of groups that the kernel's text requires.
    fn required_group(&self, place: usize) -> Option<[usize; 3]> {
        let required = self.ask_place(place, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
        required.ok().filter(|required| *required != [0; 3])
    }

    /// Asks a place's driver about groups of the kernel.
    fn ask_place<T: Copy + Default>(
        &self,
        place: usize,
        what: cl_kernel_work_group_info,
    ) -> Fallible<T> {
        let (native, table, id) = self.to_ask(place)?;
        number(asking!(table, clGetKernelWorkGroupInfo(native, id, what)))
    }

    /// A place whose driver has built the program.
    fn any_place(&self) -> Fallible<usize> {
        let place = self.built.iter().position(|built| *built);
        place.ok_or(CL_INVALID_PROGRAM_EXECUTABLE)
    }
}

/// Sets an argument of a driver's kernel.
fn set_native(lane: &Lane, kernel: cl_kernel, index: usize, argument: &Argument) -> Fallible<()> {
    let handle;
    let value: (usize, *const c_void) = match argument {
        Argument::Mem(mem) => {
            handle = mem.at(lane.place)?;
            (size_of::<cl_mem>(), (&raw const handle).cast())
        }
        Argument::Sampler(sampler) => {
            let native = sampler.natives[lane.domain].as_ref();
            handle = native.map(Own::handle).ok_or(CL_INVALID_SAMPLER)?;
            (size_of::<cl_sampler>(), (&raw const handle).cast())
        }
        Argument::Local(bytes) => (*bytes, ptr::null()),
        Argument::Bytes(bytes) => (bytes.len(), bytes.as_ptr().cast()),
    };
    set_argument(lane.table, kernel, index, value)
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.natives.get_mut().clear();
        self.program.count_kernels(-1);
    }
}

/// `clCreateKernel`.
pub unsafe extern "C" fn create_kernel(
    program: cl_program,
    name: *const c_char,
    code: *mut cl_int,
) -> cl_kernel {
    let make = || {
        let program = Ref::<Program>::of(program)?;
        if name.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the name.
        let name = unsafe { CStr::from_ptr(name) }.to_owned();
        Ok(Ref::new(Kernel::new(program, name)?).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCloneKernel`: another kernel of the program with the same arguments.
pub unsafe extern "C" fn clone_kernel(handle: cl_kernel, code: *mut cl_int) -> cl_kernel {
    let make = || {
        let kernel = Ref::<Kernel>::of(handle)?;
        let copy = Kernel::new(kernel.program.clone(), kernel.name.clone())?;
        let args = kernel.args.lock().clone();
        *copy.args.lock() = args;
        let shapes = kernel.shapes.lock().clone();
        *copy.shapes.lock() = shapes;
        Ok(Ref::new(copy).give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clSetKernelArg`.
pub unsafe extern "C" fn set_kernel_arg(
    handle: cl_kernel,
    index: cl_uint,
    size: usize,
    value: *const c_void,
) -> cl_int {
    status(|| {
        let kernel = Ref::<Kernel>::of(handle)?;
        if index as usize >= kernel.count {
            return Err(CL_INVALID_ARG_INDEX);
        }
        // SAFETY: OpenCL's promise about the value.
        let argument = unsafe { Argument::new(kernel.takes[index as usize], size, value)? };
        let place = match argument.only_place() {
            Some(place) => place,
            None => kernel.any_place()?,
        };
        let domain = kernel.program.context.places[place].domain;
        // The driver knows whether size and value are right.
        let lane = kernel.program.context.lane_for_questions(place);
        let mut natives = kernel.natives.lock();
        let native = kernel.native(&mut natives, ProgramKey::first(domain))?;
        set_native(&lane, native.kernel.handle(), index as usize, &argument)?;
        let mut args = kernel.args.lock();
        let number = args[index as usize]
            .as_ref()
            .map_or(0, |(number, _)| number + 1);
        let before = args[index as usize].replace((number, Kept::new(argument)));
        native.set.resize(kernel.count, None);
        native.set[index as usize] = Some((number, place));
        drop(args);
        drop(natives);
        // The last use of a memory object may end here; not under a lock.
        drop(before);
        Ok(())
    })
}

/// `clGetKernelInfo`.
impl Answers for Kernel {
    fn answer(kernel: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_KERNEL_FUNCTION_NAME => answer.bytes(kernel.name.as_bytes_with_nul()),
            CL_KERNEL_NUM_ARGS => answer.value(kernel.count as cl_uint),
            CL_KERNEL_REFERENCE_COUNT => answer.value(kernel.users()),
            CL_KERNEL_CONTEXT => answer.value(kernel.program.context.handle()),
            CL_KERNEL_PROGRAM => answer.value(kernel.program.handle()),
            CL_KERNEL_ATTRIBUTES => {
                let (native, table, _) = kernel.to_ask(kernel.any_place()?)?;
                answer.pass(asking!(table, clGetKernelInfo(native, what)))
            }
            _ => Err(CL_INVALID_VALUE),
        }
    }
}

/// `clGetKernelArgInfo`.
pub unsafe extern "C" fn get_kernel_arg_info(
    handle: cl_kernel,
    index: cl_uint,
    what: cl_kernel_arg_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let kernel = Ref::<Kernel>::of(handle)?;
        let (native, table, _) = kernel.to_ask(kernel.any_place()?)?;
        check(driver!(
            table,
            clGetKernelArgInfo(native, index, what, size, value, needed)
        ))
    })
}

/// `clGetKernelWorkGroupInfo`. A device that stands for several answers so that every one
/// of them can run the kernel.
pub unsafe extern "C" fn get_kernel_work_group_info(
    handle: cl_kernel,
    device: cl_device_id,
    what: cl_kernel_work_group_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let kernel = Ref::<Kernel>::of(handle)?;
        let context = &kernel.program.context;
        let device = match device.is_null() {
            true if context.devices.len() == 1 => context.devices[0].clone(),
            _ => Ref::<Device>::of(device)?,
        };
        if !context.devices.contains(&device) {
            return Err(CL_INVALID_DEVICE);
        }
        let mut places = context.places_of(&device);
        if places.iter().any(|place| kernel.is_built_for(*place)) {
            // Otherwise the driver knows what to answer.
            places.retain(|place| kernel.is_built_for(*place));
        }
        if what == CL_KERNEL_WORK_GROUP_SIZE {
            let sizes = places.iter().map(|place| kernel.ask_place(*place, what));
            let sizes: Vec<usize> = sizes.collect::<Fallible<_>>()?;
            let least = sizes.into_iter().min().unwrap_or(usize::MAX);
            // SAFETY: OpenCL's promises about both pointers.
            return unsafe { Answer::to(size, value, needed) }.value(least);
        }
        let place = *places.first().ok_or(CL_INVALID_PROGRAM_EXECUTABLE)?;
        let (native, table, id) = kernel.to_ask(place)?;
        check(driver!(
            table,
            clGetKernelWorkGroupInfo(native, id, what, size, value, needed)
        ))
    })
}
