//! Predicted against measured times.

use plotters::prelude::*;

use super::axis::{Axis, drawable, short};
use super::figure::{self, FAINT, LegendEntry, SHADE, Scale};
use super::{PlotError, Series};

/// Width and height of the chart without the legend.
const SIDE: i32 = 560;

/// Half the width of the band around the diagonal.
const BAND: f64 = 0.05;

/// Draws (measured, predicted) seconds of each series, the diagonal on which
/// they would be equal, and a band of 5 % around it. Both axes have the same
/// scale, a logarithmic one where times span a decade. Points that are not
/// finite and above 0 are left out, and the legend says how many.
///
/// # Errors
/// No point that can be drawn.
pub fn predicted_against_measured(
    title: &str,
    series: &[Series<(f64, f64)>],
) -> Result<String, PlotError> {
    let is_time = |time: f64| drawable(time) && time > 0.0;
    let is_drawable = |point: &(f64, f64)| is_time(point.0) && is_time(point.1);
    let all = || series.iter().flat_map(|s| &s.points);
    let times = all().filter(|p| is_drawable(p)).flat_map(|p| [p.0, p.1]);
    let axis = Axis::over(times).ok_or(PlotError::Empty {
        missing: "no point has a measured and a predicted time above 0",
    })?;
    let mut legend: Vec<(LegendEntry, String)> = (series.iter().enumerate())
        .map(|(i, s)| (LegendEntry::Mark(i), s.name.clone()))
        .collect();
    legend.push((LegendEntry::Line(FAINT), "predicted = measured".into()));
    legend.push((LegendEntry::Area(SHADE), "within 5 %".into()));
    let left_out = all().filter(|p| !is_drawable(p)).count();
    if left_out > 0 {
        legend.push((LegendEntry::Note, format!("{left_out} points left out")));
    }
    let beside = figure::legend_width(&legend);
    let top = figure::title_height(title, SIDE + beside);
    figure::svg(SIDE + beside, SIDE + top, |sheet| {
        let top = figure::title(sheet, title)?;
        let seconds = |value: f64| short(value) + "s";
        let scale = |name| Scale {
            axis: &axis,
            name,
            label: &seconds,
        };
        let x = scale("measured time of a step");
        let y = scale("predicted time of a step");
        let chart = figure::chart(sheet, top, beside, &x, &y)?;
        let ends = axis.range();
        chart.draw(&Polygon::new(band(ends.start, ends.end), SHADE.filled()))?;
        let diagonal = vec![(ends.start, ends.start), (ends.end, ends.end)];
        chart.draw(&PathElement::new(diagonal, FAINT))?;
        for (i, s) in series.iter().enumerate() {
            for point in s.points.iter().filter(|p| is_drawable(p)) {
                figure::mark(&chart, i, *point)?;
            }
        }
        figure::legend(sheet, &legend, (SIDE, top + figure::LINE))
    })
}

/// The corners of the band. Those beyond the axes are drawn at their ends.
fn band(first: f64, last: f64) -> Vec<(f64, f64)> {
    vec![
        (first, first),
        (first / (1.0 - BAND), first),
        (last, last * (1.0 - BAND)),
        (last, last),
        (last / (1.0 + BAND), last),
        (first, first * (1.0 + BAND)),
    ]
}
