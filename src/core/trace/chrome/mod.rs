//! Spans as Chrome trace events, for Perfetto (<https://ui.perfetto.dev>) and
//! `chrome://tracing`.
//!
//! A device is a process, and each of its queues a thread; one more process has
//! the steps. A command is a complete event (`X`) from its start to its end. Its
//! wait from ready to start is a pair of async events (`b`, `e`), because waits in
//! one queue may overlap. A dependency is a flow (`s`, `f`) from the end of one
//! command to the start of another. Devices' memory is a counter (`C`). Times are microseconds. Source: the Trace Event
//! Format, sections "Complete Events", "Async Events", "Flow Events" and "Counter Events".
//!
//! Events are written one by one, so that a long run takes no memory for them. The file
//! may have the run's report, and [`read()`] reads both.

mod read;

use std::collections::BTreeSet;
use std::io::Write;

use serde::Serialize;

use super::{About, Trace};
use crate::time::Nanos;

pub use read::{Read, ReadError, read};

/// What the name of the program begins with in a file.
const PRODUCER: &str = "pdawl ";
/// The name of the track of steps.
const STEPS_NAME: &str = "steps";

/// What data have of a device's memory, a counter's event.
const MEMORY: &str = "memory";
const COUNTER: &str = "C";

/// The process of the steps; device `d` is process `d + 1`.
const STEPS: usize = 0;

#[derive(Serialize)]
struct Event<'a, A> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    ph: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    pid: usize,
    tid: usize,
    /// `e` binds a flow's end to the slice around it instead of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<A>,
}

impl<'a, A> Event<'a, A> {
    fn new(name: &'a str, ph: &'a str, (pid, tid): (usize, usize)) -> Self {
        Self {
            name,
            cat: None,
            ph,
            ts: None,
            dur: None,
            id: None,
            pid,
            tid,
            bp: None,
            args: None,
        }
    }
}

#[derive(Serialize)]
struct CommandArgs<'a> {
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    codelet: Option<&'a str>,
    step: u32,
    first_unit: u64,
    units: u64,
    bytes: u64,
    queued_us: f64,
    wait_us: f64,
}

#[derive(Serialize)]
struct MemoryArgs {
    bytes: u64,
}

#[derive(Serialize)]
struct StepArgs {
    step: usize,
}

#[derive(Serialize)]
struct NameArgs<'a> {
    name: &'a str,
}

/// What the file has beside the events.
#[derive(Serialize)]
struct OtherData<'a> {
    producer: &'a str,
    simulated: bool,
    machine: &'a str,
    workload: &'a str,
    strategy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a serde_json::Value>,
}

/// Writes the trace as one JSON object, with the run's report in `otherData` if there is one.
///
/// # Errors
/// Those of the writer.
pub fn write(
    trace: &Trace,
    about: &About,
    report: Option<&serde_json::Value>,
    out: impl Write,
) -> std::io::Result<()> {
    let mut out = out;
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
    let other = OtherData {
        producer: &format!("{PRODUCER}{}", env!("CARGO_PKG_VERSION")),
        simulated: about.simulated,
        machine: &about.machine,
        workload: &about.workload,
        strategy: &about.strategy,
        report,
    };
    serde_json::to_writer(&mut out, &other)?;
    out.write_all(b",\"traceEvents\":[")?;
    let mut events = Events { out, any: false };
    names(trace, about, &mut events)?;
    for (step, (began, ended)) in trace.steps.iter().enumerate() {
        events.push(&Event {
            cat: Some("step"),
            ts: Some(us(*began)),
            dur: Some(us(ended.saturating_sub(*began))),
            args: Some(StepArgs { step }),
            ..Event::new(&format!("step {step}"), "X", (STEPS, 0))
        })?;
    }
    commands(trace, &mut events)?;
    flows(trace, &mut events)?;
    for (device, at, bytes) in &trace.memory {
        events.push(&Event {
            ts: Some(us(*at)),
            args: Some(MemoryArgs { bytes: *bytes }),
            ..Event::new(MEMORY, COUNTER, (device + 1, 0))
        })?;
    }
    events.out.write_all(b"\n]}\n")?;
    events.out.flush()
}

/// The array of events, as it is written.
struct Events<W> {
    out: W,
    any: bool,
}

impl<W: Write> Events<W> {
    fn push<A: Serialize>(&mut self, event: &Event<A>) -> std::io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    fn name(&mut self, what: &str, pid: usize, tid: usize, name: &str) -> std::io::Result<()> {
        self.push(&Event {
            args: Some(NameArgs { name }),
            ..Event::new(what, "M", (pid, tid))
        })
    }
}

fn names<W: Write>(trace: &Trace, about: &About, events: &mut Events<W>) -> std::io::Result<()> {
    events.name("process_name", STEPS, 0, &about.title())?;
    events.name("thread_name", STEPS, 0, STEPS_NAME)?;
    for (device, name) in trace.devices.iter().enumerate() {
        events.name("process_name", device + 1, 0, name)?;
    }
    let queues: BTreeSet<(usize, usize)> =
        trace.spans.iter().map(|s| (s.device, s.queue)).collect();
    for (device, queue) in queues {
        events.name("thread_name", device + 1, queue, &format!("queue {queue}"))?;
    }
    Ok(())
}

