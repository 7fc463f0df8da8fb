//! Draws charts as SVG.

use std::io::{self, Write};
use std::ops::Range;

use super::labels::{self, Mark, axis, heading, names, step_lines, step_numbers, subtitle};
use super::layout::{
    BAR, BOTTOM, COPY, FONT, LINE, MARGIN, Names, PLOT, Pixels, RIGHT, ROW, Tops, Window,
    shortened, tops,
};
use super::legend::{Legend, Palette, PaletteEntry};
use super::rows::{Bar, Row, flows, rows};
use super::table::Table;
use super::{Chart, Escaped};
use crate::quantity::{Bytes, Percent, Seconds};
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::intervals::{Intervals, union};
use crate::trace::{Span, Trace};

/// Fonts and their colour.
const STYLE: &str =
    "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#24292f\"";
/// The colours where the reader prefers a dark page.
const DARK: &str = include_str!("dark.css");
/// The height of title and extent.
const HEADING: u64 = 56;

/// Writes the charts as an SVG file, one below the other on one time axis. Commands
/// shorter than a pixel are merged.
///
/// # Errors
/// Those of the writer.
pub fn write(charts: &[Chart], out: impl Write) -> io::Result<()> {
    let mut out = out;
    let palette = Palette::of(charts.iter().map(|chart| chart.trace));
    let frames = Frame::all(charts, &palette, 1.0);
    let width = frames.iter().map(Frame::width).max().unwrap_or(0);
    let heights = frames.iter().map(|frame| frame.height(width));
    let whole: u64 = heights.sum();
    let titles: Vec<String> = charts.iter().map(|chart| chart.about.title()).collect();
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" \
         viewBox=\"0 0 {width} {whole}\">\n<title>{}</title>\n<style>{DARK}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
        Escaped(&titles.join("; "))
    )?;
    let mut y = 0;
    for frame in &frames {
        let height = frame.height(width);
        writeln!(
            out,
            "<svg class=\"chart\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {STYLE}>"
        )?;
        frame.whole(&frames, width, &mut out)?;
        writeln!(out, "</svg>")?;
        y += height;
    }
    writeln!(out, "</svg>")?;
    out.flush()
}

/// A chart with the positions of everything in it.
pub(super) struct Frame<'a> {
    pub chart: &'a Chart<'a>,
    pub legend: Legend,
    pub window: Window,
    pub palette: &'a Palette,
    pub rows: Vec<Row<'a>>,
    pub tops: Tops,
    pub names: Names,
    pub strips: Strips,
    pub marks: Vec<Mark>,
}

