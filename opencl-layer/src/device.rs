//! A device as programs see it: one real device, or one that stands for several.

use std::ptr;

use opencl_sys::*;

use crate::answer::Answer;
use crate::drivers::{RealDevice, device_text};
use crate::handle::{Ref, kind};
use crate::platform::platform;
use crate::settings::settings;
use crate::status::{Fallible, driver, status};
use crate::version;

/// A device.
pub struct Device {
    /// The devices that may run its commands; the first answers most questions.
    pub members: Vec<RealDevice>,
    /// What it says it is.
    pub kind: cl_device_type,
    /// The device of which it is a part.
    pub parent: Option<Ref<Device>>,
}

kind!(Device, CL_INVALID_DEVICE);

impl Device {
    /// A device that is one or several real ones.
    pub fn made_of(members: Vec<RealDevice>) -> Self {
        let kind = match settings().virtual_devices {
            Some(_) => settings().device_type,
            None => members[0].kind,
        };
        Self {
            members,
            kind,
            parent: None,
        }
    }

    fn ask(
        &self,
        member: usize,
        what: cl_device_info,
        size: usize,
        value: *mut libc::c_void,
        needed: *mut usize,
    ) -> cl_int {
        let RealDevice { driver, id, .. } = &self.members[member];
        driver!(
            driver.table,
            clGetDeviceInfo(*id, what, size, value, needed)
        )
    }

    /// A number that every member says.
    fn numbers<T: Copy + Default>(&self, what: cl_device_info) -> Fallible<Vec<T>> {
        let ask = |member: usize| {
            let mut number = T::default();
            let value = ptr::from_mut(&mut number).cast();
            crate::status::check(self.ask(member, what, size_of::<T>(), value, ptr::null_mut()))?;
            Ok(number)
        };
        (0..self.members.len()).map(ask).collect()
    }

    pub fn least<T: Copy + Default + Ord>(&self, what: cl_device_info) -> Fallible<T> {
        let numbers = self.numbers::<T>(what)?;
        numbers.into_iter().min().ok_or(CL_INVALID_DEVICE)
    }

    pub fn most<T: Copy + Default + Ord>(&self, what: cl_device_info) -> Fallible<T> {
        let numbers = self.numbers::<T>(what)?;
        numbers.into_iter().max().ok_or(CL_INVALID_DEVICE)
    }

    /// The bits that all members have.
    pub fn common(&self, what: cl_device_info) -> Fallible<cl_bitfield> {
        let bits = self.numbers::<cl_bitfield>(what)?;
        Ok(bits.into_iter().fold(!0, |all, bits| all & bits))
    }

    /// The extensions that all members have and that need nothing but a driver:
    /// what shares objects with other interfaces is left out.
    fn extensions(&self) -> String {
        let of = |member: &RealDevice| device_text(member.driver, member.id, CL_DEVICE_EXTENSIONS);
        let others: Vec<String> = self.members[1..].iter().map(of).collect();
        let first = of(&self.members[0]);
        let shared = |name: &&str| {
            let known = [
                "cl_khr_fp64",
                "cl_khr_fp16",
                "cl_khr_byte_addressable_store",
            ];
            let plain = name.starts_with("cl_khr_global_int32")
                || name.starts_with("cl_khr_local_int32")
                || name.starts_with("cl_khr_int64")
                || known.contains(name);
            plain
                && others
                    .iter()
                    .all(|other| other.split_whitespace().any(|o| o == *name))
        };
        let names: Vec<&str> = first.split_whitespace().filter(shared).collect();
        names.join(" ")
    }

    /// The vendor, if it is that of all members. Programs choose kernels by it that other
    /// vendors' devices may compute wrongly.
    fn vendor(&self) -> String {
        let of = |member: &RealDevice| device_text(member.driver, member.id, CL_DEVICE_VENDOR);
        let first = of(&self.members[0]);
        match self.members.iter().all(|member| of(member) == first) {
            true => first,
            false => "pdawl".to_owned(),
        }
    }

    /// The model's name, or those of all members.
    pub fn label(&self) -> String {
        match &self.members[..] {
            [one] => one.model.clone(),
            several => {
                let models: Vec<&str> = several.iter().map(|one| one.model.as_str()).collect();
                format!("pdawl: {}", models.join(" + "))
            }
        }
    }
}

/// `clGetDeviceInfo`.
pub unsafe extern "C" fn get_device_info(
    handle: cl_device_id,
    what: cl_device_info,
    size: usize,
    value: *mut libc::c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let device = Ref::<Device>::of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        info(&device, what, answer)
    })
}

fn info(device: &Ref<Device>, what: cl_device_info, answer: Answer) -> Fallible<()> {
    let no_handle: *mut libc::c_void = ptr::null_mut();
    match what {
        CL_DEVICE_TYPE => answer.value(device.kind),
        CL_DEVICE_PLATFORM => answer.value(platform().handle()),
        CL_DEVICE_NAME => answer.text(&device.label()),
        CL_DEVICE_VENDOR => answer.text(&device.vendor()),
        CL_DEVICE_VERSION => answer.text(concat!("OpenCL 1.2 pdawl ", env!("CARGO_PKG_VERSION"))),
        CL_DEVICE_OPENCL_C_VERSION => answer.text("OpenCL C 1.2 pdawl"),
        CL_DEVICE_EXTENSIONS => answer.text(&device.extensions()),
        CL_DEVICE_PARENT_DEVICE => {
            answer.value(device.parent.as_ref().map_or(no_handle, Ref::handle))
        }
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
            answer.pass(|size, value, needed| device.ask(0, what, size, value, needed))
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
            let member = device
                .members
                .iter()
                .position(RealDevice::has_images)
                .unwrap_or(0);
            answer.pass(|size, value, needed| device.ask(member, what, size, value, needed))
        }
        CL_DEVICE_MAX_WORK_ITEM_SIZES => answer.list(&work_item_sizes(device)?),
        CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE => answer.value(device.most::<usize>(what)?),
        CL_DEVICE_EXTENSIONS_WITH_VERSION => version::extensions(answer, &device.extensions()),
        0x104C..=0x1075 => version::of_device(what, answer),
        _ => answer.pass(|size, value, needed| device.ask(0, what, size, value, needed)),
    }
}

/// The least number of work-items by dimension.
fn work_item_sizes(device: &Device) -> Fallible<Vec<usize>> {
    let dimensions = device.least::<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)? as usize;
    let mut least = vec![usize::MAX; dimensions];
    for member in 0..device.members.len() {
        let bytes = crate::drivers::bytes(|size, value, needed| {
            device.ask(member, CL_DEVICE_MAX_WORK_ITEM_SIZES, size, value, needed)
        })?;
        let sizes = bytes.chunks_exact(size_of::<usize>());
        for (least, size) in least.iter_mut().zip(sizes) {
            let size = usize::from_ne_bytes(size.try_into().map_err(|_| CL_INVALID_VALUE)?);
            *least = size.min(*least);
        }
    }
    Ok(least)
}
