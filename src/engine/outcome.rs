//! What a co-run gives back: figures measured in that run, and its trace.

use crate::balance::Account;
use crate::trace::Trace;

/// A device's part in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceRecord {
    /// Units computed, held and from the pool together.
    pub units: u64,
    /// Of these, units held in the device's own memory.
    pub held: u64,
    /// Seconds in which at least one of its commands ran.
    pub busy_seconds: f64,
    /// From the step's begin to the device's last command's end, in seconds.
    pub finished_seconds: f64,
    /// Pieces of work.
    pub chunks: u64,
    /// Bytes host to device and device to host.
    pub bytes_h2d: u64,
    pub bytes_d2h: u64,
    /// Seconds of copies that ran while one of its kernels ran.
    pub overlapped_seconds: f64,
    /// Seconds of copies.
    pub copy_seconds: f64,
    /// Seconds that its workers worked on kernels, on average, and those of the
    /// longest at work in each, summed; 0 for a device without such.
    pub worker_mean_seconds: f64,
    pub worker_most_seconds: f64,
}

/// One step, or superstep, from barrier to barrier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepRecord {
    pub step: u32,
    /// Steps of the workload in it.
    pub steps: u32,
    pub seconds: f64,
    /// One entry a device.
    pub devices: Vec<DeviceRecord>,
    /// Units that changed hands.
    pub moved: u64,
    /// Seconds that the engine and the balancer themselves took.
    pub engine_seconds: f64,
    /// Seconds that the driver thread spent in enqueueing commands, on the
    /// runtime's clock.
    pub enqueue_seconds: f64,
}

impl StepRecord {
    /// How unequally the devices that had work finished: 1 - mean / latest of
    /// their finishing times, 0 when all finish together.
    pub fn imbalance(&self) -> f64 {
        let finished: Vec<f64> = self
            .devices
            .iter()
            .filter(|d| d.units > 0)
            .map(|d| d.finished_seconds)
            .collect();
        let latest = finished.iter().copied().fold(0.0, f64::max);
        if latest <= 0.0 {
            return 0.0;
        }
        1.0 - finished.iter().sum::<f64>() / (finished.len() as f64 * latest)
    }
}

/// A device that was lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Index of the device.
    pub device: usize,
    /// The step in which it was noticed.
    pub step: u32,
    pub why: String,
    /// Steps computed again because the device's memory held their result.
    pub repeated: u32,
    /// The step from which on it took part again, if it came back.
    pub back: Option<u32>,
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Device names, by index.
    pub devices: Vec<String>,
    pub steps: Vec<StepRecord>,
    /// Seconds of all steps, barrier to barrier, losses' repetitions included.
    pub seconds: f64,
    /// Seconds before the first step: allocation, first data, kernel builds.
    pub setup_seconds: f64,
    /// Of these, seconds of the probes that a balancer asked for.
    pub probe_seconds: f64,
    /// Seconds after the last step until the result is in host memory.
    pub gather_seconds: f64,
    pub losses: Vec<Loss>,
    /// Ended early on request.
    pub interrupted: bool,
    /// Largest difference from the reference, if the run was verified.
    pub max_abs_error: Option<f64>,
    /// Whether it was verified and found right.
    pub verified: Option<bool>,
    /// The estimate of the largest eigenvalue's magnitude, if the run was an
    /// iteration that finds one.
    pub eigenvalue: Option<f64>,
    /// The sum of all absolute changes in the last step, if the run was an iteration
    /// that sums them.
    pub change: Option<f64>,
    /// What the user should know of the run.
    pub notes: Vec<String>,
    /// Parts of the devices, and the seconds that the balancer expected of a step with each.
    pub considered: Vec<(Vec<usize>, f64)>,
    /// What the balancer tells of its cost model, if it works with one.
    pub model: Option<Account>,
    /// Seconds from ready to start, summed over a device's commands, by device;
    /// empty if no times were kept. Waits at the same time count each.
    pub wait_seconds: Vec<f64>,
    pub trace: Trace,
}

impl Outcome {
    /// Median seconds of a step; `None` without steps.
    pub fn median_step(&self) -> Option<f64> {
        let each = |of: &StepRecord| of.seconds / f64::from(of.steps.max(1));
        let mut seconds: Vec<f64> = self.steps.iter().map(each).collect();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }
}
