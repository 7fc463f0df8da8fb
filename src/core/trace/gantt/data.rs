//! The layout of charts as data: what `chart.js` draws on a canvas, as `svg` does in a file.
//!
//! Times are nanoseconds from the run's begin, lengths are pixels.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::Serialize;

use super::labels::{Mark, subtitle};
use super::layout::{BAR, BOTTOM, COPY, LINE, ROW, Window};
use super::legend::{Legend, Palette, PaletteEntry};
use super::rows::{Row, flows};
use super::svg::Frame;
use super::{Chart, Happened, Table};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::{Span, Trace};

/// Commands of at least this many pixels are bars of their own, so that they can
/// be told apart when the chart is enlarged.
const THINNEST: f64 = 0.05;

/// Writes the layout of charts on one time axis as JSON.
///
/// # Errors
/// Those of the writer.
pub fn write(charts: &[Chart], out: impl Write) -> io::Result<()> {
    let palette = Palette::of(charts.iter().map(|chart| chart.trace));
    let frames = Frame::all(charts, &palette, THINNEST);
    let drawn = Drawn {
        heights: [ROW, BAR, COPY, LINE, BOTTOM],
        palette: &palette.entries,
        charts: (frames.iter())
            .map(|frame| DrawnChart::of(frame, &frames))
            .collect(),
    };
    Ok(serde_json::to_writer(out, &drawn)?)
}

/// Charts on one time axis.
#[derive(Serialize)]
struct Drawn<'a> {
    /// Heights of a row, of the bars of kernels and of copies, of a line of text, and of what is
    /// below a plot.
    heights: [u64; 5],
    palette: &'a [PaletteEntry],
    charts: Vec<DrawnChart<'a>>,
}

#[derive(Serialize)]
struct DrawnChart<'a> {
    title: String,
    subtitle: String,
    /// What is shown before the run's begin, and after it.
    lead: Nanos,
    after: Nanos,
    /// Of the plot.
    height: u64,
    rows: Vec<DrawnRow>,
    strips: Vec<DrawnStrip>,
    uses: Vec<DrawnUse>,
    /// What rows name by its number.
    words: Vec<String>,
    /// The begin of each step, and its length.
    steps: Vec<[i64; 2]>,
    /// Time and row of the end of a command, and of the start of one that waited for it.
    flows: Vec<(i64, usize, i64, usize)>,
    marks: &'a [Mark],
    /// Steps that begin with another plan.
    plans: &'a [Happened],
    legend: &'a Legend,
    table: &'a Option<Table>,
    notes: &'a [String],
}

/// What a device has of its memory and takes of its links.
#[derive(Serialize)]
struct DrawnUse {
    device: String,
    /// Times, and the bytes of its own memory that data have from then on.
    memory: Vec<(i64, u64)>,
    /// Of the time shown, in parts of equal length: bytes to the device, back, and from others.
    links: [Vec<f64>; 3],
}

/// Parts of the time of which each has its bytes.
const PARTS: usize = 200;

impl DrawnUse {
    /// Of the devices with memory of their own, or with copies.
    fn all(trace: &Trace, window: &Window, since: &impl Fn(Nanos) -> i64) -> Vec<Self> {
        let part = (window.whole.end - window.whole.start).max(1) as f64 / PARTS as f64;
        let place = |at: Nanos| at.saturating_sub(window.whole.start) as f64 / part;
        let mut uses: Vec<Self> = (trace.devices.iter())
            .map(|device| Self {
                device: device.clone(),
                memory: Vec::new(),
                links: std::array::from_fn(|_| vec![0.0; PARTS]),
            })
            .collect();
        for span in &trace.spans {
            let copies = [CommandKind::Write, CommandKind::Read, CommandKind::Copy];
            let link = copies.iter().position(|kind| *kind == span.kind);
            let (Some(link), Some(of)) = (link, uses.get_mut(span.device)) else {
                continue;
            };
            let (from, until) = (place(span.started), place(span.ended));
            let rate = span.bytes as f64 / (until - from).max(1e-9);
            for (at, bytes) in of.links[link].iter_mut().enumerate().skip(from as usize) {
                let within = until.min((at + 1) as f64) - from.max(at as f64);
                if within <= 0.0 {
                    break;
                }
                *bytes += rate * within;
            }
        }
        // Of what changes within a pixel, the most is shown, and what it is in the end.
        for (device, at, bytes) in &trace.memory {
            let Some(of) = uses.get_mut(*device) else {
                continue;
            };
            match &mut of.memory[..] {
                [.., (begin, most), last] if ((since(*at) - *begin) as f64) < part / 4.0 => {
                    *most = (*most).max(last.1);
                    *last = (since(*at), *bytes);
                }
                _ => of.memory.push((since(*at), *bytes)),
            }
        }
        uses.retain(|of| {
            !of.memory.is_empty() || of.links.iter().flatten().any(|bytes| *bytes > 0.0)
        });
        uses
    }
}

/// The bars of a queue, each figure in a list of its own.
#[derive(Default, Serialize)]
struct DrawnRow {
    top: u64,
    label: String,
    began: Vec<i64>,
    length: Vec<Nanos>,
    /// Of the palette.
    entry: Vec<usize>,
    /// What single commands are, as a number of the words; 0 for others.
    what: Vec<usize>,
    step: Vec<u32>,
    units: Vec<[u64; 2]>,
    bytes: Vec<u64>,
    wait: Vec<Nanos>,
    /// Of bars of several commands: entries of the palette, numbers of commands, their times.
    several: BTreeMap<usize, Vec<(usize, u64, Nanos)>>,
}

