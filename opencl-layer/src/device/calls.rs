//! The functions of devices.

use std::ptr;

use opencl_sys::*;

use super::Device;
use crate::answer::{self, Answer, Answers};
use crate::boundary::status;
use crate::drivers;
use crate::drivers::RealDevice;
use crate::handle::{self, Ref};
use crate::platform::platform;
use crate::status::{Fallible, check, driver};

/// `clGetDeviceInfo`.
impl Answers for Device {
    fn answer(device: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_DEVICE_TYPE => answer.value(device.kind),
            CL_DEVICE_PLATFORM => answer.value(platform().handle()),
            CL_DEVICE_NAME => answer.text(&device.label()),
            CL_DEVICE_VENDOR => answer.text(&device.vendor()),
            CL_DEVICE_VERSION => {
                answer.text(concat!("OpenCL 1.2 pdawl ", env!("CARGO_PKG_VERSION")))
            }
            CL_DEVICE_OPENCL_C_VERSION => answer.text("OpenCL C 1.2 pdawl"),
            CL_DEVICE_EXTENSIONS => answer.text(&device.extensions()),
            CL_DEVICE_PARENT_DEVICE => answer.handle(device.parent.as_ref()),
            CL_DEVICE_REFERENCE_COUNT => match device.parent {
                Some(_) => answer.value(device.users()),
                None => answer.value::<cl_uint>(1),
            },
            CL_DEVICE_PARTITION_MAX_SUB_DEVICES
            | CL_DEVICE_PARTITION_PROPERTIES
            | CL_DEVICE_PARTITION_AFFINITY_DOMAIN
            | CL_DEVICE_PARTITION_TYPE
                if device.members.len() == 1 =>
            {
                answer.pass(device.members[0].asking(what))
            }
            CL_DEVICE_PARTITION_MAX_SUB_DEVICES => answer.value::<cl_uint>(0),
            CL_DEVICE_PARTITION_PROPERTIES => answer.value::<cl_device_partition_property>(0),
            CL_DEVICE_PARTITION_AFFINITY_DOMAIN => answer.value::<cl_bitfield>(0),
            CL_DEVICE_PARTITION_TYPE => answer.list::<cl_device_partition_property>(&[]),
            CL_DEVICE_BUILT_IN_KERNELS => answer.text(""),
            CL_DEVICE_QUEUE_PROPERTIES => answer.value(device.common(what)?),
            CL_DEVICE_SINGLE_FP_CONFIG
            | CL_DEVICE_DOUBLE_FP_CONFIG
            | CL_DEVICE_HALF_FP_CONFIG
            | CL_DEVICE_EXECUTION_CAPABILITIES => answer.value(device.common(what)?),
            CL_DEVICE_GLOBAL_MEM_SIZE
            | CL_DEVICE_MAX_MEM_ALLOC_SIZE
            | CL_DEVICE_LOCAL_MEM_SIZE
            | CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE => answer.value(device.least::<cl_ulong>(what)?),
            CL_DEVICE_MAX_WORK_GROUP_SIZE
            | CL_DEVICE_MAX_PARAMETER_SIZE
            | CL_DEVICE_PRINTF_BUFFER_SIZE => answer.value(device.least::<usize>(what)?),
            CL_DEVICE_MAX_CONSTANT_ARGS
            | CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF
            | CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE
            | CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF
            | CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE
            | CL_DEVICE_AVAILABLE
            | CL_DEVICE_COMPILER_AVAILABLE
            | CL_DEVICE_LINKER_AVAILABLE
            | CL_DEVICE_ENDIAN_LITTLE
            | CL_DEVICE_HOST_UNIFIED_MEMORY => answer.value(device.least::<cl_uint>(what)?),
            CL_DEVICE_MEM_BASE_ADDR_ALIGN | CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE => {
                answer.value(device.most::<cl_uint>(what)?)
            }
            // Images live at the first member that has them.
            CL_DEVICE_IMAGE_SUPPORT
            | CL_DEVICE_MAX_READ_IMAGE_ARGS
            | CL_DEVICE_MAX_WRITE_IMAGE_ARGS
            | CL_DEVICE_MAX_SAMPLERS
            | CL_DEVICE_IMAGE2D_MAX_WIDTH
            | CL_DEVICE_IMAGE2D_MAX_HEIGHT
            | CL_DEVICE_IMAGE3D_MAX_WIDTH
            | CL_DEVICE_IMAGE3D_MAX_HEIGHT
            | CL_DEVICE_IMAGE3D_MAX_DEPTH
            | CL_DEVICE_IMAGE_MAX_BUFFER_SIZE
            | CL_DEVICE_IMAGE_MAX_ARRAY_SIZE => {
                let members = &device.members;
                let member = members.iter().find(|one| one.has_images());
                answer.pass(member.unwrap_or(&members[0]).asking(what))
            }
            CL_DEVICE_MAX_WORK_ITEM_SIZES => answer.list(&work_item_sizes(device)?),
            CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => {
                answer.value(device.most::<usize>(what)?)
            }
            CL_DEVICE_EXTENSIONS_WITH_VERSION => answer::extensions(answer, &device.extensions()),
            0x104C..=0x1075 => answer::of_device(what, answer),
            _ => answer.pass(device.members[0].asking(what)),
        }
    }
}

