//! A kernel that was read and checked: whether it fits, how it can be divided, and its
//! part of reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pdawl::engine::corun::CorunError;
use pdawl::engine::corun::kernel::{SliceTrials, examine, undivided};
use pdawl::quantity::Bytes;
use pdawl::runtime::{Runtime, RuntimeError};
use pdawl::session;
use pdawl::session::divided::{Divided, Sharing, Work};
use pdawl::workload::Supersteps;
use pdawl::workload::kernel::UserKernel;

use super::KernelArgs;
use crate::failure::Failure;
use crate::grid::MemoryBudget;
use crate::saves::SavedResult;
use crate::terminal;
use crate::workload::PreparedWorkload;

/// A kernel that was read and checked.
pub struct KernelTask {
    pub(super) args: KernelArgs,
    pub user: UserKernel,
    /// The devices that take part, as a list of names.
    pub devices: String,
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
        let examined = examined.map_err(|error| failure(&self.shown(), error))?;
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
        computed.map_err(|error| failure(&self.shown(), error))
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

    fn shown(&self) -> String {
        self.args.file.display().to_string()
    }

    /// Its run on the devices of a session, with the shares of its file unless they are asked for.
    pub fn prepared(self) -> PreparedWorkload {
        let steps = Supersteps::new(self.args.steps, 1);
        let origin = (Some(self.shown()), self.args.seed);
        let work = Work::Kernel {
            user: Box::new(self.user),
            division: None,
        };
        let results = self.results;
        PreparedWorkload {
            divided: Divided {
                origin,
                ..Divided::new(work, steps, Sharing::Default)
            },
            needs_numbers: false,
            results: Box::new(move || {
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                let raw = |(position, bytes)| (position, SavedResult { array: None, bytes });
                std::mem::take(&mut *results).into_iter().map(raw).collect()
            }),
            notes: self.notes,
        }
    }
}

/// The failure of a kernel's run; `file` is that which describes it.
pub fn failure(file: &str, error: CorunError) -> Failure {
    match error {
        CorunError::Runtime(
            RuntimeError::Call { why, device, .. } | RuntimeError::Unfit { why, device },
        ) if why.contains("the local size") || why.contains("a work-group of") => Failure::failed(
            format!("{file}, localWorkSize: {device}: {why}"),
            "another localWorkSize",
        ),
        other => session::Error::from(other).into(),
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
