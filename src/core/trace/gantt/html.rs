//! Charts in a page that is as wide as its window and zooms and pans:
//! wheel to zoom, drag to pan, double click for all. Under each is its table.

use std::io::{self, Write};

use super::Chart;
use super::labels::subtitle;
use super::palette::Palette;
use super::svg::Frame;
use crate::trace::escape::Escaped;

/// Commands of at least this many pixels are bars of their own, so that they can
/// be told apart when the chart is enlarged.
const THINNEST: f64 = 0.05;

/// Writes the charts as a page that loads nothing from elsewhere, one below the other on
/// one time axis.
///
/// # Errors
/// Those of the writer.
pub fn write(charts: &[Chart], out: impl Write) -> io::Result<()> {
    let mut out = out;
    let palette = Palette::of(charts.iter().map(|chart| chart.trace));
    let frames = Frame::all(charts, &palette, THINNEST);
    let titles: Vec<String> = charts.iter().map(|chart| chart.about.title()).collect();
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>pdawl: {}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        Escaped(&titles.join("; "))
    )?;
    for frame in &frames {
        let sheet = &frame.chart.sheet;
        writeln!(
            out,
            "<h1>{}</h1>\n<p>{}</p>",
            Escaped(&frame.chart.about.title()),
            Escaped(&subtitle(frame, &frames))
        )?;
        frame.legend.list(&mut out)?;
        frame.alone(&mut out)?;
        if let Some(table) = &sheet.table {
            table.write(&mut out)?;
        }
        for note in &sheet.notes {
            writeln!(out, "<p>{}</p>", Escaped(note))?;
        }
    }
    writeln!(
        out,
        "<p>Wheel: zoom. Drag: pan. Double click: everything. Hover: details.</p>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>"
    )?;
    out.flush()
}

const STYLE: &str = "\
body { margin: 0; overflow-x: auto; background: #ffffff; font: 12px system-ui, sans-serif; color: #57606a; }\
h1 { margin: 14px 16px 4px; font-size: 15px; font-weight: 600; color: #24292f; }\
p { margin: 4px 16px; }\
ul { margin: 8px 16px; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 14px; list-style: none; color: #24292f; }\
li svg { display: inline-block; margin-right: 6px; vertical-align: -2px; }\
svg { display: block; }\
.plot { cursor: grab; }\
table { margin: 0 16px 12px; border-collapse: collapse; color: #24292f; }\
th, td { padding: 2px 0 2px 20px; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }\
th:first-child, td:first-child { padding-left: 0; text-align: left; }\
th { border-bottom: 1px solid #d0d7de; }";

const SCRIPT: &str = include_str!("zoom.js");

#[cfg(test)]
mod tests {
    use super::super::{Sheet, Table};
    use super::*;
    use crate::trace::fixtures::{about, two_devices};

    fn page() -> String {
        let trace = two_devices();
        let table = Table {
            header: vec!["Device".into(), "Share".into()],
            rows: vec![vec!["<host>".into(), "40 %".into()]],
        };
        let chart = || Chart {
            trace: &trace,
            about: about(),
            sheet: Sheet {
                table: Some(table.clone()),
                notes: vec!["no <report>".into()],
                ..Sheet::default()
            },
        };
        let mut out = Vec::new();
        write(&[chart(), chart()], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let page = page().replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_chart_follows_the_width_of_the_window() {
        assert!(page().contains("new ResizeObserver(fill).observe(document.body)"));
    }

    #[test]
    fn the_script_finds_what_it_redraws() {
        let page = page();
        for class in ["chart", "plot", "axis", "unit", "steps", "mark"] {
            assert_eq!(
                page.matches(&format!("class=\"{class}\"")).count(),
                2,
                "{class}"
            );
            assert!(SCRIPT.contains(&format!("'.{class}'")), "{class}");
        }
        assert!(page.contains("(simulated)</title>"));
    }

    #[test]
    fn tables_and_notes_are_under_their_charts() {
        let page = page();
        let parts: Vec<&str> = page.split("<h1>").skip(1).collect();
        assert_eq!(parts.len(), 2);
        for part in parts {
            let chart = part.find("</svg>").expect("a chart");
            let table = part.find("<td>&lt;host&gt;</td><td>40 %</td>");
            assert!(table.is_some_and(|table| table > chart));
            assert!(part.contains("<p>no &lt;report&gt;</p>"));
        }
    }
}
