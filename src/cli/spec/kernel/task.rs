//! A kernel that was read and checked: whether it fits, how it can be divided,
//! and what reports say of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pdawl::balance::Strategy;
use pdawl::balance::strategy::Shares;
use pdawl::engine::corun::kernel::examine;
use pdawl::machine::{Device, DeviceKind};
use pdawl::quantity::Bytes;
use pdawl::report::schema::{KernelParameters, Parameters, Workload};
use pdawl::runtime::Runtime;
use pdawl::workload::Divisible;
use pdawl::workload::kernel::UserKernel;

use super::KernelArgs;
use crate::cli::failure::Failure;
use crate::cli::grid::Budget;

/// A kernel that was read and checked.
pub struct KernelTask {
    pub(super) args: KernelArgs,
    pub user: UserKernel,
    /// 0, all on the CPU, to 10, all on the GPU.
    pub partition: Option<u8>,
    /// Whether it runs on one device, since it cannot be divided.
    pub alone: bool,
    /// What the user should know of it.
    pub notes: Vec<String>,
    /// Results that are to be saved.
    pub(super) results: Arc<Mutex<BTreeMap<usize, Vec<u8>>>>,
}

impl KernelTask {
    /// Checks that it fits.
    ///
    /// # Errors
    /// When it does not.
    pub fn fits(&self, budget: Budget) -> Result<(), Failure> {
        // What is written has two versions, and trials and their comparison
        // have copies of their own.
        let needed = self.user.bytes().saturating_mul(8);
        if needed <= budget.memory.0 {
            return Ok(());
        }
        Err(Failure::failed(
            format!(
                "the kernel's buffers need {} of host memory, and {} may be used",
                Bytes(needed),
                Bytes(budget.memory.0)
            ),
            "a smaller size with -D, or --host-memory with more",
        ))
    }

    /// Finds out how it can be divided, on the runtime's best device. If it
    /// cannot be, the device that it runs on is returned, by its place.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn examine(&mut self, runtime: &mut dyn Runtime) -> Result<Option<usize>, Failure> {
        let devices = runtime.devices().to_vec();
        let best = best(&devices);
        if devices.len() == 1 {
            self.alone = true;
        }
        let examined = examine(runtime, best, self.user.clone()).map_err(Failure::of)?;
        self.user = examined.user;
        self.notes.extend(examined.notes);
        let Some(why) = examined.refusal else {
            return Ok(None);
        };
        self.notes.push(format!(
            "it is not divided, and runs on {} alone: {why}",
            devices[best].name
        ));
        self.alone = true;
        Ok(Some(best))
    }

    /// How it is shared where nobody says so: as its file's `partition` has
    /// it, if there are both kinds of devices.
    pub fn partition(&self, devices: &[Device]) -> Option<Strategy> {
        let has = |cpu: bool| devices.iter().any(|d| (d.kind == DeviceKind::Cpu) == cpu);
        let cpu = 1.0 - f64::from(self.partition?) / 10.0;
        let shares = Shares::new(vec![cpu]).ok()?;
        (has(true) && has(false)).then_some(Strategy::Fixed(shares))
    }

    pub fn steps(&self) -> u32 {
        self.args.steps
    }

    pub fn seed(&self) -> u64 {
        self.args.seed
    }

    /// Results of the last run that are to be saved.
    pub fn results(&self) -> BTreeMap<usize, Vec<u8>> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *results)
    }

    /// As reports tell it.
    pub fn described(&self) -> Workload {
        let kernel = self.user.kernel();
        Workload {
            name: "kernel",
            parameters: Parameters::Kernel(KernelParameters {
                file: name(&self.args.file),
                kernel: kernel.name.clone(),
                source: name(&kernel.source),
                global: kernel.global.clone(),
                local: self.user.local().map(<[u64]>::to_vec),
                dimension: self.user.axis().dimension,
                units: self.user.units(),
                bytes: self.user.bytes(),
                sliced: {
                    let slices = self.user.slices();
                    let mut all = [slices.read.clone(), slices.written.clone()].concat();
                    all.sort_unstable();
                    all.dedup();
                    all
                },
                precision: if self.user.fp64() { "f64" } else { "f32" },
                steps: self.args.steps,
                seed: self.args.seed,
            }),
        }
    }
}

/// The fastest device, most likely: a GPU, if there is one.
fn best(devices: &[Device]) -> usize {
    let rank = |device: &Device| (device.kind != DeviceKind::Cpu, device.compute_units);
    (0..devices.len())
        .max_by_key(|index| rank(&devices[*index]))
        .unwrap_or(0)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