impl<'a> Frame<'a> {
    /// Frames of charts, whose plots lie one below the other.
    pub fn all(charts: &'a [Chart<'a>], palette: &'a Palette, thinnest: f64) -> Vec<Self> {
        let windows = Window::of(charts.iter().map(|chart| chart.trace));
        let of = |(chart, window): (&'a Chart<'a>, Window)| {
            let thin = window.span as f64 * thinnest / PLOT as f64;
            let rows = rows(chart.trace, palette, thin as Nanos);
            Self {
                legend: Legend::of(chart, palette, &rows),
                palette,
                tops: tops(&rows),
                names: Names::of(chart.trace, &rows),
                strips: Strips::of(chart.trace, &window),
                marks: labels::of(chart, &window),
                chart,
                window,
                rows,
            }
        };
        let mut frames: Vec<Self> = charts.iter().zip(windows).map(of).collect();
        let left = frames.iter().map(|frame| frame.names.left).max();
        for frame in &mut frames {
            frame.names.left = left.unwrap_or(0);
        }
        frames
    }

    /// The width of the plot with its names.
    fn plot_width(&self) -> u64 {
        self.names.left + PLOT + RIGHT
    }

    /// The width of everything.
    fn width(&self) -> u64 {
        let table = self.chart.sheet.table.as_ref();
        let table = table.map_or(0, |table| table.size()[0]);
        self.plot_width().max(table)
    }

    /// The height of what is above the plot, but for the heading.
    fn above(&self) -> u64 {
        LINE * (self.marks.len() as u64 + 1) + 6
    }

    /// Where the plot of a drawing with its heading begins.
    fn top(&self, width: u64) -> u64 {
        HEADING + self.legend.height(width) + self.above()
    }

    /// The height of everything in a drawing of this width.
    fn height(&self, width: u64) -> u64 {
        let sheet = &self.chart.sheet;
        let table = sheet.table.as_ref().map_or(0, |table| table.size()[1]);
        let notes = sheet.notes.len() as u64 * LINE;
        self.top(width) + self.tops.height + BOTTOM + table + notes + LINE
    }

    /// Draws it with heading, legend and table.
    fn whole(&self, all: &[Self], width: u64, out: &mut impl Write) -> io::Result<()> {
        heading(self.chart, &subtitle(self, all), width, out)?;
        self.legend.draw(width, HEADING, out)?;
        let top = self.top(width);
        self.plot(top, out)?;
        let mut y = top + self.tops.height + BOTTOM;
        if let Some(table) = &self.chart.sheet.table {
            table.draw(y, out)?;
            y += Table::size(table)[1];
        }
        for (line, note) in (0u64..).zip(&self.chart.sheet.notes) {
            let note = shortened(note, FONT, (width - 2 * MARGIN) as f64);
            writeln!(
                out,
                "<text x=\"{MARGIN}\" y=\"{}\" fill=\"#57606a\">{}</text>",
                y + line * LINE + 12,
                Escaped(&note)
            )?;
        }
        Ok(())
    }

    /// Draws the plot, whose upper edge is at `top`, and the texts around it.
    fn plot(&self, top: u64, out: &mut impl Write) -> io::Result<()> {
        let Self { window, tops, .. } = self;
        let (trace, left, height) = (self.chart.trace, self.names.left, tops.height);
        labels::labels(&self.marks, window, left, [top - self.above(), top], out)?;
        names(
            trace,
            &self.names,
            (&self.rows, &self.strips),
            tops,
            top,
            out,
        )?;
        step_numbers(trace, window, left, top, out)?;
        axis(window, left, top + height, out)?;
        // What would be outside of the plot is cut off.
        writeln!(
            out,
            "<svg x=\"{left}\" y=\"{top}\" width=\"{PLOT}\" height=\"{height}\">\n\
             <rect width=\"{PLOT}\" height=\"{height}\" fill=\"#f6f8fa\"/>"
        )?;
        for (device, strip) in &tops.strips {
            self.strips.draw(*device, window, *strip, out)?;
        }
        for (row, top) in self.rows.iter().zip(&tops.rows) {
            for one in &row.bars {
                draw_bar(one, self.palette, window, *top, out)?;
            }
        }
        draw_flows(trace, &self.rows, &tops.rows, window, out)?;
        step_lines(trace, window, height, out)?;
        labels::plans(self.chart, window, out)?;
        labels::lines(&self.marks, window, height, out)?;
        writeln!(out, "</svg>")
    }
}

/// Draws a bar in the row whose upper edge is at `top`.
fn draw_bar(
    bar: &Bar,
    palette: &Palette,
    window: &Window,
    top: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let x = window.x(bar.began);
    // Even the shortest bar stays visible.
    let width = Pixels((window.x(bar.ended).0 - x.0).max(0.05));
    let Some(entry) = palette.entries.get(bar.entry()) else {
        return Ok(());
    };
    // Copies are thin, so that they are distinct without their colours.
    let height = if entry.kernels { BAR } else { COPY };
    write!(
        out,
        "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"",
        top + (ROW - height) / 2,
        entry.colour
    )?;
    if bar.span.is_none() {
        // The more of its time is idle, the paler is a bar of several commands.
        write!(out, " fill-opacity=\"{:.2}\"", bar.density().max(0.2))?;
    }
    write!(out, "><title>")?;
    match bar.span {
        Some(span) => single(span, entry, out)?,
        None => {
            write!(out, "several commands")?;
            for (entry, part) in &bar.parts {
                if let Some(entry) = palette.entries.get(*entry) {
                    write!(
                        out,
                        "\n{} x {}: {}",
                        part.commands,
                        Escaped(&entry.name),
                        Seconds::from_nanos(part.busy)
                    )?;
                }
            }
        }
    }
    writeln!(out, "</title></rect>")
}

