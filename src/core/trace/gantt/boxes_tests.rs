//! Where the texts of a chart are, measured with the widths of a wide font.

use super::layout::width;
use super::{Bound, Chart, Happened, Sheet, Table, write_svg};
use crate::runtime::CommandKind;
use crate::trace::fixtures::{about, span};
use crate::trace::{About, Span, Trace};

/// A text's words and its box: left, right, upper and lower edge.
type Text = (String, [f64; 4]);

/// The value of an attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn number(tag: &str, name: &str) -> Option<f64> {
    attribute(tag, name)?.parse().ok()
}

/// The boxes of a chart's texts, in the order in which they are drawn, and its size.
struct Boxes {
    size: [f64; 2],
    texts: Vec<Text>,
}

/// The charts of a file.
fn charts(svg: &str) -> Vec<Boxes> {
    let mut size = Vec::new();
    let mut found: Vec<Boxes> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, words) = part.split_once('>').unwrap_or((part, ""));
        if tag.starts_with("svg") || tag.starts_with("g ") || tag == "g" {
            let outer = size.last().copied().unwrap_or(16.0);
            size.push(number(tag, "font-size").unwrap_or(outer));
            if attribute(tag, "class") == Some("chart") {
                let of = |name| number(tag, name).expect("the chart's size");
                found.push(Boxes {
                    size: [of("width"), of("height")],
                    texts: Vec::new(),
                });
            }
        } else if tag == "/svg" || tag == "/g" {
            size.pop();
        } else if tag.starts_with("text ") {
            let size = number(tag, "font-size")
                .or(size.last().copied())
                .unwrap_or(16.0);
            let plain = words.replace("&lt;", "<").replace("&gt;", ">");
            let wide = width(&plain, size);
            let (x, y) = (number(tag, "x").unwrap(), number(tag, "y").unwrap());
            let left = match attribute(tag, "text-anchor") {
                Some("end") => x - wide,
                Some("middle") => x - wide / 2.0,
                _ => x,
            };
            let own = [left, left + wide, y - size, y + 0.25 * size];
            let chart = found.last_mut().expect("a chart around the text");
            chart.texts.push((plain, own));
        }
    }
    found
}

/// Asserts that no text is cut off or lies over another one, and that these are there.
fn check(runs: &[Chart], wanted: &[&str]) {
    let mut out = Vec::new();
    write_svg(runs, &mut out).expect("a chart");
    let charts = charts(&String::from_utf8(out).expect("text"));
    assert_eq!(charts.len(), runs.len());
    for Boxes { size, texts } in charts {
        for wanted in wanted {
            let found = texts.iter().any(|(words, _)| words.starts_with(wanted));
            assert!(found, "`{wanted}` is missing: {texts:?}");
        }
        for (index, (words, own)) in texts.iter().enumerate() {
            assert!(
                own[0] >= 0.0 && own[1] <= size[0] && own[2] >= 0.0 && own[3] <= size[1],
                "`{words}` is cut off: {own:?} of {size:?}"
            );
            for (other, that) in &texts[..index] {
                let is_disjoint = own[1] <= that[0]
                    || that[1] <= own[0]
                    || own[3] <= that[2]
                    || that[3] <= own[2];
                assert!(
                    is_disjoint,
                    "`{words}` and `{other}` overlap: {own:?}, {that:?}"
                );
            }
        }
    }
}

/// A run with two bounds at these parts of its length, and a table of its devices.
fn chart<'a>(trace: &'a Trace, about: About, bounds: [f64; 2]) -> Chart<'a> {
    let names = ["area bound", "critical path"];
    let length = trace.steps.last().map_or(0, |step| step.1) as f64 / 1e9;
    let bounds = names.into_iter().zip(bounds).map(|(name, part)| Bound {
        name,
        meaning: "No run is shorter.",
        seconds: part * length,
    });
    let header = ["Device", "Share", "Computed", "Busy", "Idle", "H2D", "D2H"];
    let rows = trace.devices.iter().map(|device| {
        let figures = header.iter().skip(1).map(|_| "999 MiB".to_owned());
        [device.clone()].into_iter().chain(figures).collect()
    });
    Chart {
        trace,
        about,
        sheet: Sheet {
            bounds: bounds.collect(),
            table: Some(Table {
                header: header.map(str::to_owned).to_vec(),
                rows: rows.collect(),
            }),
            losses: vec![Happened {
                step: 1,
                what: "gpu0 lost".into(),
            }],
            plans: vec![Happened {
                step: 1,
                what: "7 units move".into(),
            }],
            notes: vec!["A note that is far too long. ".repeat(20), "Short.".into()],
        },
    }
}

fn trace(devices: &[String], queues: usize) -> Trace {
    let kinds = [
        CommandKind::Write,
        CommandKind::Launch,
        CommandKind::Read,
        CommandKind::Copy,
    ];
    let spans = (0..devices.len()).flat_map(|device| {
        (0..queues).map(move |queue| Span {
            codelet: Some(format!("codelet_{}_of_a_long_name", queue % 40).into()),
            ..span(device, queue, kinds[queue % 4], 100, 900)
        })
    });
    Trace {
        devices: devices.to_vec(),
        spans: spans.collect(),
        steps: (0..1_000)
            .map(|step| (step * 1_000_000, (step + 1) * 1_000_000))
            .collect(),
        ..Trace::default()
    }
}

#[test]
fn no_text_of_a_chart_is_cut_off_or_lies_over_another() {
    let node =
        |rank: u32| format!("node {rank}, WORKER{rank}.cluster.example.org, opencl0.0:1=own#2");
    for devices in [
        vec!["host".to_owned(), "gpu0".to_owned()],
        vec!["MMMMMMMMMMMMMMMMMM".to_owned()],
        (0..12)
            .map(|rank| format!("node {rank}, n{rank}, gpu0"))
            .collect(),
        (0..12).map(node).collect(),
        vec!["装置の名前".repeat(20)],
        vec![],
    ] {
        let (full, empty) = (trace(&devices, 44), trace(&devices, 0));
        let idle = [
            "makespan 1.00 s",
            "area bound",
            "critical path",
            "Share",
            "Short.",
        ];
        let busy = [
            "kernels 0 %",
            "copy (between devices)",
            "busy with copies",
            "barrier",
        ];
        let others = ["codelet_1_of", "3 other kernels"];
        let all = [&idle[..], &busy, &others].concat();
        for bounds in [
            [0.0, 0.0],
            [0.4, 0.5],
            [0.5, 0.52],
            [0.99, 0.98],
            [1.0, 1.0],
        ] {
            let run = |trace| chart(trace, about(), bounds);
            match devices.is_empty() {
                true => check(&[run(&full)], &idle),
                false => check(&[run(&full)], &all),
            }
            check(&[run(&empty)], &idle);
            check(&[run(&empty), run(&full)], &idle);
        }
    }
}

#[test]
fn a_long_title_is_shortened() {
    let about = About {
        workload: "dag a-file-with-a-very-long-name.json, ".repeat(20),
        ..about()
    };
    check(
        &[chart(&trace(&["host".to_owned()], 1), about, [0.1, 0.2])],
        &["dag a-file"],
    );
}
