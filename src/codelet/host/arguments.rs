//! A launch's arguments as native kernels read them.

use crate::HostValue;

/// The arguments of a codelet. Its caller must pass those that the codelet
/// documents: another type is a fault in the program, and ends in a panic that a
/// host pool catches and reports.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub(crate) codelet: &'static str,
    pub(crate) values: &'a [HostValue],
}

impl Arguments<'_> {
    /// The first number of a memory.
    ///
    /// # Panics
    /// When the argument has another type, here and in the others.
    pub(crate) fn memory<T>(&self, index: usize) -> *mut T {
        match self.values.get(index) {
            Some(HostValue::Memory { address, .. }) => address.cast(),
            other => self.wrong(index, "memory", other),
        }
    }

    /// The first single of a memory.
    pub(crate) fn singles(&self, index: usize) -> *mut f32 {
        self.memory(index)
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
        self.real(index)
    }

    /// A number of the codelet's precision.
    pub(crate) fn real<T: FromValue>(&self, index: usize) -> T {
        match self.values.get(index) {
            Some(value) => T::from_value(*value)
                .unwrap_or_else(|| self.wrong(index, "a number of its precision", Some(value))),
            None => self.wrong(index, "a number of its precision", None),
        }
    }

    /// Bytes of all memories, each counted as often as it is an argument.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.values.iter().map(|value| match value {
            HostValue::Memory { bytes, .. } => *bytes,
            _ => 0,
        });
        bytes.fold(0, u64::saturating_add)
    }

    fn wrong(&self, index: usize, wanted: &str, found: Option<&HostValue>) -> ! {
        unreachable!(
            "{} argument {index} is {wanted}, not {found:?}",
            self.codelet
        )
    }
}

/// A floating-point type that an argument may have.
pub(crate) trait FromValue: Sized {
    /// The argument's value, if it is of this type.
    fn from_value(value: HostValue) -> Option<Self>;
}

impl FromValue for f64 {
    fn from_value(value: HostValue) -> Option<Self> {
        match value {
            HostValue::F64(value) => Some(value),
            _ => None,
        }
    }
}

impl FromValue for f32 {
    fn from_value(value: HostValue) -> Option<Self> {
        match value {
            HostValue::F32(value) => Some(value),
            _ => None,
        }
    }
}
