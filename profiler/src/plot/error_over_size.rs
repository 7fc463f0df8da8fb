//! The error of predictions over sizes: where a model is sure, and what
//! happens beyond its training.

use plotters::prelude::*;

use super::axis::{Axis, decimal, drawable, short};
use super::figure::{self, FAINT, INK, LegendEntry, SHADE, Scale};
use super::{PlotError, Series};

/// Width and height of the chart without the legend.
const SIZE: (i32, i32) = (680, 440);

/// The number of parts of the axis, each of which gives a corner of the mean line.
const PARTS: f64 = 12.0;

/// How far a prediction is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeError {
    /// Of what was run, in the unit that the chart names.
    pub size: f64,
    /// (predicted - measured) / measured.
    pub error: f64,
}

/// Draws each series' errors over the sizes, and a line through their means.
/// `sizes` names the sizes, such as `points of the grid`; `trained` are the
/// least and the greatest in the training, which are shaded: what stands
/// beside is extrapolated. Points that are not finite are left out, and the
/// legend says how many.
///
/// # Errors
/// No point that can be drawn.
pub fn error_over_size(
    title: &str,
    sizes: &str,
    series: &[Series<SizeError>],
    trained: Option<(f64, f64)>,
) -> Result<String, PlotError> {
    let is_drawable = |p: &&SizeError| drawable(p.size) && drawable(p.error);
    let all = || series.iter().flat_map(|s| &s.points);
    let empty = PlotError::Empty {
        missing: "no point has a size and an error",
    };
    if all().filter(is_drawable).count() == 0 {
        return Err(empty);
    }
    let trained = trained.filter(|(least, most)| least <= most);
    let ends = trained.into_iter().flat_map(|(least, most)| [least, most]);
    let x = Axis::over(all().filter(is_drawable).map(|p| p.size).chain(ends));
    let errors = all().filter(is_drawable).map(|p| 100.0 * p.error);
    let y = Axis::over(errors.chain([0.0]));
    let (Some(x), Some(y)) = (x, y) else {
        return Err(empty);
    };

    let mut legend: Vec<(LegendEntry, String)> = (series.iter().enumerate())
        .map(|(i, s)| (LegendEntry::Mark(i), s.name.clone()))
        .collect();
    legend.push((LegendEntry::Line(FAINT), "mean of near sizes".into()));
    if trained.is_some() {
        legend.push((LegendEntry::Area(SHADE), "sizes of the training".into()));
    }
    let left_out = all().count() - all().filter(is_drawable).count();
    if left_out > 0 {
        legend.push((LegendEntry::Note, format!("{left_out} points left out")));
    }
    let beside = figure::legend_width(&legend);
    let width = SIZE.0 + beside;
    figure::svg(
        width,
        SIZE.1 + figure::title_height(title, width),
        |sheet| {
            let top = figure::title(sheet, title)?;
            let size = |value: f64| short(value).trim_end().to_owned();
            let percent = |value: f64| format!("{} %", decimal(value));
            let across = Scale {
                axis: &x,
                name: sizes,
                label: &size,
            };
            let up = Scale {
                axis: &y,
                name: "error of the prediction",
                label: &percent,
            };
            let chart = figure::chart(sheet, top, beside, &across, &up)?;
            let (ends, heights) = (x.range(), y.range());
            if let Some((least, most)) = trained {
                let corners = [(least, heights.start), (most, heights.end)];
                chart.draw(&Rectangle::new(corners, SHADE.mix(0.7).filled()))?;
            }
            chart.draw(&PathElement::new(
                vec![(ends.start, 0.0), (ends.end, 0.0)],
                INK,
            ))?;
            for (i, s) in series.iter().enumerate() {
                let points: Vec<(f64, f64)> = (s.points.iter().filter(is_drawable))
                    .map(|p| (p.size, 100.0 * p.error))
                    .collect();
                for point in &points {
                    figure::mark(&chart, i, *point)?;
                }
                let style = figure::colour(i).stroke_width(2);
                chart.draw(&PathElement::new(means(&points, &x), style))?;
            }
            figure::legend(sheet, &legend, (SIZE.0, top + figure::LINE))
        },
    )
}

/// The means of the points of each part of the axis that has any, from left to
/// right.
fn means(points: &[(f64, f64)], axis: &Axis) -> Vec<(f64, f64)> {
    let mut places: Vec<(f64, f64)> = (points.iter())
        .map(|(size, error)| (axis.place(*size), *error))
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let part = |place: f64| (axis.along(place) * PARTS).floor();
    let mean = |points: &[(f64, f64)]| {
        let sum = points
            .iter()
            .fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        let count = points.len() as f64;
        (axis.value(sum.0 / count), sum.1 / count)
    };
    (places.chunk_by(|a, b| part(a.0) == part(b.0)))
        .map(mean)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_line_has_a_corner_a_part() {
        let axis = Axis::over([100.0, 112.0].into_iter()).unwrap();
        let points = [(102.75, 4.0), (100.0, 1.0), (100.25, 3.0), (103.0, -2.0)];
        assert_eq!(means(&points, &axis), [(100.125, 2.0), (102.875, 1.0)]);
        assert!(means(&[], &axis).is_empty());
    }
}
