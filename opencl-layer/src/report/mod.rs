//! What this process did, for `pdawl exec`: written at the process's end, and once a
//! second where the program waits, so that a program that is killed leaves a report.
//!
//! The functions here are called by the parts that do the work. They do nothing unless
//! `PDAWL_REPORT` or `PDAWL_TRACE` is set.
//!
//! * Here is what counts a queue's commands.
//! * `spans` has the times of commands, for a trace.
//! * `write` makes files of all this.

mod spans;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, LazyLock};
use std::time::{Instant, SystemTime};

use pdawl_api::profile::kernels::KernelKey;
use pdawl_api::report::exec::{self, Device};
use pdawl_api::runtime::CommandKind;
use pdawl_api::trace::Span;

use crate::command::Command;
use crate::drivers::RealDevice;
use crate::handle::{AddressHasher, Ref};
use crate::lock::{COUNTS, Guard, Mutex, REPORT};
use crate::native::Native;
use crate::own_queue::Lane;
use crate::queue::{Queue, State};
use crate::settings::settings;

use self::spans::{Ended, Pending};
use crate::context::Context;
use crate::launch::Launch;
use crate::records::KernelRecord;

/// What the process did, beside what each queue did.
struct Report {
    pid: u32,
    began: Instant,
    since_1970: f64,
    devices: Vec<Device>,
    /// In the order in which they were made.
    queues: Vec<Arc<Mutex<Counts, COUNTS>>>,
    /// Samples by kernel and device.
    samples: BTreeMap<(KernelKey, String), u64>,
    /// Copies and bytes by the memories from and to which they went.
    moved: BTreeMap<(String, String), (u64, u64)>,
    spans: spans::Spans,
    written: Instant,
}

fn report() -> Guard<'static, Report, REPORT> {
    static STATE: LazyLock<Mutex<Report, REPORT>> = LazyLock::new(|| Mutex::new(Report::new()));
    STATE.lock()
}

impl Report {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            pid: std::process::id(),
            began: Instant::now(),
            since_1970: now.map_or(0.0, |since| since.as_secs_f64()),
            devices: Vec::new(),
            queues: Vec::new(),
            samples: BTreeMap::new(),
            moved: BTreeMap::new(),
            spans: spans::Spans::default(),
            written: Instant::now(),
        }
    }
}

/// The process has asked for the platform, which has these devices.
pub fn begin(devices: &[RealDevice]) {
    if !settings().reports() {
        return;
    }
    let described = devices.iter().map(|device| Device {
        name: device.name.clone(),
        model: device.model.clone(),
        driver: device.driver.name.clone(),
    });
    report().devices = described.collect();
    write::at_exit();
    write::now(false);
}

/// A queue was made.
pub fn made(made: &Queue) {
    if settings().reports() {
        let mut report = report();
        let counts = Counts::new(report.queues.len(), &made.context);
        let counts = Arc::new(Mutex::new(counts));
        report.queues.push(Arc::clone(&counts));
        drop(report);
        made.state().kept.of::<QueueRecord>().0 = Some(counts);
    }
}

/// What is counted for a queue; `None` where there is no report.
#[derive(Default)]
struct QueueRecord(Option<Arc<Mutex<Counts, COUNTS>>>);

/// The counts of a queue, for a short time.
fn counts(state: &mut State) -> Option<Guard<'_, Counts, COUNTS>> {
    match settings().reports() {
        true => state.kept.of::<QueueRecord>().0.as_deref().map(Mutex::lock),
        false => None,
    }
}

/// A command has been given to a driver.
pub fn issued(state: &mut State, command: &Command, lane: &Lane, native: Option<&Arc<Native>>) {
    if let Some(mut counts) = counts(state) {
        counts.issued(command, lane.place);
        if let Some(native) = native.filter(|_| settings().traces()) {
            counts.pending(spans::of(command), lane.place, native);
        }
    }
}

/// Bytes were copied between the host and a lane's device for a command.
pub fn moved(state: &mut State, lane: &Lane, bytes: usize, to_host: bool, native: &Arc<Native>) {
    if let Some(mut counts) = counts(state) {
        let device = counts.device(lane.place);
        let (from, to) = match to_host {
            true => (device, "host".to_owned()),
            false => ("host".to_owned(), device),
        };
        if settings().traces() {
            let kind = match to_host {
                true => CommandKind::Read,
                false => CommandKind::Write,
            };
            let span = spans::untimed(kind, "moved", bytes as u64);
            counts.pending(span, lane.place, native);
        }
        drop(counts);
        let mut report = report();
        let sums = report.moved.entry((from, to)).or_default();
        *sums = (sums.0 + 1, sums.1 + bytes as u64);
    }
}

/// A sample of a kernel has ended.
pub fn sampled(queue: &Queue, key: &KernelKey, place: usize, native: &Arc<Native>) {
    if !settings().reports() {
        return;
    }
    let device = queue.context.places[place].real.name.clone();
    let mut report = report();
    if settings().traces() {
        report.spans.sample(&device, native);
    }
    *report.samples.entry((key.clone(), device)).or_default() += 1;
}

