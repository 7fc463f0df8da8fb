//! A balancer of one's own: a device's share of a step is its part of the speed of all in the
//! step before. It runs on a simulated machine and on this one.
use pdawl::balance::{Balancer, Next, Setup, StepPlan, StepReport, StepState, largest_remainder};
use pdawl::session::{Error, Grid, Run, Session};

pub struct Proportional {
    setup: Setup,
    /// Units a second, by device; 0 for one that is lost.
    speeds: Vec<f64>,
}

impl Proportional {
    pub fn new(setup: &Setup) -> Self {
        let devices = setup.devices.iter();
        Self {
            speeds: devices.map(|device| device.compute_units.into()).collect(),
            setup: setup.clone(),
        }
    }
}

impl Balancer for Proportional {
    fn name(&self) -> String {
        "proportional".to_owned()
    }

    fn plan(&mut self, _step: u32) -> StepPlan {
        let units = largest_remainder(self.setup.units, &self.speeds);
        // A device with memory of its own keeps its units there from step to step.
        let capacities = self
            .setup
            .devices
            .iter()
            .map(|device| device.capacity.unwrap_or(0));
        let held: Vec<u64> = (units.iter().zip(capacities))
            .map(|(units, capacity)| capacity.min(*units))
            .collect();
        let pooled = units
            .iter()
            .zip(&held)
            .map(|(all, held)| all - held)
            .collect();
        StepPlan { held, pooled }
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        match state.left[device] {
            0 => Next::Done,
            left => Next::Take(left),
        }
    }

    fn step_ended(&mut self, report: &StepReport) {
        for (speed, step) in self.speeds.iter_mut().zip(&report.devices) {
            let units = (step.held + step.pooled) as f64;
            if units > 0.0 && step.finished > 0 {
                *speed = units / step.finished as f64 * 1e9;
            }
        }
    }

    fn lost(&mut self, device: usize) {
        self.speeds[device] = 0.0;
    }

    fn returned(&mut self, device: usize, _step: u32) {
        self.speeds[device] = self.setup.devices[device].compute_units.into();
    }
}

/// Runs a stencil with it.
pub fn run(session: &mut Session, size: u64) -> Result<Run, Error> {
    session.set_balancer("proportional", |setup| Box::new(Proportional::new(setup)));
    let mut grid = Grid::new(&[size, size], vec![1.0f64; (size * size) as usize])?;
    session.stencil(&mut grid).steps(20).verify().run()
}

pub fn main() -> Result<(), Error> {
    for (name, mut session) in [
        ("simulated", Session::simulate("k40")?),
        ("real", Session::open()?),
    ] {
        let run = run(&mut session, 1000)?;
        println!("{name}: {:.6} s, shares {:.2?}", run.seconds, run.shares());
    }
    Ok(())
}
