//! A kernel that was read and checked: whether it fits, how it can be divided, and its
//! part of reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pdawl::engine::corun::CorunError;
use pdawl::machine::Host;
use pdawl::quantity::Bytes;
use pdawl::runtime::RuntimeError;
use pdawl::session;
use pdawl::session::divided::{Divided, Sharing, Work};
use pdawl::session::nodes::{AskedKernel, KernelOverNodes, NodesWork};
use pdawl::workload::Supersteps;
use pdawl::workload::kernel::UserKernel;

use super::KernelArgs;
use crate::failure::Failure;
use crate::grid::MemoryBudget;
use crate::saves::SavedResult;
use crate::size::ByteSize;
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

    /// Its run over nodes. With `is_compared`, this one computes what the result is compared with.
    ///
    /// # Errors
    /// A kernel that cannot be divided, or that does not fit in memory.
    pub fn over_nodes(self, is_compared: bool) -> Result<KernelOverNodes, Failure> {
        let memory = ByteSize(Host::detect().memory.obtainable(0));
        // The memory of a node is what it has: --host-memory is for runs on one.
        self.fits(MemoryBudget { memory, grids: 0 })
            .map_err(|failure| match failure {
                Failure::Failed { what, .. } => Failure::failed(what, "a smaller size with -D"),
                other => other,
            })?;
        let shown = self.shown();
        let asked = AskedKernel {
            file: self.file(),
            steps: self.args.steps,
            seed: self.args.seed,
            user: self.user,
        };
        let waiting = terminal::spinner();
        waiting.set_message("trying parts of the kernel");
        let made = NodesWork::of_kernel(asked, &self.devices, is_compared, self.stop);
        waiting.finish_and_clear();
        let mut kernel = made.map_err(|error| match error {
            session::Error::Corun(error) => failure(&shown, error),
            other => other.into(),
        })?;
        kernel.work.notes.splice(0..0, self.notes);
        Ok(kernel)
    }

    /// The name of its file.
    pub fn file(&self) -> String {
        name(&self.args.file)
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
