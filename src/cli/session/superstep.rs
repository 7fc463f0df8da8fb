//! The steps between two barriers, where the user leaves their number to pdawl.

use pdawl::balance::Strategy;
use pdawl::engine::corun::Stream;
use pdawl::machine::{Device, MachineFile};
use pdawl::model::StepWork;
use pdawl::model::planner::{are_fixed, physical, plan_supersteps};
use pdawl::model::serving::ServingModel;
use pdawl::workload::Divisible;
use pdawl::workload::stencil::Stencil;

use crate::grid::Grid;

/// What the choice is made for.
pub struct Choice<'a> {
    pub file: Option<&'a MachineFile>,
    pub devices: &'a [Device],
    pub strategy: &'a Strategy,
    pub gpu_memory: Option<u64>,
}

/// What was chosen.
pub struct Chosen {
    /// How devices stream.
    pub stream: Stream,
    /// The plan of a superstep, for a run that begins with it.
    pub plan: Option<ServingModel>,
    /// Says so, or why each step has a barrier.
    pub note: String,
}

impl Choice<'_> {
    /// Chooses them as the machine's file predicts.
    pub fn make(&self, grid: &mut Grid, stencil: &Stencil) -> Chosen {
        match self.planned(grid, stencil) {
            Ok((size, plan)) => {
                grid.set_superstep(size);
                let steps = grid.steps;
                let mut note = format!(
                    "--superstep auto: {size} of {steps} steps between two barriers, as the \
                     machine's file predicts"
                );
                if !are_fixed(self.strategy)
                    && let resting = plan.plan.resting()
                    && !resting.is_empty()
                {
                    let resting = resting.join(", ");
                    note += &format!("; a superstep would take longer with a part for {resting}");
                }
                Chosen {
                    stream: plan.plan.stream,
                    plan: Some(plan),
                    note,
                }
            }
            Err(why) => {
                grid.set_superstep(1);
                Chosen {
                    stream: Stream::default(),
                    plan: None,
                    note: format!("--superstep auto: a barrier after each step, since {why}"),
                }
            }
        }
    }

    fn planned(&self, grid: &Grid, stencil: &Stencil) -> Result<(u32, ServingModel), String> {
        let file = self
            .file
            .ok_or("no file describes this machine (pdawl machine save)")?;
        let codelet = stencil.codelet();
        let of = (codelet.name.as_ref(), stencil.fp64());
        let candidates =
            physical(file, self.devices, of, self.gpu_memory).map_err(|error| error.to_string())?;
        let plan = plan_supersteps(stencil, &candidates, self.strategy, grid.supersteps());
        let (size, plan) = plan.ok_or("no device of the strategy has enough memory")?;
        let work = StepWork::of_superstep(stencil, size);
        Ok((size, ServingModel::of_machine(file, work, candidates, plan)))
    }
}