impl Span {
    /// Its label, and what it computes or copies.
    pub(super) fn what(&self, entry: &PaletteEntry) -> String {
        let what = match (&self.codelet, entry.kernels) {
            (Some(codelet), _) => codelet.as_str(),
            (None, true) => "kernel",
            (None, false) => &entry.name,
        };
        format!("{} ({what})", self.label)
    }
}

fn single(span: &Span, entry: &PaletteEntry, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", Escaped(&span.what(entry)))?;
    writeln!(
        out,
        "step {}, units {}..{}",
        span.step, span.units.start, span.units.end
    )?;
    if span.bytes > 0 {
        writeln!(out, "{}", Bytes(span.bytes))?;
    }
    write!(
        out,
        "{} after a wait of {}",
        Seconds::from_nanos(span.ended.saturating_sub(span.started)),
        Seconds::from_nanos(span.started.saturating_sub(span.ready))
    )
}

/// Draws a line for each dependency between commands of different queues. Within a
/// queue the order is visible without.
fn draw_flows(
    trace: &Trace,
    rows: &[Row],
    tops: &[u64],
    window: &Window,
    out: &mut impl Write,
) -> io::Result<()> {
    let flows = flows(trace, rows);
    if flows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<g stroke=\"#24292f\" stroke-opacity=\"0.35\" stroke-width=\"0.7\" pointer-events=\"none\">"
    )?;
    for (ended, from, started, to) in flows {
        writeln!(
            out,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            window.x(ended),
            tops[from] + ROW / 2,
            window.x(started),
            tops[to] + ROW / 2
        )?;
    }
    writeln!(out, "</g>")
}

/// The colours and meanings of the time in which kernels ran, and only copies.
pub const COLOURS: [(&str, &str); 2] = [
    ("#6e7781", "busy with kernels"),
    ("#c3c9d0", "busy with copies alone"),
];
/// The widest label of a strip.
pub const WIDEST: &str = "kernels 100 %";
/// Pixels of a bucket.
const BUCKET: f64 = 4.0;

/// How busy the devices are, over the whole time and in its parts.
pub struct Strips {
    /// From the run's begin to its end, by device.
    all: Vec<Busy>,
    /// By device and bucket.
    buckets: Vec<Vec<Busy>>,
}

impl Strips {
    pub fn of(trace: &Trace, window: &Window) -> Self {
        let shown = window.x(window.whole.end).0 - window.x(window.whole.start).0;
        let buckets = ((shown / BUCKET).ceil() as usize).max(1);
        let all = by_device(trace, &window.run, 1).into_iter().flatten();
        Self {
            all: all.collect(),
            buckets: by_device(trace, &window.whole, buckets),
        }
    }

    /// The text before a device's strip, and what it means.
    pub fn label(&self, device: usize) -> (String, String) {
        let busy = self.all.get(device).copied().unwrap_or_default();
        (
            format!("kernels {:.0} %", busy.kernels * 100.0),
            format!(
                "of the run; copies without kernels {}",
                Percent(busy.copies)
            ),
        )
    }

    /// The fractions of the run with kernels, and with copies alone.
    pub fn whole(&self, device: usize) -> [f64; 2] {
        let busy = self.all.get(device).copied().unwrap_or_default();
        [busy.kernels, busy.copies]
    }

    /// How busy a device was in each part of the time.
    pub fn of_device(&self, device: usize) -> &[Busy] {
        self.buckets.get(device).map_or(&[], Vec::as_slice)
    }

