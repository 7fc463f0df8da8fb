//! A launch's arguments as native kernels read them.

use crate::codelet::HostValue;

/// Arguments of a codelet. Who launches it owes those that it documents:
/// another type is a fault in the program, and ends in a panic that a pool
/// catches and tells.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub(crate) codelet: &'static str,
    pub(crate) values: &'a [HostValue],
}

impl Arguments<'_> {
    /// The first single of a memory.
    ///
    /// # Panics
    /// When there is no such memory, here and in the others.
    pub(crate) fn singles(&self, index: usize) -> *mut f32 {
        match self.values.get(index) {
            Some(HostValue::Memory { address, .. }) => address.cast(),
            other => self.wrong(index, "memory", other),
        }
    }

    pub(crate) fn u32(&self, index: usize) -> usize {
        match self.values.get(index) {
            Some(HostValue::U32(value)) => *value as usize,
            other => self.wrong(index, "a u32", other),
        }
    }

    pub(crate) fn u64(&self, index: usize) -> usize {
        match self.values.get(index) {
            Some(HostValue::U64(value)) => *value as usize,
            other => self.wrong(index, "a u64", other),
        }
    }

    pub(crate) fn f32(&self, index: usize) -> f32 {
        match self.values.get(index) {
            Some(HostValue::F32(value)) => *value,
            other => self.wrong(index, "an f32", other),
        }
    }

    fn wrong(&self, index: usize, wanted: &str, found: Option<&HostValue>) -> ! {
        unreachable!(
            "{} argument {index} is {wanted}, not {found:?}",
            self.codelet
        )
    }
}