/// The least number of work-items by dimension.
fn work_item_sizes(device: &Device) -> Fallible<Vec<usize>> {
    let dimensions = device.least::<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)? as usize;
    let mut least = vec![usize::MAX; dimensions];
    for member in &device.members {
        let sizes = drivers::words(member.asking(CL_DEVICE_MAX_WORK_ITEM_SIZES))?;
        for (least, size) in least.iter_mut().zip(sizes) {
            *least = size.min(*least);
        }
    }
    Ok(least)
}

// Parts of devices. A device of one member is divided by its driver; one that stands for
// several is not divided.

/// `clCreateSubDevices`.
pub unsafe extern "C" fn create_sub_devices(
    handle: cl_device_id,
    properties: *const cl_device_partition_property,
    entries: cl_uint,
    devices: *mut cl_device_id,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        let device = Ref::<Device>::of(handle)?;
        let [member] = &device.members[..] else {
            return Err(CL_INVALID_VALUE);
        };
        if properties.is_null() || (entries == 0 && !devices.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        let (table, id) = (member.driver.table, member.id);
        let (mut parts, none) = (0, ptr::null_mut());
        check(driver!(
            table,
            clCreateSubDevices(id, properties, 0, none, &mut parts)
        ))?;
        let make = || {
            let mut ids = vec![ptr::null_mut(); parts as usize];
            let (list, none) = (ids.as_mut_ptr(), ptr::null_mut());
            check(driver!(
                table,
                clCreateSubDevices(id, properties, parts, list, none)
            ))?;
            let part = |(index, id)| {
                let part = RealDevice {
                    id,
                    name: format!("{}.{index}", member.name),
                    ..member.clone()
                };
                Ref::new(Device {
                    members: vec![part],
                    kind: device.kind,
                    parent: Some(device.clone()),
                })
            };
            Ok(ids.into_iter().enumerate().map(part).collect())
        };
        // SAFETY: OpenCL's promises about the list and the number.
        unsafe { handle::give_all(parts as usize, (entries, devices, count), make) }
    })
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.parent.is_some() {
            for member in &self.members {
                let _ = driver!(member.driver.table, clReleaseDevice(member.id));
            }
        }
    }
}

/// `clRetainDevice`: the platform's own devices are always there.
pub unsafe extern "C" fn retain_device(handle: cl_device_id) -> cl_int {
    status(|| match Ref::<Device>::of(handle)?.parent {
        Some(_) => Ref::<Device>::retain(handle),
        None => Ok(()),
    })
}

/// `clReleaseDevice`.
pub unsafe extern "C" fn release_device(handle: cl_device_id) -> cl_int {
    status(|| match Ref::<Device>::of(handle)?.parent {
        Some(_) => Ref::<Device>::release(handle),
        None => Ok(()),
    })
}
