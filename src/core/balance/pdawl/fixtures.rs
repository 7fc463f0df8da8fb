//! A planner that knows the tests' machines: it tries plans on the machine
//! that it believes in.

use super::{Expected, Forecast, Planner};
use crate::balance::dawl::partition::{Ability, finish_together};
use crate::balance::fixtures::Machine;
use crate::balance::{Balancer, DeviceStep, Fixed, Next, StepPlan, StepReport, StepState, Sweep};

/// Believes in a machine, which the tests' machine may or may not be like.
#[derive(Clone)]
pub struct Believer {
    machine: Machine,
}

impl Believer {
    /// Believes in a machine as it is at first.
    pub fn in_machine(machine: &Machine) -> Self {
        Self {
            machine: Machine {
                host_limit: machine.host_limit,
                corun: machine.corun,
                streaming: machine.streaming,
                steps: 2,
                ..Machine::new(machine.units, machine.devices.clone())
            },
        }
    }

    /// Believes that each device is so many times as fast as it is.
    pub fn wrongly_by(mut self, factors: &[f64]) -> Self {
        for (device, factor) in self.machine.devices.iter_mut().zip(factors) {
            device.held_rate *= factor;
            device.pool_rate *= factor;
        }
        self
    }

    /// The machine of the devices that are there, slowed, and their indices.
    fn slowed(&self, slowdown: &[f64]) -> (Machine, Vec<usize>) {
        let all = 0..slowdown.len();
        let there: Vec<usize> = all.filter(|d| slowdown[*d].is_finite()).collect();
        let mut machine = self.machine.clone();
        machine.devices.clear();
        for d in &there {
            let mut device = self.machine.devices[*d].clone();
            device.held_rate /= slowdown[*d];
            device.pool_rate /= slowdown[*d];
            machine.devices.push(device);
        }
        (machine, there)
    }
}

impl Planner for Believer {
    fn forecast(&self, slowdown: &[f64]) -> Option<Forecast> {
        let (machine, there) = self.slowed(slowdown);
        let plans = [swept(&machine), together(&machine)];
        let forecasts = plans.into_iter().flatten().map(|found| {
            let spread = |units: &[u64]| {
                let mut all = vec![0; slowdown.len()];
                there.iter().zip(units).for_each(|(d, n)| all[*d] = *n);
                all
            };
            let plan = StepPlan {
                held: spread(&found.held),
                pooled: spread(&found.pooled),
            };
            self.expect(&plan, slowdown)
        });
        forecasts.min_by(|a, b| a.step_seconds.total_cmp(&b.step_seconds))
    }

    fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast {
        let (machine, there) = self.slowed(slowdown);
        let of = |units: &[u64]| there.iter().map(|d| units[*d]).collect();
        let mut constant = Constant {
            plan: StepPlan {
                held: of(&plan.held),
                pooled: of(&plan.pooled),
            },
            last: None,
        };
        let times = machine.run(&mut constant);
        let step = constant.last.expect("steps were run");
        let mut devices = vec![Expected::default(); slowdown.len()];
        for (i, d) in there.into_iter().enumerate() {
            devices[d] = expected(&machine, i, &step.devices[i]);
        }
        Forecast {
            plan: plan.clone(),
            step_seconds: times[1] * 1e-6,
            devices,
        }
    }
}

/// What is expected of a device that did so much in a step.
fn expected(machine: &Machine, device: usize, did: &DeviceStep) -> Expected {
    let real = &machine.devices[device];
    let streams = real.view.capacity.is_some();
    let limited = |wanted: f64| Some(1e6 * real.pool_rate * (machine.host_limit / wanted).min(1.0));
    Expected {
        seconds: did.finished as f64 * 1e-9,
        held_rate: streams.then_some(1e6 * real.held_rate),
        launch: None,
        pool_rate: limited(machine.devices.iter().map(|d| d.pool_rate).sum()),
        alone_rate: limited(real.pool_rate).filter(|_| !streams),
        overhead: match did.finished {
            0 => real.start * 1e-6,
            _ => did.waited as f64 * 1e-9,
        },
        spread: 0.03,
    }
}

/// The best fixed shares.
fn swept(machine: &Machine) -> Option<StepPlan> {
    let setup = machine.setup();
    let mut sweep = Sweep::new(&setup);
    while let Some(shares) = sweep.next() {
        let times = machine.run(&mut Fixed::new("fixed", &setup, &shares));
        sweep.tell(times[1]);
    }
    let (shares, _) = sweep.best()?;
    Some(Fixed::new("fixed", &setup, shares).plan(0))
}

/// The shares with which all finish together.
fn together(machine: &Machine) -> Option<StepPlan> {
    let ability = |device: usize| {
        let expected = expected(machine, device, &DeviceStep::default());
        Ability {
            capacity: machine.devices[device].view.capacity.unwrap_or(0),
            held_rate: expected.held_rate.unwrap_or(0.0),
            pool_rate: expected.pool_rate.unwrap_or(0.0),
            overhead: expected.overhead,
            ..Ability::default()
        }
    };
    let abilities: Vec<Ability> = (0..machine.devices.len()).map(ability).collect();
    let partition = finish_together(machine.units, &abilities)?;
    Some(StepPlan {
        held: partition.held,
        pooled: partition.pooled,
    })
}

/// Follows one plan.
struct Constant {
    plan: StepPlan,
    last: Option<StepReport>,
}

impl Balancer for Constant {
    fn name(&self) -> String {
        "constant".to_owned()
    }

    fn plan(&mut self, _step: u32) -> StepPlan {
        self.plan.clone()
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        match state.left[device] {
            0 => Next::Done,
            own => Next::Take(self.plan.pooled[device].div_ceil(24).clamp(1, own)),
        }
    }

    fn step_ended(&mut self, report: &StepReport) {
        self.last = Some(report.clone());
    }

    fn lost(&mut self, _device: usize) {}

    fn returned(&mut self, _device: usize, _step: u32) {}
}
