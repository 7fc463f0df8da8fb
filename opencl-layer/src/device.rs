//! A device as programs see it: one real device, or one that stands for several.

use opencl_sys::*;

use crate::drivers::RealDevice;
use crate::handle::{Ref, kind};
use crate::settings::settings;
use crate::status::Fallible;

pub mod calls;

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

    /// A number that every member says.
    fn numbers<T: Copy + Default>(&self, what: cl_device_info) -> Fallible<Vec<T>> {
        self.members.iter().map(|one| one.number(what)).collect()
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
        let of = |member: &RealDevice| member.text(CL_DEVICE_EXTENSIONS);
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
        let of = |member: &RealDevice| member.text(CL_DEVICE_VENDOR);
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
