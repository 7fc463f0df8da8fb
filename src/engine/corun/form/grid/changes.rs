//! The largest change of a point in a step that is checked.
//!
//! The launches of such a step raise memory: each queue of a device has its own, so that only
//! launches that follow one another share it. It is clear before the queue's first launch of
//! the step. What a device's own memory has is folded there to a few bytes, which clears it
//! for the next time, and only these are read; whoever wants the change looks at those of all
//! queues.

use crate::codelet::{Memory, Value};
use crate::corun::context::{Context, Purpose};
use crate::corun::form::data;
use crate::corun::memory::MOST_QUEUES;
use crate::corun::{CHUNK, CorunError, HELD, WARM};
use crate::runtime::{BufferId, Command, DeviceId, HostMemoryId, Launch, RuntimeError};
use crate::scope::RuntimeScope;
use crate::workload::{self, Ending, Supersteps};

/// The change of a grid in the steps that are checked.
pub(super) struct Changes<'a> {
    of: &'a dyn workload::Changes,
    supersteps: Supersteps,
    tolerance: f64,
    /// By device and queue; none where a queue has no launches of units.
    raised: Vec<Vec<Option<Raised>>>,
    /// The superstep that ended last, and its change if that is known.
    ended: Option<u32>,
    largest: Option<f64>,
}

/// What launches raise, and the commands before and after them.
pub(super) struct Raises {
    pub value: Value,
    pub before: Option<Command>,
    pub after: Vec<Command>,
    /// Whether the launches count for nothing.
    pub is_warm_up: bool,
}

/// What the launches of a queue raise.
struct Raised {
    /// Most units of a launch.
    units: u64,
    /// Where launches raise it, if the device has memory of its own.
    device: Option<OnDevice>,
    /// What was raised, or what that was folded to.
    host: HostMemoryId,
    /// The superstep whose changes it has.
    of: Option<u32>,
}

/// What launches raise in a device's own memory.
struct OnDevice {
    raised: BufferId,
    folded: BufferId,
    is_clear: bool,
    /// The superstep whose changes are folded.
    of: Option<u32>,
}

/// Bytes of a device's memory that its launches raise.
#[derive(Clone, Copy, Default)]
pub(super) struct Reserve {
    /// For each unit that it has room for. Many units together raise less.
    each: u64,
    /// What is folded in all queues.
    folded: u64,
}

impl Reserve {
    pub fn of(changes: &dyn workload::Changes) -> Self {
        Self {
            each: changes.raised_bytes(1),
            folded: (1 + u64::from(MOST_QUEUES)) * changes.folded_bytes(),
        }
    }

    /// What it leaves of so many bytes to units of so many bytes.
    pub fn left(&self, limit: u64, unit_bytes: u64) -> u64 {
        let rest = limit.saturating_sub(self.folded);
        rest.saturating_sub(rest.div_ceil(unit_bytes + self.each) * self.each)
    }

    /// Bytes of which it leaves so many to units.
    pub fn with(&self, units: u64, unit_bytes: u64) -> u64 {
        units * (unit_bytes + self.each) + self.each + self.folded
    }
}

impl<'a> Changes<'a> {
    /// For a run that is divided into these supersteps, checked after each period, and ended
    /// by a change of at most the tolerance.
    pub fn new(of: &'a dyn workload::Changes, supersteps: Supersteps, tolerance: f64) -> Self {
        Self {
            of,
            supersteps,
            tolerance,
            raised: Vec::new(),
            ended: None,
            largest: None,
        }
    }

    /// Allocates what the launches of the next device raise: of its queue for held units and of
    /// those for chunks, which have so many units at most.
    pub fn open(
        &mut self,
        runtime: &mut RuntimeScope,
        queues: impl IntoIterator<Item = u64>,
        owner: Option<DeviceId>,
    ) -> Result<(), CorunError> {
        let of = self.of;
        let open = |units: u64| -> Result<Option<Raised>, CorunError> {
            if units == 0 {
                return Ok(None);
            }
            let (device, bytes) = match owner {
                Some(device) => (
                    Some(OnDevice::open(of, runtime, device, units)?),
                    of.folded_bytes(),
                ),
                None => (None, of.raised_bytes(units)),
            };
            Ok(Some(Raised {
                units,
                device,
                host: runtime.alloc_host(bytes)?,
                of: None,
            }))
        };
        let raised = queues.into_iter().map(open).collect::<Result<_, _>>()?;
        self.raised.push(raised);
        Ok(())
    }

    /// Allocates what a device's launches raise again, whose memory was lost.
    pub fn renew(
        &mut self,
        runtime: &mut RuntimeScope,
        device: DeviceId,
    ) -> Result<(), CorunError> {
        for raised in self.raised[device.0].iter_mut().flatten() {
            raised.of = None;
            if let Some(own) = &mut raised.device {
                *own = OnDevice::open(self.of, runtime, device, raised.units)?;
            }
        }
        Ok(())
    }

