//! A sheet with a title, a chart of two axes, and a legend beside it.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::PlotError;
use super::axis::Axis;
use super::label::{self, TEXT, TITLE};

pub(super) type Drawn<T> = Result<T, DrawingAreaErrorKind<io::Error>>;
pub(super) type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Chart<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const FAINT: RGBColor = RGBColor(150, 150, 150);
pub(super) const SHADE: RGBColor = RGBColor(222, 232, 240);
pub(super) const ALERT: RGBColor = RGBColor(200, 30, 30);

/// Colours that people with colour blindness tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
];

const MARGIN: i32 = 12;
/// From one line of text to the next.
pub(super) const LINE: i32 = 19;
const SAMPLE: i32 = 24;

/// The colour of the `i`th series or cluster.
pub(super) fn colour(i: usize) -> RGBColor {
    COLOURS[i % COLOURS.len()]
}

/// What a line of the legend shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LegendEntry {
    /// The mark of the `i`th series.
    Mark(usize),
    Line(RGBColor),
    Area(RGBColor),
    /// Only text.
    Note,
}

/// Draws on a sheet of this size, and returns it as SVG.
pub(super) fn svg(
    width: i32,
    height: i32,
    draw: impl FnOnce(&Sheet) -> Drawn<()>,
) -> Result<String, PlotError> {
    let mut text = String::new();
    let size = (width.unsigned_abs(), height.unsigned_abs());
    let sheet = SVGBackend::with_string(&mut text, size).into_drawing_area();
    let drawn = sheet
        .fill(&WHITE)
        .and_then(|()| draw(&sheet))
        .and_then(|()| sheet.present());
    drop(sheet);
    match drawn {
        Ok(()) => Ok(text),
        Err(error) => Err(PlotError::Draw {
            why: error.to_string(),
        }),
    }
}

/// Draws a title over the sheet's width, and returns where it ends.
pub(super) fn title(sheet: &Sheet, text: &str) -> Drawn<i32> {
    let width = sheet.dim_in_pixel().0 as i32;
    let style = label::style(TITLE, true, INK, HPos::Center);
    let mut y = MARGIN + TITLE / 2;
    for line in label::wrapped(&label::plain(text), TITLE, width - 2 * MARGIN) {
        sheet.draw(&Text::new(line, (width / 2, y), style.clone()))?;
        y += TITLE + 6;
    }
    Ok(y)
}

/// How high the title is on a sheet of this width.
pub(super) fn title_height(text: &str, width: i32) -> i32 {
    let lines = label::wrapped(text, TITLE, width - 2 * MARGIN).len() as i32;
    MARGIN + TITLE / 2 + lines * (TITLE + 6)
}

/// The sheet's width beside the chart that the legend takes.
pub(super) fn legend_width(legend: &[(LegendEntry, String)]) -> i32 {
    let texts = legend.iter().map(|(_, text)| text.as_str());
    label::widest(texts, TEXT) + SAMPLE + 2 * MARGIN
}

/// Draws a legend from a place on downwards.
pub(super) fn legend(sheet: &Sheet, legend: &[(LegendEntry, String)], at: (i32, i32)) -> Drawn<()> {
    let style = label::style(TEXT, false, INK, HPos::Left);
    let (x, mut y) = (at.0 + MARGIN, at.1);
    for (entry, text) in legend {
        let (left, right) = (x, x + SAMPLE - 6);
        match entry {
            LegendEntry::Mark(i) => mark(sheet, *i, ((left + right) / 2, y))?,
            LegendEntry::Line(colour) => sheet.draw(&PathElement::new(
                vec![(left, y), (right, y)],
                colour.stroke_width(2),
            ))?,
            LegendEntry::Area(colour) => sheet.draw(&Rectangle::new(
                [(left, y - 6), (right, y + 6)],
                colour.filled(),
            ))?,
            LegendEntry::Note => {}
        }
        sheet.draw(&Text::new(
            label::plain(text),
            (x + SAMPLE, y),
            style.clone(),
        ))?;
        y += LINE;
    }
    Ok(())
}

/// Draws the mark of a point of the `i`th series: colours and shapes both tell
/// series apart.
pub(super) fn mark<C: CoordTranslate>(
    area: &DrawingArea<SVGBackend, C>,
    i: usize,
    at: C::From,
) -> Drawn<()> {
    let style = colour(i).mix(0.7).filled();
    match i % 3 {
        0 => area.draw(&Circle::new(at, 3, style)),
        1 => area.draw(&TriangleMarker::new(at, 4, style)),
        _ => area.draw(&Cross::new(at, 3, colour(i).stroke_width(2))),
    }
}

/// The label of an axis.
pub(super) struct Scale<'a> {
    pub axis: &'a Axis,
    /// What it shows, with the unit.
    pub name: &'a str,
    /// The label of a value.
    pub label: &'a dyn Fn(f64) -> String,
}

/// A chart with its axes, within these distances from the sheet's edges: top
/// and right.
pub(super) fn chart<'b>(
    sheet: &Sheet<'b>,
    top: i32,
    right: i32,
    x: &Scale,
    y: &Scale,
) -> Drawn<Chart<'b>> {
    let labels: Vec<String> = y.axis.ticks().into_iter().map(y.label).collect();
    let beside = label::widest(labels.iter().map(String::as_str), TEXT) + 2 * LINE;
    let mut chart = ChartBuilder::on(sheet)
        .margin_top(top)
        .margin_right(right)
        .margin_bottom(MARGIN)
        .margin_left(MARGIN)
        .x_label_area_size(2 * LINE + 6)
        .y_label_area_size(beside)
        .build_cartesian_2d(x.axis.clone(), y.axis.clone())?;
    let text = label::style(TEXT, false, INK, HPos::Center);
    chart
        .configure_mesh()
        .bold_line_style(FAINT.mix(0.35))
        .axis_style(INK)
        .x_desc(x.name)
        .y_desc(y.name)
        .axis_desc_style(text.clone())
        .label_style(text)
        .x_label_formatter(&|value| (x.label)(*value))
        .y_label_formatter(&|value| (y.label)(*value))
        .draw()?;
    Ok(chart.plotting_area().clone())
}
