//! Reads a trace that [`super::write`] wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use thiserror::Error;

use super::{COUNTER, MEMORY, PRODUCER, STEPS_NAME};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::{About, Span, Trace};

/// What a file has.
#[derive(Debug)]
pub struct Read {
    /// When commands were submitted is not in the file; it is taken for when they were
    /// queued. Nor are the times of workers.
    pub trace: Trace,
    pub about: About,
    /// The run's report; `None` in files of older versions and of `pdawl exec`.
    pub report: Option<serde_json::Value>,
}

/// Why a file is no trace of pdawl.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("it is not JSON: {0}")]
    Json(serde_json::Error),
    /// A report, as `--format json` prints it.
    #[error("it is a report ({0}), which has no commands")]
    Report(String),
    #[error("it is no trace of pdawl")]
    Other,
}

#[derive(Deserialize)]
struct File {
    schema: Option<String>,
    #[serde(rename = "otherData")]
    other: Option<OtherData>,
    #[serde(rename = "traceEvents", default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct OtherData {
    producer: String,
    simulated: bool,
    machine: String,
    workload: String,
    strategy: String,
    report: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    cat: String,
    ph: String,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    id: usize,
    pid: usize,
    tid: usize,
    #[serde(default)]
    args: Arguments,
}

/// Those of all kinds of events.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Arguments {
    name: String,
    codelet: Option<String>,
    step: u32,
    first_unit: u64,
    units: u64,
    bytes: u64,
    queued_us: f64,
    wait_us: f64,
}

/// Reads a file.
///
/// # Errors
/// For what is no trace of pdawl.
pub fn read(json: &[u8]) -> Result<Read, ReadError> {
    let file: File = serde_json::from_slice(json).map_err(|error| match error.is_data() {
        true => ReadError::Other,
        false => ReadError::Json(error),
    })?;
    let Some(other) = file.other.filter(|of| of.producer.starts_with(PRODUCER)) else {
        return Err(file.schema.map_or(ReadError::Other, ReadError::Report));
    };
    Ok(Read {
        trace: trace(&file.events),
        about: About {
            workload: other.workload,
            strategy: other.strategy,
            machine: other.machine,
            simulated: other.simulated,
        },
        report: other.report,
    })
}

fn trace(events: &[Event]) -> Trace {
    // Processes are devices, but for those of steps.
    let of_steps: BTreeSet<usize> = (events.iter())
        .filter(|event| event.name == "thread_name" && event.args.name == STEPS_NAME)
        .map(|event| event.pid)
        .collect();
    let names: BTreeMap<usize, &str> = (events.iter())
        .filter(|event| event.name == "process_name" && !of_steps.contains(&event.pid))
        .map(|event| (event.pid, &*event.args.name))
        .collect();
    let devices: HashMap<usize, usize> = names.keys().copied().zip(0..).collect();
    let complete = || events.iter().filter(|event| event.ph == "X");
    let spans: Vec<Span> = complete()
        .filter_map(|event| span(event, *devices.get(&event.pid)?))
        .collect();
    let steps = complete().filter(|event| of_steps.contains(&event.pid));
    Trace {
        devices: names.values().map(|name| (*name).to_owned()).collect(),
        steps: steps.map(times).collect(),
        flows: flows(events, &spans, &devices),
        memory: (events.iter())
            .filter(|event| event.ph == COUNTER && event.name == MEMORY)
            .filter_map(|event| {
                let device = devices.get(&event.pid)?;
                Some((*device, nanos(event.ts), event.args.bytes))
            })
            .collect(),
        spans,
    }
}

fn span(event: &Event, device: usize) -> Option<Span> {
    let kinds = [
        CommandKind::Write,
        CommandKind::Launch,
        CommandKind::Read,
        CommandKind::Copy,
    ];
    let (started, ended) = times(event);
    let args = &event.args;
    let queued = nanos(args.queued_us);
    Some(Span {
        device,
        queue: event.tid,
        kind: kinds.into_iter().find(|kind| kind.name() == event.cat)?,
        label: event.name.clone().into(),
        codelet: args.codelet.clone().map(Into::into),
        step: args.step,
        units: args.first_unit..args.first_unit.saturating_add(args.units),
        ready: started.saturating_sub(nanos(args.wait_us)),
        queued,
        submitted: queued,
        started,
        ended,
        bytes: args.bytes,
        workers: None,
    })
}