    /// Draws a device's strip, whose upper edge is at `top`.
    pub fn draw(
        &self,
        device: usize,
        window: &Window,
        top: u64,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let buckets = self.of_device(device);
        let (left, right) = (window.x(window.whole.start), window.x(window.whole.end));
        let (upper, floor) = (top + (ROW - BAR) / 2, top + (ROW + BAR) / 2);
        let (all, meaning) = self.label(device);
        writeln!(
            out,
            "<g><title>{all} {meaning}</title>\
             <rect x=\"{left}\" y=\"{upper}\" width=\"{}\" height=\"{BAR}\" fill=\"#ffffff\"/>",
            Pixels(right.0 - left.0)
        )?;
        // What all commands fill lies behind what kernels fill.
        let heights: [fn(&Busy) -> f64; 2] = [Busy::any, |busy| busy.kernels];
        for (height, (colour, _)) in heights.into_iter().zip(COLOURS.into_iter().rev()) {
            let wide = (right.0 - left.0) / buckets.len() as f64;
            write!(out, "<path fill=\"{colour}\" d=\"M{left} {floor}")?;
            let mut before = None;
            for (index, busy) in buckets.iter().enumerate() {
                let y = Pixels(floor as f64 - height(busy) * BAR as f64).to_string();
                if before.as_ref() != Some(&y) {
                    write!(out, "H{}V{y}", Pixels(left.0 + index as f64 * wide))?;
                }
                before = Some(y);
            }
            write!(out, "H{right}V{floor}Z\"/>")?;
        }
        writeln!(out, "</g>")
    }
}

/// Fractions of a period, 0 to 1, whose sum is at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// In which at least one kernel ran.
    pub kernels: f64,
    /// In which copies ran and no kernel.
    pub copies: f64,
}

impl Busy {
    /// The fraction in which any command ran.
    pub fn any(&self) -> f64 {
        self.kernels + self.copies
    }
}

/// How busy each device was in each of so many buckets of equal length of a time, by
/// device, then by bucket. Commands outside of that time do not count.
pub fn by_device(trace: &Trace, time: &Range<Nanos>, buckets: usize) -> Vec<Vec<Busy>> {
    let mut kernels = vec![Intervals::new(); trace.devices.len()];
    let mut all = kernels.clone();
    for span in &trace.spans {
        let within = (
            span.started.clamp(time.start, time.end),
            span.ended.clamp(time.start, time.end),
        );
        let Some(all) = all.get_mut(span.device) else {
            continue;
        };
        all.push(within);
        if span.kind == CommandKind::Launch {
            kernels[span.device].push(within);
        }
    }
    let devices = kernels.into_iter().zip(all);
    devices
        .map(|(kernels, all)| {
            let kernels = filled(union(kernels), time, buckets);
            let all = filled(union(all), time, buckets);
            let both = kernels.into_iter().zip(all);
            both.map(|(kernels, all)| Busy {
                kernels,
                copies: (all - kernels).max(0.0),
            })
            .collect()
        })
        .collect()
}

