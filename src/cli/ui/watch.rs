//! A run of this process that a page shows while it goes on: `pdawl run ... --watch`.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use pdawl_api::report::{Printed, Report};
use pdawl_api::session::StepRecord;
use pdawl_api::trace::{Trace, gantt};
use serde::Serialize;

use super::server::{Server, joined, open};
use crate::failure::Failure;
use crate::{interrupt, terminal};

/// What the page gets of a run.
#[derive(Default)]
struct Watched {
    /// Names of the devices whose shares steps have.
    devices: Vec<String>,
    steps: Vec<Step>,
    /// Its report, and its chart.
    ended: Option<Vec<u8>>,
}

/// A step of a co-run.
#[derive(Serialize)]
struct Step {
    step: u32,
    steps: u32,
    seconds: f64,
    shares: Vec<f64>,
}

static WATCHED: OnceLock<Mutex<Watched>> = OnceLock::new();

fn with<R>(act: impl FnOnce(&mut Watched) -> R) -> Option<R> {
    let mut watched = WATCHED
        .get()?
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    Some(act(&mut watched))
}

/// Begins to serve a page that shows the run of this process, and opens it.
///
/// # Errors
/// When it cannot be served.
pub fn start() -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let (listener, server) = Server::listen(0, b"[]".to_vec(), stop)?;
    let address = format!("{}#watch", server.address);
    let serving = thread::Builder::new()
        .name("page".to_owned())
        .spawn(move || server.accept(&listener));
    if let Err(error) = serving {
        let what = format!("the system cannot start a thread: {error}");
        return Err(Failure::failed(what, "the run without --watch"));
    }
    WATCHED.get_or_init(Mutex::default);
    terminal::message(&format!("the run is shown at {address}"));
    open(&address);
    Ok(())
}

/// The run has these devices.
pub fn devices(names: impl Iterator<Item = String>) {
    with(|watched| watched.devices = names.collect());
}

/// A step of the run has ended.
pub fn step(record: &StepRecord) {
    with(|watched| {
        let units: u64 = record.devices.iter().map(|device| device.units).sum();
        let share = |of: u64| of as f64 / units.max(1) as f64;
        watched.steps.push(Step {
            step: record.step,
            steps: record.steps,
            seconds: record.seconds,
            shares: record.devices.iter().map(|of| share(of.units)).collect(),
        });
    });
}

/// The run has ended. Its commands are shown if they were traced.
pub fn ended(report: &Report, trace: &Trace) {
    with(|watched| {
        let printed = serde_json::to_vec(&Printed::from(report)).unwrap_or_default();
        let mut chart = Vec::new();
        let drawn = !trace.spans.is_empty()
            && gantt::write_data(&[report.chart(trace)], &mut chart).is_ok();
        watched.ended = Some(joined(&printed, drawn.then_some(&chart)));
    });
}

/// How far the run is, as the page gets it; `null` if none is watched.
pub fn so_far() -> Vec<u8> {
    let text = |watched: &mut Watched| {
        let (what, done, all) = terminal::done().unwrap_or_default();
        let ended = watched.ended.as_deref().unwrap_or(b"null");
        let so_far = serde_json::json!({
            "what": what,
            "done": done,
            "all": all,
            "devices": watched.devices,
            "steps": watched.steps,
        });
        let so_far = so_far.to_string();
        // The end is JSON already.
        [
            so_far.strip_suffix('}').unwrap_or_default().as_bytes(),
            b",\"ended\":",
            ended,
            b"}",
        ]
        .concat()
    };
    with(text).unwrap_or_else(|| b"null".to_vec())
}

/// Serves the page of a run that has ended until Ctrl-C.
pub fn stay() {
    if WATCHED.get().is_none() {
        return;
    }
    terminal::message("the page stays until Ctrl-C");
    if let Ok(stop) = interrupt::listen() {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