/// Begin and end of an event.
fn times(event: &Event) -> (Nanos, Nanos) {
    let began = nanos(event.ts);
    (began, began.saturating_add(nanos(event.dur)))
}

/// A time in microseconds that was written of whole nanoseconds.
fn nanos(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}

/// Pairs of spans that flows connect. Of commands of a queue with equal times, any.
fn flows(events: &[Event], spans: &[Span], devices: &HashMap<usize, usize>) -> Vec<(usize, usize)> {
    let place = |event: &Event| {
        let device = devices.get(&event.pid)?;
        Some((*device, event.tid, nanos(event.ts)))
    };
    let mut lasts = HashMap::new();
    let mut starts = HashMap::new();
    for (at, span) in spans.iter().enumerate() {
        // A flow begins within its span, as `super::flows` says.
        let last = span.ended.saturating_sub(1).max(span.started);
        lasts.insert((span.device, span.queue, last), at);
        starts.insert((span.device, span.queue, span.started), at);
    }
    let mut begun = HashMap::new();
    let mut flows = Vec::new();
    for event in events {
        let found = |places: &HashMap<_, usize>| places.get(&place(event)?).copied();
        match &*event.ph {
            "s" => {
                begun.insert(event.id, found(&lasts));
            }
            "f" => {
                let from = begun.remove(&event.id).flatten();
                flows.extend(from.zip(found(&starts)));
            }
            _ => {}
        }
    }
    flows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::write;
    use super::*;
    use crate::trace::fixtures::{about, two_devices};

    fn written(trace: &Trace, report: Option<&serde_json::Value>) -> Vec<u8> {
        let mut out = Vec::new();
        write(trace, &about(), report, &mut out).unwrap();
        out
    }

    #[test]
    fn what_was_written_comes_back() {
        let mut trace = two_devices();
        trace.devices.push("idle".into());
        trace.flows = vec![(1, 3), (1, 2)];
        trace.spans[2].codelet = Some("gemm".into());
        trace.spans[0].started = 123_456_789_012_345;
        trace.spans[0].ended = 123_456_789_999_999;
        for span in &mut trace.spans {
            span.submitted = span.queued;
        }
        let report = json!({"schema": "pdawl-report/2"});
        let read = read(&written(&trace, Some(&report))).unwrap();
        assert_eq!(read.trace, trace);
        assert_eq!(read.about, about());
        assert_eq!(read.report, Some(report));
    }

    #[test]
    fn a_file_without_a_report_has_a_trace() {
        let read = read(&written(&two_devices(), None)).unwrap();
        assert_eq!(read.report, None);
        assert_eq!(read.trace.spans.len(), 4);
    }

    #[test]
    fn other_files_are_distinguished() {
        let of = |json: &str| read(json.as_bytes()).map(|_| ());
        assert!(matches!(of("GIF89a"), Err(ReadError::Json(_))));
        assert!(matches!(of("{\"traceEvents\": ["), Err(ReadError::Json(_))));
        for other in [
            "[]",
            "{}",
            "{\"traceEvents\": []}",
            "{\"traceEvents\": [{\"pid\": \"a\"}]}",
        ] {
            assert!(matches!(of(other), Err(ReadError::Other)), "{other}");
        }
        let report = of("{\"schema\": \"pdawl-report/2\", \"seconds\": 1.0}");
        assert!(matches!(report, Err(ReadError::Report(schema)) if schema == "pdawl-report/2"));
    }

    #[test]
    fn times_out_of_range_are_drawn_somewhere() {
        let text = String::from_utf8(written(&two_devices(), None)).unwrap();
        let wild = text
            .replace("\"ts\":0.6", "\"ts\":-1e300")
            .replace("\"dur\":0.4", "\"dur\":1e300");
        let trace = read(wild.as_bytes()).unwrap().trace;
        let chart = crate::trace::gantt::Chart {
            trace: &trace,
            about: about(),
            sheet: Default::default(),
        };
        crate::trace::gantt::write_html(&[chart], std::io::sink()).unwrap();
    }
}
