//! What a device allows a compiled kernel: the size of its groups, and local memory.

use cl3::kernel::{
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_LOCAL_MEM_SIZE,
    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_WORK_GROUP_SIZE,
    get_kernel_work_group_info,
};

use super::device::OpenDevice;
use super::handle::Kernel;
use crate::codelet::{KernelSource, LocalSize, NdRange};
use crate::runtime::RuntimeError;
use crate::runtime::group_size::{fit, refusal};

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
