//! Compiles kernels, once for every context.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use cl3::ext::{
    CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ADDRESS_LOCAL,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST,
    CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_NUM_ARGS,
};
use cl3::kernel::{
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_LOCAL_MEM_SIZE,
    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_WORK_GROUP_SIZE, create_kernel,
    get_kernel_arg_info, get_kernel_info, get_kernel_work_group_info,
};
use cl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_data,
};
use cl3::types::{cl_device_id, cl_int, cl_uint, cl_ulong};
use opencl3::device::Device;
use opencl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_INVALID_BUILD_OPTIONS, CL_INVALID_KERNEL_NAME,
};

use super::device::OpenDevice;
use super::handle::{Context, Kernel, Program};
use super::queue_program::option;
use super::warnings;
use super::warnings::is_pocl;
use crate::codelet::{
    AddressSpace, KernelArgument, KernelSource, LocalSize, NdRange, OpenClKernel,
};
use crate::runtime::RuntimeError;
use crate::runtime::driven::Code;
use crate::runtime::group_size::{fit, refusal};

/// Source and options, and the number of a queue's program.
type Key = ((Cow<'static, str>, Cow<'static, str>), u32);

/// A context and the programs built in it.
pub(super) struct Programs {
    pub context: Arc<Context>,
    /// Its devices, and whether they compute in double precision.
    devices: Vec<(cl_device_id, bool)>,
    built: HashMap<Key, Program>,
}

impl Programs {
    pub(super) fn new(context: Context, devices: Vec<(cl_device_id, bool)>) -> Self {
        Self {
            context: Arc::new(context),
            devices,
            built: HashMap::new(),
        }
    }

    /// A new kernel object for `device`, in double precision if the second part says so; builds
    /// its program of this number (see [`super::queue_program`]) for all devices of this context
    /// that can run it, the first time.
    pub(super) fn kernel(
        &mut self,
        (source, fp64): (&KernelSource, bool),
        number: u32,
        device: &OpenDevice,
    ) -> Result<Kernel, RuntimeError> {
        check_precision((source, fp64), device)?;
        let key = (source.program(), number);
        if !self.built.contains_key(&key) {
            let able = self
                .devices
                .iter()
                .filter(|(_, has_fp64)| *has_fp64 || !fp64);
            let able: Vec<cl_device_id> = able.map(|(id, _)| *id).collect();
            let program = build(&self.context, source, &option(number), &able)
                .map_err(|error| error.on(device, source))?;
            self.built.insert(key.clone(), program);
        }
        entry(&self.built[&key], source).map_err(|error| error.on(device, source))
    }

    /// A kernel's arguments, as the compiler for `device` reports them.
    pub(super) fn arguments(
        &self,
        kernel: &OpenClKernel,
        device: &OpenDevice,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        let source = &kernel.source;
        check_precision((source, kernel.fp64), device)?;
        let not_built = |error: NotBuilt| error.on(device, source);
        let options = " -cl-kernel-arg-info";
        let program = build(&self.context, source, options, &[device.id.id()]);
        let compiled = entry(&program.map_err(not_built)?, source).map_err(not_built)?;
        arguments(&compiled).map_err(|code| device.failed_at("clGetKernelArgInfo", code))
    }
}