    /// Nothing was computed yet. A device may have raised memory that a command which a loss
    /// has kept from running was to clear.
    pub fn forget(&mut self) {
        (self.ended, self.largest) = (None, None);
        for raised in self.raised.iter_mut().flatten().flatten() {
            raised.of = None;
            if let Some(own) = &mut raised.device {
                (own.of, own.is_clear) = (None, false);
            }
        }
    }

    /// What launches for a purpose raise, if its superstep is checked, and whether they are
    /// the queue's last ones for now. Launches before the first step raise memory too, so that
    /// their kernels are built.
    pub fn raised(
        &mut self,
        context: &mut Context,
        purpose: &Purpose,
        are_last: bool,
    ) -> Result<Option<Raises>, CorunError> {
        let of = match purpose.label {
            CHUNK | HELD if self.supersteps.ends_period(purpose.step) => Some(purpose.step),
            WARM => None,
            _ => return Ok(None),
        };
        let Some(raised) = &mut self.raised[purpose.device][purpose.queue] else {
            return Ok(None);
        };
        let begins = of.is_none() || raised.of != of;
        raised.of = of;
        if begins && let Some(bytes) = data(&mut *context.runtime, raised.host)? {
            bytes.fill(0);
        }
        let mut raises = Raises {
            value: Value::Memory(Memory::Host(raised.host)),
            before: None,
            after: Vec::new(),
            is_warm_up: of.is_none(),
        };
        if let Some(own) = &mut raised.device {
            raises.value = Value::Memory(Memory::Device(own.raised));
            let fold = |first| own.fold(self.of, raised.units, first);
            raises.before = (begins && !own.is_clear).then(|| fold(true));
            if are_last {
                let all = 0..self.of.folded_bytes();
                let read = Command::read(own.folded, 0, raised.host, all);
                raises.after = vec![fold(of.is_none() || own.of != of), read];
                own.of = of;
            }
            own.is_clear = are_last;
        }
        Ok(Some(raises))
    }

    /// A superstep has ended, or its commands are submitted.
    pub fn end(&mut self, superstep: u32) {
        (self.ended, self.largest) = (Some(superstep), None);
    }

    /// The largest change of the units here in the superstep that ended last, if it was
    /// checked: bytes of its bits. In a simulation without data it is NaN.
    pub fn own(&self, runtime: &mut RuntimeScope) -> Result<Option<Vec<u8>>, RuntimeError> {
        let Some(ended) = self.ended.filter(|step| self.supersteps.ends_period(*step)) else {
            return Ok(None);
        };
        let mut largest = 0.0;
        let all = self.raised.iter().flatten().flatten();
        for raised in all.filter(|raised| raised.of == Some(ended)) {
            let of = match data(&mut **runtime, raised.host)? {
                Some(bytes) => self.of.largest(bytes),
                None => f64::NAN,
            };
            largest = larger(largest, of);
        }
        Ok(Some(largest.to_ne_bytes().to_vec()))
    }

    /// The largest change of all units, from that of these and of other nodes'.
    pub fn add_up<'b>(&mut self, all: impl IntoIterator<Item = &'b [u8]>) {
        let changes = all.into_iter().map(|bytes| match bytes.try_into() {
            Ok(bytes) => f64::from_ne_bytes(bytes),
            Err(_) => f64::NAN,
        });
        self.largest = changes.reduce(larger);
    }

    /// The largest change in the superstep that ended last, if it was checked.
    pub fn largest(&self) -> Option<f64> {
        self.largest
    }

    /// How a run was ended after so many steps, the last of which was checked. One that was
    /// stopped before has no more steps to compare with.
    pub fn ending(&self, steps: u32) -> Option<Ending> {
        let change = self.largest?;
        Some(Ending {
            most: match workload::ends(change, self.tolerance) {
                true => self.supersteps.steps(),
                false => steps,
            },
            period: self.supersteps.period(),
            tolerance: self.tolerance,
            change,
        })
    }
}

impl OnDevice {
    fn open(
        of: &dyn workload::Changes,
        runtime: &mut RuntimeScope,
        device: DeviceId,
        units: u64,
    ) -> Result<Self, CorunError> {
        Ok(Self {
            raised: runtime.alloc(device, of.raised_bytes(units))?,
            folded: runtime.alloc(device, of.folded_bytes())?,
            is_clear: false,
            of: None,
        })
    }

    /// Folds what was raised, and clears it.
    fn fold(&self, of: &dyn workload::Changes, units: u64, first: bool) -> Command {
        let [raised, folded] = [self.raised, self.folded].map(Memory::Device);
        let fold = of.fold(raised, units, folded, first);
        Command::Launch(Launch {
            codelet: fold.codelet,
            units: fold.units,
            args: fold.args,
            cost: fold.cost,
        })
    }
}

/// The larger of two numbers; NaN if one is.
fn larger(one: f64, other: f64) -> f64 {
    match one.is_nan() || one > other {
        true => one,
        false => other,
    }
}
