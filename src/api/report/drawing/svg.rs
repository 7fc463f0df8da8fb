//! Writes a drawing as SVG.

use std::io::{self, Write};

use super::layout::{BUFFER, Cell, FRAME, KERNEL, Layout, Point, TITLE};
use super::{Drawing, DrawnKernel};
use crate::trace::escape::Escaped;

/// Writes the drawing as an SVG file.
///
/// # Errors
/// Those of the writer.
pub fn write(drawing: &Drawing, out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout::of(drawing);
    let (width, height) = (layout.width, layout.height);
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"11\" \
         fill=\"#24292f\" text-anchor=\"middle\">\n\
         <title>{title}</title>\n<defs><marker id=\"to\" viewBox=\"0 0 8 8\" refX=\"7\" \
         refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\" fill=\"#57606a\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"22\" font-size=\"14\" text-anchor=\"start\">{title}</text>",
        title = Escaped(&drawing.title)
    )?;
    for (index, kernels) in drawing.components.iter().enumerate() {
        frame(index, kernels, &layout, out)?;
    }
    for (from, to) in &drawing.edges {
        let producer = &drawing.kernels[from.0];
        let output = producer
            .outputs
            .iter()
            .position(|(position, _)| *position == from.1);
        let begin = match output {
            Some(output) => layout.cells[from.0].outputs[output],
            None => layout.cells[from.0].kernel,
        };
        let end = layout.cells[to.0].kernel;
        curve(below(begin, BUFFER.1), below(end, -KERNEL.1), "", out)?;
    }
    for (from, to) in &drawing.order {
        let (begin, end) = (layout.cells[*from].kernel, layout.cells[*to].kernel);
        let dashes = " stroke-dasharray=\"4 3\"";
        curve(below(begin, KERNEL.1), below(end, -KERNEL.1), dashes, out)?;
    }
    for (shown, cell) in drawing.kernels.iter().zip(&layout.cells) {
        kernel(shown, cell, out)?;
    }
    writeln!(out, "</svg>")
}

fn below(middle: Point, height: f64) -> Point {
    Point {
        y: middle.y + height / 2.0,
        ..middle
    }
}

fn curve(from: Point, to: Point, style: &str, out: &mut dyn Write) -> io::Result<()> {
    let bend = (to.y - from.y).abs().max(20.0) / 2.0;
    writeln!(
        out,
        "<path d=\"M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}\" fill=\"none\" \
         stroke=\"#57606a\"{style} marker-end=\"url(#to)\"/>",
        from.x,
        from.y,
        from.x,
        from.y + bend,
        to.x,
        to.y - bend,
        to.x,
        to.y
    )
}

fn frame(index: usize, kernels: &[usize], layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let bounds = kernels.iter().map(|kernel| layout.cells[*kernel].bounds);
    let Some((left, top, right, bottom)) =
        bounds.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)))
    else {
        return Ok(());
    };
    let (left, top) = (left - FRAME / 2.0, (top - FRAME).max(TITLE));
    writeln!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"8\" \
         fill=\"#f6f8fa\" stroke=\"#8c959f\" stroke-dasharray=\"6 4\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"start\" fill=\"#57606a\">T{index}</text>",
        right - left + FRAME / 2.0,
        bottom + FRAME / 2.0 - top,
        left + 4.0,
        top - 3.0
    )
}

fn kernel(shown: &DrawnKernel, cell: &Cell, out: &mut dyn Write) -> io::Result<()> {
    for (place, buffer) in cell.inputs.iter().zip(&shown.inputs) {
        rectangle(*place, buffer, "#ddf4ff", out)?;
        curve(
            below(*place, BUFFER.1),
            below(cell.kernel, -KERNEL.1),
            "",
            out,
        )?;
    }
    for (place, buffer) in cell.outputs.iter().zip(&shown.outputs) {
        curve(
            below(cell.kernel, KERNEL.1),
            below(*place, -BUFFER.1),
            "",
            out,
        )?;
        rectangle(*place, buffer, "#fff8c5", out)?;
    }
    let (x, y) = (cell.kernel.x, cell.kernel.y);
    let fill = match shown.device {
        Some("cpu") => "#dafbe1",
        Some(_) => "#ffd8b5",
        None => "#eaeef2",
    };
    writeln!(
        out,
        "<ellipse cx=\"{x:.1}\" cy=\"{y:.1}\" rx=\"{:.1}\" ry=\"{:.1}\" fill=\"{fill}\" \
         stroke=\"#24292f\"/>\n<text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
        KERNEL.0 / 2.0,
        KERNEL.1 / 2.0,
        y + 4.0,
        Escaped(&shortened(&shown.name, 22))
    )?;
    match shown.device {
        Some(device) => writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"9\" fill=\"#57606a\">{device}</text>",
            y + 16.0
        ),
        None => Ok(()),
    }
}

fn rectangle(
    place: Point,
    (position, what): &(u64, String),
    fill: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" \
         stroke=\"#57606a\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\">{}</text>",
        place.x - BUFFER.0 / 2.0,
        place.y - BUFFER.1 / 2.0,
        BUFFER.0,
        BUFFER.1,
        place.x,
        place.y + 3.5,
        Escaped(&shortened(&format!("{position}: {what}"), 17))
    )
}

/// The text with at most `most` characters.
fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