/// Why there is no program or kernel.
pub(super) enum NotBuilt {
    /// What the compiler says.
    Refused(String),
    /// A call failed with this code.
    Failed(&'static str, cl_int),
}

impl NotBuilt {
    /// The error of a device.
    fn on(self, device: &OpenDevice, source: &KernelSource) -> RuntimeError {
        match self {
            Self::Refused(log) => refused(source, device, log),
            Self::Failed(call, code) => device.failed_at(call, code),
        }
    }
}

/// Builds a program for devices of a context.
pub(super) fn build(
    context: &Context,
    source: &KernelSource,
    more_options: &str,
    able: &[cl_device_id],
) -> Result<Program, NotBuilt> {
    let capability = capability(able);
    let options = CString::new(format!("{}{more_options}{capability}", source.options()))
        .map_err(|_| NotBuilt::Refused("the options hold a zero byte".to_owned()))?;
    let program = create_program_with_source(context.raw(), &[source.text()])
        .map(Program::new)
        .map_err(|code| NotBuilt::Failed("clCreateProgramWithSource", code))?;
    match build_program(program.raw(), able, &options, None, std::ptr::null_mut()) {
        Ok(()) => Ok(program),
        Err(code @ (CL_BUILD_PROGRAM_FAILURE | CL_INVALID_BUILD_OPTIONS)) => {
            let log = able
                .iter()
                .filter_map(|id| log_of(&program, *id))
                .next()
                .unwrap_or_else(|| format!("nothing; the driver answers {}", code.describe()));
            Err(NotBuilt::Refused(log))
        }
        Err(code) => Err(NotBuilt::Failed("clBuildProgram", code)),
    }
}

/// The option that tells kernels the least compute capability of NVIDIA devices, which
/// NVIDIA's compiler does not: what inline PTX may use depends on it.
fn capability(devices: &[cl_device_id]) -> String {
    let of = |id: &cl_device_id| {
        let device = Device::new(*id);
        let major = device.compute_capability_major_nv().ok()?;
        Some(10 * major + device.compute_capability_minor_nv().ok()?)
    };
    // Other drivers do not know the question.
    match devices.iter().filter_map(of).min() {
        Some(capability) => format!(" -DPDAWL_NV_CAPABILITY={capability}"),
        None => String::new(),
    }
}

/// The error of a kernel that this device's compiler does not accept. PoCL's log says nothing
/// of a cache that it cannot write.
fn refused(source: &KernelSource, device: &OpenDevice, mut log: String) -> RuntimeError {
    let of_pocl = is_pocl(&device.info.driver).then(warnings::fault);
    if let Some(fault) = of_pocl.flatten() {
        log = format!("{log}\n{fault}");
    }
    RuntimeError::Build {
        device: device.info.name.clone(),
        kernel: format!("{} ({})", source.entry(), source.file()),
        log,
    }
}

fn check_precision(
    (source, fp64): (&KernelSource, bool),
    device: &OpenDevice,
) -> Result<(), RuntimeError> {
    if fp64 && !device.info.fp64 {
        let log = "the device has no double precision (cl_khr_fp64); use single";
        return Err(refused(source, device, log.to_owned()));
    }
    Ok(())
}

/// The kernel object of a program's entry.
pub(super) fn entry(program: &Program, source: &KernelSource) -> Result<Kernel, NotBuilt> {
    let name = CString::new(source.entry())
        .map_err(|_| NotBuilt::Refused("the entry's name holds a zero byte".to_owned()))?;
    create_kernel(program.raw(), &name)
        .map(Kernel::new)
        .map_err(|code| match code {
            CL_INVALID_KERNEL_NAME => {
                NotBuilt::Refused(format!("it has no kernel named `{}`", source.entry()))
            }
            _ => NotBuilt::Failed("clCreateKernel", code),
        })
}

/// The compiler's log for a device, if not empty.
fn log_of(program: &Program, device: cl_device_id) -> Option<String> {
    let bytes = get_program_build_data(program.raw(), device, CL_PROGRAM_BUILD_LOG).ok()?;
    let log = String::from_utf8_lossy(&bytes);
    let log = log.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!log.is_empty()).then(|| log.to_owned())
}

/// The arguments of a kernel that was compiled with `-cl-kernel-arg-info`.
///
/// # Errors
/// The driver's code.
pub(super) fn arguments(kernel: &Kernel) -> Result<Vec<KernelArgument>, cl_int> {
    let count: cl_uint = get_kernel_info(kernel.raw(), CL_KERNEL_NUM_ARGS)?.into();
    (0..count).map(|index| argument(kernel, index)).collect()
}

