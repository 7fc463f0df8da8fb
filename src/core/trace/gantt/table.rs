//! Tables of figures under a chart.

use std::io::{self, Write};

use serde::Serialize;

use super::Escaped;
use super::layout::{FONT, GAP, LINE, MARGIN, Pixels, shortened, width};

/// Most pixels of a cell.
const CELL: f64 = 300.0;

/// Texts in rows and columns; the first column has names, the others figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
}
