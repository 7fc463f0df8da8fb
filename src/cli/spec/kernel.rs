//! A kernel of a specification that is to be run; `task` checks and divides it.

mod task;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};

use clap::Args;
use indicatif::ProgressBar;
use pdawl::graph::spec::Described;
use pdawl::session::specified::{KernelDevices, Words};
use pdawl::workload::kernel::{Sink, UserKernel};

pub use task::{KernelTask, failure};

use super::contents;
use super::described::Values;
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::integer::integer;
use crate::paths::Paths;
use crate::saves::Saves;
use crate::terminal;

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

/// Shows that kernels are launched first.
pub(super) fn first_launch() -> ProgressBar {
    let waiting = terminal::spinner();
    waiting.set_message("launching the kernel once in a process of its own");
    waiting
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
        let waiting = first_launch();
        let examined = devices.examine(&[&described], (&graph, &words, contents), stop);
        waiting.finish_and_clear();
        examined?;
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
            let loaded = user.with_contents(position, bytes);
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
