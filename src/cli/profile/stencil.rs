//! Profiles of stencils: the design, and measuring it.

use std::sync::atomic::AtomicBool;

use pdawl_api::profile::design::{DesignRequest, Gpu, SpaceError};
use pdawl_api::profile::{
    Configuration, ModelKind, ProfiledMachine, SessionProgress, Space, design, schedule, stencil,
};
use pdawl_api::quantity::Seconds;
use pdawl_api::report::profile::ProfileReport;

use super::ProfileOptions;
use super::session::{Opened, devices, free_memory};
use crate::args::Format;
use crate::failure::Failure;
use crate::terminal;

impl ProfileOptions {
    /// Measures the runs that are wanted and not yet in the dataset.
    ///
    /// # Errors
    /// When there is no such machine, nothing to run on it, no time for it, or no
    /// place to keep the rows.
    pub fn carry_out(&self, format: Format, stop: &AtomicBool) -> Result<ProfileReport, Failure> {
        let opened = Opened::find(&self.session)?;
        let designs = self.designs(&opened.kinds, opened.gpus.clone(), &opened.profiled)?;
        let runs = schedule(&designs, self.repeats, self.session.seed);
        let bar = terminal::progress(format, runs.len() as u64, "");
        let report = opened.profile(
            &self.session,
            self.codelet(),
            "other --sizes, --kinds or --gpu-memory",
            stop,
            &mut |progress: &SessionProgress| {
                bar.set_position(progress.over as u64);
                let (run, left) = (progress.run, Seconds(progress.left));
                bar.set_message(format!("{}, {left} left", run.title()));
            },
            |session| stencil::profile(session, &runs),
        );
        bar.finish_and_clear();
        report
    }

    /// The design of a machine for each kind of device that is wanted and present.
    ///
    /// # Errors
    /// Devices that are not there, and sizes that do not fit.
    pub fn design_for(
        &self,
        profiled: &ProfiledMachine,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Vec<Configuration>>, Failure> {
        let (kinds, gpus) = devices(&self.session, profiled, notes)?;
        self.designs(&kinds, gpus, profiled)
    }

    fn designs(
        &self,
        kinds: &[ModelKind],
        gpus: Vec<Gpu>,
        profiled: &ProfiledMachine,
    ) -> Result<Vec<Vec<Configuration>>, Failure> {
        let request = DesignRequest {
            dimensions: self.dims,
            precision: self.session.precision(),
            sizes: self.sizes.clone(),
            most: self.max_size,
        };
        let limit = self.session.host_memory.map(|size| size.0);
        let (host, simulated) = (&profiled.machine().host, profiled.is_simulated());
        let memory = match (simulated, limit) {
            (true, limit) => limit.unwrap_or(u64::MAX).min(host.memory),
            (false, limit) => limit.unwrap_or_else(free_memory),
        };
        let topology = profiled.topology().clone();
        let space = Space::of(host, topology, gpus, memory, !simulated, &request);
        let space = space.map_err(|error| match error {
            SpaceError::TooSmall(_) => {
                Failure::usage(error, "--sizes 500,4000 or --max-size 4000, say")
            }
            SpaceError::TooLarge { .. } => Failure::of(error),
        })?;
        let count = self.configurations as usize;
        let designs: Vec<_> = (kinds.iter())
            .map(|kind| design(&space, *kind, count))
            .collect();
        match designs.iter().all(Vec::is_empty) {
            true => Err(Failure::failed(
                "nothing can be profiled: no configuration fits into the memory of the devices",
                "smaller --sizes, or a larger --gpu-memory",
            )),
            false => Ok(designs),
        }
    }
}
