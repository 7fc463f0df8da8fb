//! Charts in a page that is as wide as its window and zooms and pans:
//! wheel to zoom, drag to pan, double click for all. Under each is its table.

use std::io::{self, Write};

use super::labels::subtitle;
use super::layout::{FONT, GAP, LINE, MARGIN, Pixels, shortened, width};
use super::legend::Palette;
use super::svg::{DARK, Frame};
use super::{Chart, Escaped};

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
         <title>pdawl: {}</title>\n<style>{STYLE}{DARK}</style>\n</head>\n<body>",
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

const STYLE: &str = include_str!("page.css");

const SCRIPT: &str = include_str!("zoom.js");

/// Most pixels of a cell.
const CELL: f64 = 300.0;

/// Texts in rows and columns; the first column has names, the others figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The lines as they are drawn, the header among them.
    fn lines(&self) -> Vec<Vec<String>> {
        let lines = [&self.header].into_iter().chain(&self.rows);
        let short = |line: &Vec<String>| line.iter().map(|t| shortened(t, FONT, CELL)).collect();
        lines.map(short).collect()
    }

    /// The pixels of each column.
    fn columns(lines: &[Vec<String>]) -> Vec<f64> {
        let column = |at: usize| {
            let cells = lines.iter().filter_map(|line| line.get(at));
            cells.map(|text| width(text, FONT)).fold(0.0, f64::max)
        };
        let number = lines.iter().map(Vec::len).max().unwrap_or(0);
        (0..number).map(column).collect()
    }

    /// Width and height of the drawing.
    pub fn size(&self) -> [u64; 2] {
        let lines = self.lines();
        let columns = Self::columns(&lines);
        let wide: f64 = columns.iter().map(|column| column + GAP as f64).sum();
        [2 * MARGIN + wide.ceil() as u64, lines.len() as u64 * LINE]
    }

    /// Draws it below `top`.
    pub fn draw(&self, top: u64, out: &mut impl Write) -> io::Result<()> {
        let lines = self.lines();
        let columns = Self::columns(&lines);
        for (line, cells) in (0u64..).zip(&lines) {
            let y = top + line * LINE + 12;
            let mut left = MARGIN as f64;
            for (column, (text, wide)) in cells.iter().zip(&columns).enumerate() {
                let (x, anchor) = match column {
                    0 => (left, "start"),
                    _ => (left + wide, "end"),
                };
                let weight = if line == 0 {
                    " font-weight=\"600\""
                } else {
                    ""
                };
                writeln!(
                    out,
                    "<text x=\"{}\" y=\"{y}\" text-anchor=\"{anchor}\"{weight}>{}</text>",
                    Pixels(x),
                    Escaped(text)
                )?;
                left += wide + GAP as f64;
            }
        }
        Ok(())
    }

    /// Writes it as a table of a page.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "<table>\n<tr>")?;
        for text in &self.header {
            write!(out, "<th>{}</th>", Escaped(text))?;
        }
        writeln!(out, "</tr>")?;
        for row in &self.rows {
            write!(out, "<tr>")?;
            for text in row {
                write!(out, "<td>{}</td>", Escaped(text))?;
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</table>")
    }
}

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
