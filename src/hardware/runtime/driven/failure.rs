//! Calls of a driver that failed.

use crate::runtime::RuntimeError;

/// The codes that a driver's calls answer.
pub trait Code: Copy {
    /// Whether the device, or everything on it, is lost.
    fn is_loss(self) -> bool;

    /// Whether memory ran out.
    fn is_out_of_memory(self) -> bool;

    /// Its name and number, and what they mean.
    fn describe(self) -> String;
}

/// A call that failed, and the driver's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<C> {
    pub call: &'static str,
    pub code: C,
}

impl<C: Code> Failure<C> {
    /// Whether the device is lost; see [`Code::is_loss`].
    pub fn is_loss(self) -> bool {
        self.code.is_loss()
    }

    /// Whether memory ran out.
    pub fn is_out_of_memory(self) -> bool {
        self.code.is_out_of_memory()
    }

    /// What the driver says.
    pub fn describe(self) -> String {
        self.code.describe()
    }

    /// The error of a device.
    pub fn on(self, device: &str) -> RuntimeError {
        match self.is_loss() {
            true => RuntimeError::DeviceLost {
                device: device.to_owned(),
                why: format!("{} answered {}", self.call, self.describe()),
            },
            false => RuntimeError::Call {
                device: device.to_owned(),
                call: self.call,
                why: self.describe(),
            },
        }
    }
}