#[derive(Serialize)]
struct DrawnStrip {
    top: u64,
    device: String,
    label: String,
    meaning: String,
    /// Fractions of the run with kernels, and with copies alone.
    whole: [f64; 2],
    /// Of the time shown, in which parts of equal length a device was busy with kernels, and
    /// with anything: thousandths.
    begin: i64,
    length: Nanos,
    kernels: Vec<u16>,
    busy: Vec<u16>,
}

impl<'a> DrawnChart<'a> {
    fn of(frame: &'a Frame, all: &[Frame]) -> Self {
        let (trace, sheet) = (frame.chart.trace, &frame.chart.sheet);
        let window = &frame.window;
        let since = |at: Nanos| at as i64 - window.run.start as i64;
        let mut words = Words::default();
        let rows = frame.rows.iter().zip(&frame.tops.rows);
        let rows = rows
            .map(|(row, top)| DrawnRow::of(row, *top, frame.palette, &mut words, &since))
            .collect();
        let strips = frame.tops.strips.iter();
        Self {
            title: frame.chart.about.title(),
            subtitle: subtitle(frame, all),
            lead: window.lead,
            after: window.span - window.lead,
            height: frame.tops.height,
            rows,
            strips: strips
                .map(|(device, top)| frame.drawn_strip(*device, *top, &since))
                .collect(),
            uses: DrawnUse::all(trace, window, &since),
            words: words.all,
            steps: (trace.steps.iter())
                .map(|(began, ended)| [since(*began), since((*ended).max(*began)) - since(*began)])
                .collect(),
            flows: (flows(trace, &frame.rows).into_iter())
                .map(|(ended, from, started, to)| (since(ended), from, since(started), to))
                .collect(),
            marks: &frame.marks,
            plans: &sheet.plans,
            legend: &frame.legend,
            table: &sheet.table,
            notes: &sheet.notes,
        }
    }
}

impl Frame<'_> {
    fn drawn_strip(&self, device: usize, top: u64, since: &impl Fn(Nanos) -> i64) -> DrawnStrip {
        let (label, meaning) = self.strips.label(device);
        let thousandths = |part: f64| (part * 1e3).round() as u16;
        let buckets = self.strips.of_device(device);
        DrawnStrip {
            top,
            device: self.names.devices.get(device).cloned().unwrap_or_default(),
            label,
            meaning,
            whole: self.strips.whole(device),
            begin: since(self.window.whole.start),
            length: self.window.whole.end - self.window.whole.start,
            kernels: buckets.iter().map(|of| thousandths(of.kernels)).collect(),
            busy: buckets.iter().map(|of| thousandths(of.any())).collect(),
        }
    }
}

/// Words by their numbers.
#[derive(Default)]
struct Words {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Words {
    fn number(&mut self, words: String) -> usize {
        if self.all.is_empty() {
            self.all.push(String::new());
        }
        let next = self.all.len();
        let number = *self.numbers.entry(words.clone()).or_insert(next);
        if number == next {
            self.all.push(words);
        }
        number
    }
}

impl DrawnRow {
    fn of(
        row: &Row,
        top: u64,
        palette: &Palette,
        words: &mut Words,
        since: &impl Fn(Nanos) -> i64,
    ) -> Self {
        let mut drawn = Self {
            top,
            label: row.label(),
            ..Self::default()
        };
        for (at, bar) in row.bars.iter().enumerate() {
            let entry = bar.entry();
            drawn.began.push(since(bar.began));
            drawn.length.push(bar.ended - bar.began);
            drawn.entry.push(entry);
            let what = bar.span.map(|span| span.what(&palette.entries[entry]));
            drawn.what.push(what.map_or(0, |what| words.number(what)));
            let of = |figure: fn(&Span) -> u64| bar.span.map_or(0, figure);
            drawn.step.push(bar.span.map_or(0, |span| span.step));
            let units = bar.span.map_or(0..0, |span| span.units.clone());
            drawn.units.push([units.start, units.end]);
            drawn.bytes.push(of(|span| span.bytes));
            drawn
                .wait
                .push(of(|span| span.started.saturating_sub(span.ready)));
            if bar.span.is_none() {
                let parts = bar.parts.iter();
                let parts = parts.map(|(entry, part)| (*entry, part.commands, part.busy));
                drawn.several.insert(at, parts.collect());
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::fixtures::{about, two_devices};

    #[test]
    fn all_bytes_and_bars_are_there() {
        let mut trace = two_devices();
        trace.spans[1].bytes = 640;
        trace.spans[3].bytes = 64;
        let chart = Chart {
            trace: &trace,
            about: about(),
            sheet: Default::default(),
        };
        let mut out = Vec::new();
        write(&[chart], &mut out).unwrap();
        let data: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let chart = &data["charts"][0];
        // The run begins at 90, and the GPU's kernel at 300.
        assert_eq!(chart["rows"][1]["began"], serde_json::json!([10, 210]));
        assert_eq!(chart["rows"][1]["length"], serde_json::json!([200, 400]));
        let [gpu] = &chart["uses"].as_array().unwrap()[..] else {
            panic!("{chart}");
        };
        assert_eq!(gpu["memory"], serde_json::json!([[10, 64], [510, 96]]));
        for (link, bytes) in [640.0, 64.0, 0.0].into_iter().enumerate() {
            let parts = gpu["links"][link].as_array().unwrap();
            let sum: f64 = parts.iter().filter_map(serde_json::Value::as_f64).sum();
            assert!((sum - bytes).abs() < 1e-6, "{sum}");
        }
    }
}
