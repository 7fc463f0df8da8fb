//! Faults of devices, as users write them: `gpu0:slow:2@10`, `gpu0:lost@1.5s`.

use std::str::FromStr;

use thiserror::Error;

use crate::machine::Device;
use crate::runtime::DeviceId;
use crate::runtime::sim::{At, FAULT_SECONDS, Fault, FaultEffect, SLOWDOWNS};
use crate::runtime::union::faults;

/// A fault of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSpec {
    /// The device's name.
    pub device: String,
    pub what: FaultEffect,
    pub at: At,
}

impl FaultSpec {
    /// The index of its device.
    fn index(&self, devices: &[Device]) -> Result<usize, UnfitFault> {
        let index = devices.iter().position(|d| d.name == self.device);
        index.ok_or_else(|| UnfitFault::NoDevice {
            device: self.device.clone(),
            devices: devices.iter().map(|d| d.name.clone()).collect(),
        })
    }
}

/// Why devices cannot have a fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnfitFault {
    #[error("no device `{device}` takes part")]
    NoDevice {
        device: String,
        /// Those that do.
        devices: Vec<String>,
    },
    #[error("step {step}, of {device}, never comes: the last is {last}")]
    Never {
        device: String,
        step: u32,
        last: u32,
    },
    #[error("on real devices, only the loss of a device at a time can be injected")]
    Real { device: String },
}

/// Faults of simulated devices, in a run of so many steps.
pub(super) fn simulated(
    specs: &[FaultSpec],
    devices: &[Device],
    steps: u32,
) -> Result<Vec<Fault>, UnfitFault> {
    let last = steps.saturating_sub(1);
    let fault = |spec: &FaultSpec| match spec.at {
        At::Phase(step) if step > last => Err(UnfitFault::Never {
            device: spec.device.clone(),
            step,
            last,
        }),
        at => Ok(Fault {
            device: spec.index(devices)?,
            at,
            what: spec.what,
        }),
    };
    specs.iter().map(fault).collect()
}

/// Losses of real devices, at times that count from the begin of the first run.
pub(super) fn losses(
    specs: &[FaultSpec],
    devices: &[Device],
) -> Result<Vec<faults::Fault>, UnfitFault> {
    let loss = |spec: &FaultSpec| match (spec.what, spec.at) {
        (FaultEffect::Lost, At::Seconds(seconds)) => Ok(faults::Fault {
            device: DeviceId(spec.index(devices)?),
            when: faults::When::Time((seconds * 1e9) as u64),
            effect: faults::Effect::Lose,
        }),
        _ => Err(UnfitFault::Real {
            device: spec.device.clone(),
        }),
    };
    specs.iter().map(loss).collect()
}

/// Why a text is not a fault.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FaultError {
    #[error("it must end with a step, such as @10, or with a time up to 1e9 s, such as @1.5s")]
    When,
    #[error(
        "write DEVICE:slow:FACTOR@STEP, DEVICE:lost@STEP, DEVICE:back@STEP, \
         DEVICE:cores:N@STEP or DEVICE:fail:N@STEP"
    )]
    Action,
    #[error("`{0}` is not a valid number for `{1}`: {2}")]
    Number(String, &'static str, &'static str),
}

impl FromStr for FaultSpec {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (fault, at) = text.rsplit_once('@').ok_or(FaultError::When)?;
        let at = when(at).ok_or(FaultError::When)?;
        // A device's name can contain a colon, so the text is read from its end.
        let (rest, last) = fault.rsplit_once(':').ok_or(FaultError::Action)?;
        let (device, what) = match last {
            "lost" => (rest, FaultEffect::Lost),
            "back" => (rest, FaultEffect::Restored),
            number => {
                let (device, action) = rest.rsplit_once(':').ok_or(FaultError::Action)?;
                (device, with_number(action, number)?)
            }
        };
        if device.is_empty() {
            return Err(FaultError::Action);
        }
        Ok(Self {
            device: device.to_owned(),
            what,
            at,
        })
    }
}

fn when(text: &str) -> Option<At> {
    match text.strip_suffix('s') {
        None => text.parse().ok().map(At::Phase),
        Some(seconds) => {
            let seconds: f64 = seconds.parse().ok()?;
            FAULT_SECONDS
                .contains(&seconds)
                .then_some(At::Seconds(seconds))
        }
    }
}

fn with_number(action: &str, number: &str) -> Result<FaultEffect, FaultError> {
    let wrong = |action, why| FaultError::Number(number.to_owned(), action, why);
    match action {
        "slow" => (number.parse().ok())
            .filter(|factor| SLOWDOWNS.contains(factor))
            .map(FaultEffect::Slowed)
            .ok_or(wrong(
                "slow",
                "give a factor from 0.001 to 1e6, 2 for half the speed",
            )),
        "cores" => (number.parse().ok())
            .filter(|cores| *cores > 0)
            .map(FaultEffect::Cores)
            .ok_or(wrong("cores", "give the number of cores left, at least 1")),
        "fail" => (number.parse().ok())
            .filter(|commands| *commands > 0)
            .map(FaultEffect::FailNext)
            .ok_or(wrong(
                "fail",
                "give the number of commands that fail, at least 1",
            )),
        _ => Err(FaultError::Action),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults() {
        for (text, device, what, at) in [
            (
                "gpu0:slow:2@10",
                "gpu0",
                FaultEffect::Slowed(2.0),
                At::Phase(10),
            ),
            ("gpu0:lost@0", "gpu0", FaultEffect::Lost, At::Phase(0)),
            (
                "gpu0:back@1.5s",
                "gpu0",
                FaultEffect::Restored,
                At::Seconds(1.5),
            ),
            (
                "host:cores:4@10",
                "host",
                FaultEffect::Cores(4),
                At::Phase(10),
            ),
            (
                "host:8:slow:1.5@3",
                "host:8",
                FaultEffect::Slowed(1.5),
                At::Phase(3),
            ),
            (
                "gpu1:fail:3@7",
                "gpu1",
                FaultEffect::FailNext(3),
                At::Phase(7),
            ),
        ] {
            let device = device.to_owned();
            assert_eq!(text.parse(), Ok(FaultSpec { device, what, at }), "{text}");
        }
    }

    #[test]
    fn what_is_no_fault() {
        for text in [
            "gpu0:lost",
            "gpu0:lost@",
            "gpu0:lost@-1",
            "gpu0:lost@-1s",
            "gpu0:lost@1e300s",
            "gpu0:lost@NaNs",
        ] {
            assert_eq!(text.parse::<FaultSpec>(), Err(FaultError::When), "{text}");
        }
        for text in ["lost@1", ":lost@1", "gpu0@1", "gpu0:gone:3@1", "slow:2@1"] {
            assert_eq!(text.parse::<FaultSpec>(), Err(FaultError::Action), "{text}");
        }
        for text in [
            "g:slow:0@1",
            "g:slow:inf@1",
            "g:slow:1e308@1",
            "g:slow:1e7@1",
            "g:slow:1e-5@1",
            "g:cores:0@1",
            "g:fail:-1@1",
            "g:fail:0@1",
        ] {
            let error = text.parse::<FaultSpec>().unwrap_err();
            assert!(matches!(error, FaultError::Number(..)), "{text}: {error}");
        }
    }
}
