//! A kernel of a specification that is to be run: its options, its first launch, and its run on a
//! machine or over nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use pdawl_api::engine::corun::CorunError;
use pdawl_api::graph::TaskGraph;
use pdawl_api::graph::spec::Described;
use pdawl_api::machine::host::Memory;
use pdawl_api::quantity::Bytes;
use pdawl_api::runtime::RuntimeError;
use pdawl_api::session;
use pdawl_api::session::divided::{Divided, Sharing, Work};
use pdawl_api::session::nodes::{AskedKernel, KernelOverNodes, NodesWork};
use pdawl_api::session::specified::{KernelDevices, Words};
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::kernel::{Sink, UserKernel};

use super::described as contents;
use super::described::Values;
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::grid::MemoryBudget;
use crate::paths::Paths;
use crate::saves::{SavedResult, Saves};
use crate::size::{ByteSize, integer};
use crate::terminal;
use crate::workload::PreparedWorkload;

/// The options of a kernel: its file, symbols, steps and data.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct KernelArgs {
    /// The kernel file; docs/specifications.md describes it
    #[arg(value_name = "INFO.json")]
    file: PathBuf,

    #[command(flatten)]
    values: Values,

    /// Steps, each a launch over the whole range, with a barrier after it
    ///
    /// A buffer that is read and written begins a step as the step before left it.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = integer(1..=u32::MAX))]
    pub steps: u32,

    /// Seed of the random numbers that buffers begin with
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    pub seed: u64,

    /// The initial contents of the buffer, or the value, at a position: the bytes of a file
    #[arg(long, value_name = "POS=FILE", value_parser = at)]
    load: Vec<(usize, PathBuf)>,

    /// A file for the bytes of the buffer at a position at the end
    #[arg(long, value_name = "POS=FILE", value_parser = at)]
    save: Vec<(usize, PathBuf)>,
}

fn at(text: &str) -> Result<(usize, PathBuf), String> {
    contents::assigned(text, "POS=FILE, such as 2=result.bin", |place| {
        place.parse().ok()
    })
}

/// Launches kernels of a file first, as [`KernelDevices::examine`] does, and shows it.
///
/// # Errors
/// As [`KernelDevices::examine`].
pub(super) fn first_launch(
    devices: &mut KernelDevices,
    kernels: &[&Described],
    tried: (&TaskGraph, &[Words], bool),
    (file, stop): (&Path, &AtomicBool),
) -> Result<(), Failure> {
    let waiting = terminal::spinner();
    waiting.set_message("launching the kernel once in a process of its own");
    let examined = devices.examine(kernels, tried, stop);
    waiting.finish_and_clear();
    examined.map_err(|error| match error {
        session::Error::Kernel(what) => Failure::failed(
            what,
            format!(
                "other sizes in {}: of the buffer, or of the work; or other indices in the kernel",
                file.display()
            ),
        ),
        other => other.into(),
    })
}

impl KernelArgs {
    /// Reads the kernel as [`Self::read`] does, and checks the paths of the results.
    ///
    /// # Errors
    /// When any of these fails.
    pub fn prepare(
        &self,
        machine: &MachineArgs,
        paths: &mut Paths,
        stop: &'static AtomicBool,
    ) -> Result<(KernelTask, Saves), Failure> {
        let mut task = self.read(machine, paths, stop)?;
        let saves = Saves(self.saves(&task.user, |file| paths.output(file))?);
        if !self.save.is_empty() {
            let wanted: Vec<usize> = self.save.iter().map(|(position, _)| *position).collect();
            let taken = Arc::clone(&task.results);
            task.user = task.user.with_sink(Sink::new(move |position, bytes| {
                if wanted.contains(&position) {
                    let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                    taken.insert(position, bytes.to_vec());
                }
            }));
        }
        Ok((task, saves))
    }

    /// Reads the kernel and its initial data, and compares it with its source and a
    /// compiler. `paths` gets the files that were read.
    ///
    /// # Errors
    /// When any of these fails.
    pub fn read(
        &self,
        machine: &MachineArgs,
        paths: &mut Paths,
        stop: &'static AtomicBool,
    ) -> Result<KernelTask, Failure> {
        let described = self.values.kernel(&self.file)?;
        let mut devices = KernelDevices::of(&[&described], machine.devices.as_deref())?;
        let user = self.user(&described)?;
        let contents = user.touches_by_data();
        let launches = if user.moves() { self.steps } else { 1 };
        let graph = user.graph(launches).map_err(Failure::of)?;
        let words = [Words::of(user.kernel(), user.info())];
        let tried = (&graph, &words[..], contents);
        first_launch(&mut devices, &[&described], tried, (&self.file, stop))?;
        let mut notes = described.warnings;
        notes.extend(devices.notes);
        if let (None, Some(local)) = (&user.kernel().local, user.local()) {
            notes.push(format!(
                "the kernel uses its work-groups and the file does not say their size; it is \
                 {local:?} work-items"
            ));
        }
        let read = [&self.file, &user.kernel().source].into_iter();
        let read = read.chain(self.load.iter().map(|(_, file)| file));
        *paths = Paths::reading(read.map(PathBuf::as_path));
        Ok(KernelTask {
            args: self.clone(),
            devices: devices.list,
            user,
            stop,
            notes,
            results: Arc::default(),
        })
    }

    /// The kernel with its data.
    fn user(&self, described: &Described) -> Result<UserKernel, Failure> {
        let (mut kernel, info) = (described.kernel.clone(), described.info.clone());
        contents::once(&self.load, |position| format!("position {position}"))?;
        let mut loaded = Vec::new();
        for (position, file) in &self.load {
            let bytes = contents::load(&mut kernel, *position, file)?;
            loaded.extend(bytes.map(|bytes| (*position, bytes)));
        }
        let mut user = UserKernel::new(kernel, info, self.seed);
        if user.buffers().all(|(_, buffer)| !buffer.direction.writes()) {
            return Err(Failure::failed(
                format!("{}: the kernel writes into no buffer", self.file.display()),
                "an outputBuffers or ioBuffers entry for what it computes",
            ));
        }
        for (position, bytes) in loaded {
            let loaded = user.with_contents(position, Arc::new(bytes));
            user = loaded.expect("the file has the buffer's size");
        }
        Ok(user)
    }

    /// The files of results by their positions, each opened by `open`.
    ///
    /// # Errors
    /// When the kernel writes no buffer at a position, and those of `open`.
    pub fn saves<T>(
        &self,
        user: &UserKernel,
        mut open: impl FnMut(&Path) -> Result<T, Failure>,
    ) -> Result<Vec<(usize, T)>, Failure> {
        let written: Vec<usize> = (user.buffers())
            .filter(|(_, buffer)| buffer.direction.writes())
            .map(|(position, _)| position)
            .collect();
        let save = |(position, file): &(usize, PathBuf)| {
            if !written.contains(position) {
                return Err(Failure::usage(
                    format!("--save: the kernel writes no buffer at position {position}"),
                    format!("one of {written:?}"),
                ));
            }
            Ok((*position, open(file)?))
        };
        self.save.iter().map(save).collect()
    }
}

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

    /// Its run over so many nodes. With `is_compared`, this one computes what the result is compared with.
    ///
    /// # Errors
    /// A kernel that cannot be divided, or that does not fit in memory.
    pub fn over_nodes(self, nodes: usize, is_compared: bool) -> Result<KernelOverNodes, Failure> {
        let memory = ByteSize(Memory::obtainable_now());
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
        let made = NodesWork::of_kernel(asked, (&self.devices, nodes), is_compared, self.stop);
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
