//! A kernel that was read and checked: whether it fits, how it can be divided, and its
//! part of reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pdawl::balance::Strategy;
use pdawl::balance::strategy::Shares;
use pdawl::engine::corun::CorunError;
use pdawl::engine::corun::kernel::{SliceTrials, examine, undivided};
use pdawl::machine::{Device, DeviceKind, likely_fastest};
use pdawl::quantity::Bytes;
use pdawl::report::Workload;
use pdawl::runtime::{Runtime, RuntimeError};
use pdawl::workload::kernel::UserKernel;

use super::KernelArgs;
use crate::failure::{Failure, OTHER_STRATEGY, refused};
use crate::grid::MemoryBudget;
use crate::terminal;

/// A kernel that was read and checked.
pub struct KernelTask {
    pub(super) args: KernelArgs,
    pub user: UserKernel,
    /// The devices that take part, as a list of names.
    pub devices: String,
    /// 0, all on the CPU, to 10, all on the GPU.
    pub partition: Option<u8>,
    /// Whether it cannot be divided, and runs on one device.
    pub undivided: bool,
    /// The strategy that the user wants.
    pub(super) asked: Option<Strategy>,
    /// Set by Ctrl-C.
    pub(super) stop: &'static AtomicBool,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Results that are to be saved.
    pub(super) results: Arc<Mutex<BTreeMap<usize, Vec<u8>>>>,
}

/// Host memory that a kernel needs, as a multiple of its buffers: two versions, and the
/// copies of trials and their comparison.
const COPIES: u64 = 8;

impl KernelTask {
    /// Checks that it fits in memory.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn fits(&self, budget: MemoryBudget) -> Result<(), Failure> {
        let bytes = self.user.bytes();
        let needed = bytes.saturating_mul(COPIES);
        if needed <= budget.memory.0 {
            return Ok(());
        }
        Err(Failure::failed(
            format!(
                "the kernel's buffers of {} need {} of host memory, {COPIES} times as much: what \
                 is written has two versions, and trials and their comparison have copies of \
                 their own; {} may be used",
                Bytes(bytes),
                Bytes(needed),
                Bytes(budget.memory.0)
            ),
            "a smaller size with -D, or --host-memory with more",
        ))
    }

    /// Finds out how it can be divided, on the runtime's best device. If it cannot be
    /// divided, the index of the device that it runs on is returned.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn examine(&mut self, runtime: &mut dyn Runtime) -> Result<Option<usize>, Failure> {
        let best = self.best(runtime.devices())?;
        let Some(why) = self.examine_on(runtime, best, SliceTrials::IfShort)? else {
            return Ok(None);
        };
        self.notes.push(format!(
            "it is not divided, and runs on {} alone: {why}",
            runtime.devices()[best].name
        ));
        self.undivided = true;
        Ok(Some(best))
    }

    /// Finds out how it can be divided, on a device of a runtime. If it cannot be divided,
    /// the reason is returned.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn examine_on(
        &mut self,
        runtime: &mut dyn Runtime,
        device: usize,
        slice_trials: SliceTrials,
    ) -> Result<Option<String>, Failure> {
        let waiting = terminal::spinner();
        waiting.set_message("trying parts of the kernel");
        let examined = examine(runtime, device, self.user.clone(), slice_trials, self.stop);
        waiting.finish_and_clear();
        let examined = examined.map_err(|error| self.failure(error))?;
        self.user = examined.user;
        self.notes.extend(examined.notes);
        Ok(examined.refusal)
    }

    /// What the written buffers have after all steps of the undivided kernel, on a device.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn reference(
        &self,
        runtime: &mut dyn Runtime,
        device: usize,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let computed = undivided(runtime, device, &self.user, self.args.steps, self.stop);
        computed.map_err(|error| self.failure(error))
    }

    fn failure(&self, error: CorunError) -> Failure {
        match error {
            CorunError::Interrupted => Failure::Interrupted,
            CorunError::Runtime(
                RuntimeError::Call { why, device, .. } | RuntimeError::Unfit { why, device },
            ) if why.contains("the local size") || why.contains("a work-group of") => {
                let file = self.args.file.display();
                Failure::failed(
                    format!("{file}, localWorkSize: {device}: {why}"),
                    "another localWorkSize",
                )
            }
            CorunError::Runtime(error) => refused(error),
            other => Failure::of(other),
        }
    }

    /// The device, of those that the user wants, that is most likely the fastest: a GPU
    /// if there is one.
    ///
    /// # Errors
    /// When the user's strategy needs a device that is missing.
    pub fn best(&self, devices: &[Device]) -> Result<usize, Failure> {
        let kinds: Vec<DeviceKind> = devices.iter().map(|device| device.kind).collect();
        if let Some(asked) = &self.asked {
            (asked.suits(&kinds)).map_err(|why| Failure::usage(why, OTHER_STRATEGY))?;
        }
        let wanted = |device: &Device| match &self.asked {
            Some(Strategy::Cpu) => device.kind == DeviceKind::Cpu,
            Some(Strategy::Gpu) => device.kind != DeviceKind::Cpu,
            _ => true,
        };
        Ok(likely_fastest(devices, wanted).unwrap_or(0))
    }

    /// The strategy of a kernel on a single device; `None` where it is chosen as for other
    /// workloads.
    pub fn strategy(&self, devices: &[Device]) -> Option<Strategy> {
        match (&self.asked, devices) {
            (Some(Strategy::Cpu | Strategy::Gpu), _) => None,
            (_, [device]) if self.undivided => Some(Strategy::lone(device.kind)),
            (None, [device]) => Some(Strategy::lone(device.kind)),
            _ => None,
        }
    }

    /// The strategy by default: the file's `partition`, if there are both kinds of
    /// devices.
    pub fn partition(&self, devices: &[Device]) -> Option<Strategy> {
        let has = |cpu: bool| devices.iter().any(|d| (d.kind == DeviceKind::Cpu) == cpu);
        let cpu = 1.0 - f64::from(self.partition?) / 10.0;
        let shares = Shares::new(vec![cpu]).ok()?;
        (has(true) && has(false)).then_some(Strategy::Fixed(shares))
    }

    /// The name of its file.
    pub fn file(&self) -> String {
        name(&self.args.file)
    }

    pub fn steps(&self) -> u32 {
        self.args.steps
    }

    pub fn seed(&self) -> u64 {
        self.args.seed
    }

    /// Takes the results of the last run that are to be saved.
    pub fn results(&self) -> BTreeMap<usize, Vec<u8>> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *results)
    }

    /// Its description in reports.
    pub fn described(&self) -> Workload {
        let file = self.args.file.display().to_string();
        Workload::of_kernel(&self.user, &file, self.args.steps, self.args.seed)
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
