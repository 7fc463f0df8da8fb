//! The arguments of a compiled kernel, as its compiler reports them.

use cl3::ext::{
    CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ADDRESS_LOCAL,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST,
    CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_NUM_ARGS,
};
use cl3::kernel::{get_kernel_arg_info, get_kernel_info};
use cl3::types::{cl_int, cl_uint, cl_ulong};

use super::handle::Kernel;
use crate::codelet::{AddressSpace, KernelArgument};

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
