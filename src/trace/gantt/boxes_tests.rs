//! Where the texts of a chart are, measured with the widths of a wide font.

use super::text::width;
use super::write_svg;
use crate::runtime::CommandKind;
use crate::trace::fixtures::{about, span};
use crate::trace::{About, Trace};

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

/// The chart's width, and its texts in the order in which they are drawn.
fn texts(svg: &str) -> (f64, Vec<Text>) {
    let mut size = Vec::new();
    let mut found = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, words) = part.split_once('>').unwrap_or((part, ""));
        if tag.starts_with("svg") || tag.starts_with("g ") {
            let outer = size.last().copied().unwrap_or(16.0);
            size.push(number(tag, "font-size").unwrap_or(outer));
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
            found.push((plain, [left, left + wide, y - size, y + 0.25 * size]));
        }
    }
    let whole = svg.split("<svg ").nth(1).expect("a drawing");
    (
        number(&format!(" {whole}"), "width").expect("its width"),
        found,
    )
}

fn check(trace: &Trace, about: &About) {
    let mut out = Vec::new();
    write_svg(trace, about, &mut out).expect("a chart");
    let (whole, texts) = texts(&String::from_utf8(out).expect("text"));
    assert!(
        texts
            .iter()
            .any(|(words, _)| words == "copy (between devices)")
    );
    for (index, (words, own)) in texts.iter().enumerate() {
        assert!(
            own[0] >= 0.0 && own[1] <= whole,
            "`{words}` is cut off: {own:?}"
        );
        for (other, that) in &texts[..index] {
            let is_disjoint =
                own[1] <= that[0] || that[1] <= own[0] || own[3] <= that[2] || that[3] <= own[2];
            assert!(
                is_disjoint,
                "`{words}` and `{other}` overlap: {own:?}, {that:?}"
            );
        }
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
        (0..queues).map(move |queue| span(device, queue, kinds[queue % 4], 100, 900))
    });
    Trace {
        devices: devices.to_vec(),
        spans: spans.collect(),
        steps: (0..1_000)
            .map(|step| (step * 1_000_000, (step + 1) * 1_000_000))
            .collect(),
        flows: vec![],
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
        check(&trace(&devices, 12), &about());
        check(&trace(&devices, 0), &about());
    }
}

#[test]
fn a_long_title_is_shortened() {
    let about = About {
        workload: "dag a-file-with-a-very-long-name.json, ".repeat(20),
        ..about()
    };
    check(&trace(&["host".to_owned()], 1), &about);
}