/// The chosen map is predicted to take so many seconds.
pub fn predicted(state: &mut State, seconds: f64) {
    if let Some(mut counts) = counts(state) {
        counts.predicted(seconds);
    }
}

/// The program has waited for the queue.
pub fn synchronised(queue: &Ref<Queue>) {
    if !settings().reports() {
        return;
    }
    let ended = match counts(&mut queue.state()) {
        Some(mut counts) => counts.synchronised(),
        None => return,
    };
    let mut report = report();
    report.spans.add(ended);
    let due = report.written.elapsed() >= write::INTERVAL;
    drop(report);
    if due {
        write::now(false);
    }
}

/// The launches of a queue, by their records' numbers.
#[derive(Default)]
struct Launches(HashMap<usize, Counted, BuildHasherDefault<AddressHasher>>);

/// Launches with one record.
pub struct Counted {
    pub name: String,
    pub record: Arc<KernelRecord>,
    /// Launches by place.
    pub at: Vec<u64>,
}

impl Launches {
    pub fn count(&mut self, launch: &Launch, place: usize) {
        let record = launch.record();
        let counted = self.0.entry(record.number).or_insert_with(|| Counted {
            name: launch.kernel.name.to_string_lossy().into_owned(),
            record: Arc::clone(record),
            at: vec![0; launch.kernel.program.context.places.len()],
        });
        counted.at[place] += 1;
    }

    pub fn all(&self) -> impl Iterator<Item = &Counted> {
        self.0.values()
    }
}

/// The counts of a queue. They outlive it.
struct Counts {
    number: usize,
    /// By place.
    devices: Vec<exec::QueueDevice>,
    /// What profiles call the places' devices.
    profiles: Vec<String>,
    pub launches: Launches,
    /// The place of its last launch.
    place: Option<usize>,
    epoch: Epoch,
    pending: Vec<Pending>,
}

/// What the queue does until the program waits.
#[derive(Default)]
struct Epoch {
    began: Option<Instant>,
    has_launch: bool,
    /// The predicted seconds of the map, from the moment of the first prediction on.
    predicted: Option<(f64, Instant)>,
}

impl Counts {
    pub fn new(number: usize, context: &Context) -> Self {
        let devices = context.places.iter().map(|place| exec::QueueDevice {
            name: place.real.name.clone(),
            ..exec::QueueDevice::default()
        });
        Self {
            number,
            devices: devices.collect(),
            profiles: context
                .places
                .iter()
                .map(|place| place.profile.clone())
                .collect(),
            launches: Launches::default(),
            place: None,
            epoch: Epoch::default(),
            pending: Vec::new(),
        }
    }

    pub fn device(&self, place: usize) -> String {
        self.devices[place].name.clone()
    }

    /// What profiles call a place's device.
    pub fn profile(&self, place: usize) -> &str {
        &self.profiles[place]
    }

    pub fn places(&self) -> usize {
        self.devices.len()
    }

    pub fn issued(&mut self, command: &Command, place: usize) {
        self.epoch.began.get_or_insert_with(Instant::now);
        let device = &mut self.devices[place];
        device.commands += 1;
        if let Some(launch) = command.launch() {
            device.launches += 1;
            self.epoch.has_launch = true;
            self.place = Some(place);
            self.launches.count(launch, place);
        }
    }

    pub fn pending(&mut self, span: Span, place: usize, native: &Arc<Native>) {
        if spans::has_room(self.pending.len()) {
            self.pending.push(Pending::new(span, place, native));
        }
    }

    pub fn predicted(&mut self, seconds: f64) {
        let from = self.epoch.predicted.map(|(_, from)| from);
        self.epoch.predicted = Some((seconds, from.unwrap_or_else(Instant::now)));
    }

    /// Ends the epoch. Returns the commands that have ended.
    pub fn synchronised(&mut self) -> Vec<Ended> {
        let epoch = std::mem::take(&mut self.epoch);
        if let (Some(began), Some(place), true) = (epoch.began, self.place, epoch.has_launch) {
            let seconds = began.elapsed().as_secs_f64();
            let device = &mut self.devices[place];
            device.epochs += 1;
            device.measured_seconds += seconds;
            if let Some((predicted, from)) = epoch.predicted {
                device.predicted_epochs += 1;
                device.predicted_seconds += predicted;
                device.predicted_measured_seconds += from.elapsed().as_secs_f64();
            }
        }
        let mut ended = Vec::new();
        self.pending.retain(|pending| {
            let has_ended = pending.ended(self.number, &self.devices[pending.place].name);
            let runs = has_ended.is_none();
            // What failed, or has no times, is forgotten.
            ended.extend(has_ended.and_then(Result::ok));
            runs
        });
        ended
    }

    /// The queue as reports have it.
    pub fn described(&self) -> exec::Queue {
        let used = self.devices.iter().filter(|device| device.commands > 0);
        exec::Queue {
            number: self.number,
            device: self.place.map(|place| self.device(place)),
            devices: used.cloned().collect(),
        }
    }
}