fn argument(kernel: &Kernel, index: cl_uint) -> Result<KernelArgument, cl_int> {
    let ask = |what| get_kernel_arg_info(kernel.raw(), index, what);
    let address: cl_uint = ask(CL_KERNEL_ARG_ADDRESS_QUALIFIER)?.into();
    let qualifiers: cl_ulong = ask(CL_KERNEL_ARG_TYPE_QUALIFIER)?.into();
    let address = match address {
        CL_KERNEL_ARG_ADDRESS_GLOBAL => AddressSpace::Global,
        CL_KERNEL_ARG_ADDRESS_CONSTANT => AddressSpace::Constant,
        CL_KERNEL_ARG_ADDRESS_LOCAL => AddressSpace::Local,
        _ => AddressSpace::Private,
    };
    let text = |info: cl3::info_type::InfoType| {
        let text: String = info.into();
        text.trim_end_matches('\0').to_owned()
    };
    Ok(KernelArgument {
        name: text(ask(CL_KERNEL_ARG_NAME)?),
        address,
        type_name: text(ask(CL_KERNEL_ARG_TYPE_NAME)?),
        read_only: address == AddressSpace::Constant
            || qualifiers & cl_ulong::from(CL_KERNEL_ARG_TYPE_CONST) != 0,
    })
}

/// The limits of a kernel on one device.
pub(super) struct KernelLimits {
    /// Most work-items of a group.
    group: usize,
    /// Groups of multiples of so many work-items leave no lane idle.
    multiple: usize,
}

impl KernelLimits {
    /// Asks the driver about a compiled kernel.
    ///
    /// # Errors
    /// [`RuntimeError::Unfit`] for a kernel whose groups are of one size that is too large, or
    /// need more local memory than there is.
    pub(super) fn of(
        kernel: &Kernel,
        source: &KernelSource,
        device: &OpenDevice,
    ) -> Result<Self, RuntimeError> {
        let ask = |what| get_kernel_work_group_info(kernel.raw(), device.id.id(), what);
        let group = ask(CL_KERNEL_WORK_GROUP_SIZE)
            .map(usize::from)
            .map_err(|code| device.failed_at("clGetKernelWorkGroupInfo", code))?;
        // Zeros where the kernel requires no size.
        let required = ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE).map(Vec::<usize>::from);
        let required: usize = required.unwrap_or_default().iter().product();
        if required > group {
            let why = format!(
                "its groups have {required} work-items, and the device runs it with {group} at most"
            );
            return Err(unfit(source, device, &why));
        }
        let local = ask(CL_KERNEL_LOCAL_MEM_SIZE).map_or(0, u64::from);
        match device.id.local_mem_size() {
            Ok(has) if local > has => {
                let why =
                    format!("it needs {local} bytes of local memory, of which {has} are there");
                Err(unfit(source, device, &why))
            }
            _ => Ok(Self {
                group,
                multiple: ask(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE).map_or(1, usize::from),
            }),
        }
    }

    /// The local size for a launch; `None` leaves it to the driver.
    ///
    /// # Errors
    /// [`RuntimeError::Unfit`] for a size that the launch requires and cannot have.
    pub(super) fn local_size(
        &self,
        sizes: &NdRange,
        source: &KernelSource,
        device: &OpenDevice,
    ) -> Result<Option<Vec<usize>>, RuntimeError> {
        let axes = &device.group_limits;
        match &sizes.local {
            LocalSize::Any => Ok(None),
            LocalSize::Near(wanted) => {
                let limits = (self.group, self.multiple);
                Ok(Some(fit(&sizes.global, wanted, axes, limits)))
            }
            LocalSize::Exactly(wanted) => match refusal(&sizes.global, wanted, axes, self.group) {
                None => Ok(Some(wanted.clone())),
                Some(why) => Err(unfit(source, device, &why)),
            },
        }
    }
}

fn unfit(source: &KernelSource, device: &OpenDevice, why: &str) -> RuntimeError {
    RuntimeError::Unfit {
        device: device.info.name.clone(),
        why: format!("`{}` ({}): {why}", source.entry(), source.file()),
    }
}
