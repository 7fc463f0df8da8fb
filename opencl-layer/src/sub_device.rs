//! Parts of devices. A device of one member is divided by its driver; one that stands for
//! several is not divided.

use std::ptr;

use opencl_sys::*;

use crate::boundary::status;
use crate::device::Device;
use crate::drivers::RealDevice;
use crate::handle::{self, Ref};
use crate::status::{check, driver};

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