fn commands<W: Write>(trace: &Trace, events: &mut Events<W>) -> std::io::Result<()> {
    for (id, span) in trace.spans.iter().enumerate() {
        let waited = span.started.saturating_sub(span.ready);
        let queue = (span.device + 1, span.queue);
        events.push(&Event {
            cat: Some(span.kind.name()),
            ts: Some(us(span.started)),
            dur: Some(us(span.ended.saturating_sub(span.started))),
            args: Some(CommandArgs {
                label: &span.label,
                codelet: span.codelet.as_deref(),
                step: span.step,
                first_unit: span.units.start,
                units: span.units.end.saturating_sub(span.units.start),
                bytes: span.bytes,
                queued_us: us(span.queued),
                wait_us: us(waited),
            }),
            ..Event::new(&span.label, "X", queue)
        })?;
        if waited == 0 {
            continue;
        }
        let name = format!("wait, queue {}", span.queue);
        for (ph, at) in [("b", span.ready), ("e", span.started)] {
            events.push(&Event::<()> {
                cat: Some("wait"),
                ts: Some(us(at)),
                id: Some(id),
                ..Event::new(&name, ph, queue)
            })?;
        }
    }
    Ok(())
}

/// The dependencies. A flow has to begin within the slice that it comes from, so it
/// begins one nanosecond before that ends.
fn flows<W: Write>(trace: &Trace, events: &mut Events<W>) -> std::io::Result<()> {
    for (id, (before, after)) in trace.flows.iter().enumerate() {
        let (Some(before), Some(after)) = (trace.spans.get(*before), trace.spans.get(*after))
        else {
            continue;
        };
        let last = before.ended.saturating_sub(1).max(before.started);
        for (ph, bp, span, at) in [
            ("s", None, before, last),
            ("f", Some("e"), after, after.started),
        ] {
            events.push(&Event::<()> {
                cat: Some("dependency"),
                ts: Some(us(at)),
                id: Some(id),
                bp,
                ..Event::new("waited for", ph, (span.device + 1, span.queue))
            })?;
        }
    }
    Ok(())
}

fn us(time: Nanos) -> f64 {
    time as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::fixtures::{about, span, two_devices};
    use super::*;
    use crate::runtime::CommandKind;

    fn written(trace: &Trace) -> Value {
        let mut out = Vec::new();
        write(trace, &about(), None, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    fn events<'a>(trace: &'a Value, ph: &str) -> Vec<&'a Value> {
        trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|e| e["ph"] == ph)
            .collect()
    }

    #[test]
    fn a_command_is_a_slice_and_its_wait_a_pair() {
        let json = written(&two_devices());
        assert_eq!(json["otherData"]["simulated"], true);
        let slices = events(&json, "X");
        assert_eq!(slices.len(), 1 + 4);
        let read = slices[4];
        assert_eq!((&read["pid"], &read["tid"]), (&2.into(), &1.into()));
        assert_eq!(read["ts"], 0.6);
        assert_eq!(read["dur"], 0.4);
        assert_eq!(read["args"]["wait_us"], 0.01);
        assert_eq!(read["args"]["bytes"], 4096);
        let (begins, ends) = (events(&json, "b"), events(&json, "e"));
        assert_eq!((begins.len(), ends.len()), (4, 4));
        assert_eq!(begins[3]["ts"], 0.59);
        assert_eq!(ends[3]["ts"], read["ts"]);
        assert_eq!(begins[3]["id"], ends[3]["id"]);
    }

    #[test]
    fn a_flow_leads_from_an_end_to_a_start() {
        let mut trace = two_devices();
        trace.flows = vec![(1, 3), (0, 99)];
        let json = written(&trace);
        let (starts, ends) = (events(&json, "s"), events(&json, "f"));
        // What is out of range is left out.
        assert_eq!((starts.len(), ends.len()), (1, 1));
        assert_eq!(starts[0]["id"], ends[0]["id"]);
        assert_eq!(ends[0]["bp"], "e");
        assert_eq!(starts[0]["ts"], (trace.spans[1].ended - 1) as f64 / 1e3);
        assert_eq!(ends[0]["ts"], trace.spans[3].started as f64 / 1e3);
        assert_eq!(ends[0]["pid"], trace.spans[3].device + 1);
    }

    #[test]
    fn every_device_and_queue_is_named() {
        let json = written(&two_devices());
        let names: Vec<String> = events(&json, "M")
            .iter()
            .map(|e| format!("{}.{} {}", e["pid"], e["tid"], e["args"]["name"]))
            .collect();
        assert_eq!(
            names,
            [
                "0.0 \"stencil 8 x 8 f64, dawl on k40 (simulated)\"",
                "0.0 \"steps\"",
                "1.0 \"host\"",
                "2.0 \"gpu <0> & \\\"co\\\"\"",
                "1.0 \"queue 0\"",
                "2.0 \"queue 0\"",
                "2.1 \"queue 1\"",
            ]
        );
    }

    #[test]
    fn a_hundred_thousand_spans_load() {
        let trace = Trace {
            devices: vec!["gpu".into()],
            spans: (0..100_000)
                .map(|i| span(0, 0, CommandKind::Launch, 100 + i * 50, 140 + i * 50))
                .collect(),
            ..Trace::default()
        };
        assert_eq!(events(&written(&trace), "X").len(), 100_000);
    }
}