/// The fraction of each bucket that is in a union of intervals.
fn filled(intervals: Intervals, time: &Range<Nanos>, buckets: usize) -> Vec<f64> {
    let length = time.end.saturating_sub(time.start) as f64 / buckets.max(1) as f64;
    let mut filled = vec![0.0; buckets];
    for (started, ended) in intervals {
        let place = |at: Nanos| (at - time.start) as f64 / length;
        let (from, until) = (place(started), place(ended));
        let first = (from as usize).min(buckets.saturating_sub(1));
        for (bucket, filled) in filled.iter_mut().enumerate().skip(first) {
            let (low, high) = (bucket as f64, (bucket + 1) as f64);
            if low >= until {
                break;
            }
            *filled += (until.min(high) - from.max(low)).max(0.0);
        }
    }
    filled.iter().map(|part| part.min(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::layout::{GAP, Pixels, ROW};
    use super::super::{Bound, Sheet};
    use super::*;
    use crate::runtime::CommandKind;
    use crate::trace::Trace;
    use crate::trace::fixtures::{about, span, two_devices};
    use crate::trace::gantt::layout::tops;
    use crate::trace::gantt::legend::Palette;
    use crate::trace::gantt::rows::{MOST_FLOWS, rows};
    use crate::trace::intervals::total;

    fn chart(trace: &Trace) -> Chart<'_> {
        Chart {
            trace,
            about: about(),
            sheet: Sheet::default(),
        }
    }

    fn drawn(charts: &[Chart]) -> String {
        let mut out = Vec::new();
        write(charts, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn says_what_it_shows_and_that_it_is_simulated() {
        let svg = drawn(&[chart(&two_devices())]);
        assert!(svg.contains("stencil 8 x 8 f64, dawl on k40 (simulated)"));
        for part in [
            "time [ns]",
            "write (H2D)",
            "read (D2H)",
            "queue 1",
            "step 0: 910 ns",
            "makespan 910 ns",
            ">kernels 88 %<",
            ">kernels 44 %<",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        // There is none.
        assert!(!svg.contains("copy (between devices)"));
    }

    #[test]
    fn names_cannot_break_out() {
        let mut trace = two_devices();
        trace.spans[0].label = "</svg><b>".into();
        let evil = Table {
            header: vec!["<i>".into()],
            rows: vec![vec!["</svg>".into()]],
        };
        let sheet = Sheet {
            table: Some(evil),
            notes: vec!["<script>".into()],
            ..Sheet::default()
        };
        let svg = drawn(&[Chart {
            sheet,
            ..chart(&trace)
        }]);
        for part in ["gpu <0>", "<b>", "<i>", "<script>"] {
            assert!(!svg.contains(part), "{part}");
        }
        assert!(svg.contains("gpu &lt;0&gt; &amp; &quot;co&quot;"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn a_bar_is_where_its_command_ran() {
        let svg = drawn(&[chart(&two_devices())]);
        // The window is 90..1000; the kernel ran 300..700.
        let (x, end) = (210.0 / 910.0 * 1000.0, 610.0 / 910.0 * 1000.0);
        let bar = format!("<rect x=\"{}\" ", Pixels(x));
        let at = svg.find(&bar).expect("the kernel's bar");
        assert!(svg[at..].starts_with(&format!(
            "{bar}y=\"{}\" width=\"{}\"",
            // Below two strips and the other device's row.
            6 + ROW * 3 + GAP + 2,
            Pixels(end - x)
        )));
    }

    #[test]
    fn bounds_are_lines_where_they_are() {
        let trace = two_devices();
        let bound = |seconds| Bound {
            name: "area bound",
            meaning: "All at once.",
            seconds,
        };
        let bounds = vec![bound(455e-9), bound(1.0)];
        let sheet = Sheet {
            bounds,
            ..Sheet::default()
        };
        let svg = drawn(&[Chart {
            sheet,
            ..chart(&trace)
        }]);
        assert!(svg.contains("d=\"M500 0V"), "{svg}");
        assert!(svg.contains("area bound 455 ns"));
        assert!(svg.contains("50 % of the makespan. All at once."));
        // One that lies outside is not drawn.
        assert!(!svg.contains("area bound 1.00 s"));
    }

    #[test]
    fn two_runs_have_one_time_axis() {
        let (trace, mut other) = (two_devices(), two_devices());
        other.steps = vec![(90, 1910)];
        let svg = drawn(&[chart(&trace), chart(&other)]);
        // The first run ends in the middle of the axis.
        assert!(svg.contains("<path d=\"M500 0V"), "{svg}");
        assert!(svg.contains("2.00 of the first run&#39;s"));
    }

    #[test]
    fn very_many_commands_give_a_small_file() {
        let trace = Trace {
            devices: vec!["gpu".into()],
            spans: (0..100_000)
                .map(|i| span(0, 0, CommandKind::Launch, i * 50, i * 50 + 40))
                .collect(),
            steps: (0..1_000).map(|i| (i * 5_000, i * 5_000 + 4_990)).collect(),
            ..Trace::default()
        };
        let svg = drawn(&[chart(&trace)]);
        assert!(svg.len() < 600_000, "{}", svg.len());
        assert!(svg.contains("100000 commands"));
    }

    #[test]
    fn an_empty_trace_is_still_a_chart() {
        let svg = drawn(&[chart(&Trace::default())]);
        assert!(svg.contains("no commands: the run was not traced"));
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(drawn(&[]).contains("</svg>"));
    }

    fn drawn_flows(flows: Vec<(usize, usize)>) -> String {
        let mut trace = two_devices();
        trace.flows = flows;
        let rows = rows(&trace, &Palette::of([&trace]), 1);
        let tops = tops(&rows).rows;
        let windows = Window::of([&trace]);
        let mut out = Vec::new();
        draw_flows(&trace, &rows, &tops, &windows[0], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_leads_from_queue_to_queue() {
        assert_eq!(drawn_flows(vec![]), "");
        let two = drawn_flows(vec![(0, 1), (2, 3), (1, 2), (7, 0)]);
        // The third is within a queue, and the fourth comes from nowhere.
        assert_eq!(two.matches("<line").count(), 2, "{two}");
    }

    #[test]
    fn very_many_are_left_out() {
        assert_eq!(drawn_flows(vec![(0, 1); MOST_FLOWS + 1]), "");
    }

    #[test]
    fn kernels_and_copies_of_each_bucket_are_counted() {
        // The GPU writes 100..300, computes 300..700 and reads 600..1000.
        let busy = by_device(&two_devices(), &(100..1000), 3);
        let near = |busy: Busy, kernels: f64, copies: f64| {
            assert!((busy.kernels - kernels).abs() < 1e-9, "{busy:?}");
            assert!((busy.copies - copies).abs() < 1e-9, "{busy:?}");
        };
        near(busy[0][0], 1.0, 0.0);
        near(busy[0][2], 2.0 / 3.0, 0.0);
        near(busy[1][0], 1.0 / 3.0, 2.0 / 3.0);
        near(busy[1][1], 1.0, 0.0);
        near(busy[1][2], 0.0, 1.0);
    }

    #[test]
    fn commands_outside_of_the_time_do_not_count() {
        let busy = by_device(&two_devices(), &(0..50), 2);
        assert!(busy.iter().flatten().all(|busy| *busy == Busy::default()));
        let busy = by_device(&two_devices(), &(900..2000), 1);
        assert_eq!(busy[0][0], Busy::default());
        assert!((busy[1][0].copies - 100.0 / 1100.0).abs() < 1e-9);
    }

    #[test]
    fn a_device_without_commands_or_time_is_idle() {
        let trace = Trace {
            devices: vec!["idle".into()],
            ..Trace::default()
        };
        assert_eq!(by_device(&trace, &(0..10), 2), [[Busy::default(); 2]]);
        assert_eq!(by_device(&two_devices(), &(5..5), 1)[1][0].any(), 0.0);
        assert!(by_device(&trace, &(0..10), 0)[0].is_empty());
    }

    proptest! {
        #[test]
        fn buckets_add_up_to_the_busy_time(
            raw in proptest::collection::vec((0usize..3, 0u64..900, 0u64..200, any::<bool>()), 0..40),
            buckets in 1usize..50,
        ) {
            let trace = Trace {
                devices: (0..3).map(|d| format!("d{d}")).collect(),
                spans: raw.iter().map(|(device, started, length, kernel)| {
                    let kind = if *kernel { CommandKind::Launch } else { CommandKind::Read };
                    span(*device, 0, kind, *started, started + length)
                }).collect(),
                ..Trace::default()
            };
            let sum = |device: usize, wanted: fn(CommandKind) -> bool| {
                let own = trace.spans.iter().filter(|span| span.device == device);
                let wanted = own.filter(|span| wanted(span.kind));
                total(&union(wanted.map(|span| (span.started, span.ended)).collect())) as f64
            };
            for (device, busy) in by_device(&trace, &(0..1200), buckets).iter().enumerate() {
                let all = sum(device, |_| true);
                let of_kernels = sum(device, |kind| kind == CommandKind::Launch);
                let length = 1200.0 / buckets as f64;
                let any: f64 = busy.iter().map(|b| b.any() * length).sum();
                let kernels: f64 = busy.iter().map(|b| b.kernels * length).sum();
                prop_assert!((any - all).abs() < 1e-6);
                prop_assert!((kernels - of_kernels).abs() < 1e-6);
                prop_assert!(busy.iter().all(|b| b.any() <= 1.0 + 1e-9));
            }
        }
    }
}
