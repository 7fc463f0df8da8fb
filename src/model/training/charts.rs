//! Charts of a group's planning model.

use pdawl_profiler::cluster::Selection;
use pdawl_profiler::plot::{
    PlotError, Series, SizeError, dendrogram, error_over_size, predicted_against_measured,
};
use pdawl_profiler::train::Family;

use super::GroupModel;

/// A chart: what it is called, and its SVG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// A file's name, such as `cpu-stencil5-f64-dendrogram.svg`.
    pub file: String,
    pub svg: String,
}

/// The charts of a model of `machine`: which features are alike, predicted
/// against measured times, and errors over sizes. Every prediction of the model
/// is one of a run that its fit had not seen.
///
/// # Errors
/// When nothing can be drawn, as of a model without rows.
pub fn charts(model: &GroupModel, machine: &str, simulated: bool) -> Result<Vec<Chart>, PlotError> {
    let simulated = if simulated { ", simulated" } else { "" };
    let (kind, codelet) = (&model.kind, &model.codelet);
    let title = |what: &str| format!("{what}: {codelet} on {kind} of {machine}{simulated}");
    let mut charts = vec![
        (
            "predicted",
            predicted_against_measured(&title("Predicted against measured"), &predicted(model))?,
        ),
        (
            "error",
            error_over_size(
                &title("Error over size"),
                "bytes of the grid",
                &errors(model),
                trained(model),
            )?,
        ),
    ];
    if let Some(selection) = selection(model) {
        let names = &model.table.names;
        let inputs = selection.inputs.iter();
        let selected: Vec<&str> = inputs.map(|input| names[input.index].as_str()).collect();
        let title = title("Features that correlate with the time");
        let svg = dendrogram(&title, &selection.dendrogram, selected.len(), &selected)?;
        charts.push(("dendrogram", svg));
    }
    Ok((charts.into_iter())
        .map(|(what, svg)| Chart {
            file: format!("{kind}-{codelet}-{what}.svg"),
            svg,
        })
        .collect())
}

/// The features that correlate with the time itself, in as many clusters as the
/// paper's linear model took (its Figure 4 has five). The model that was chosen
/// may have other inputs, or none: where it multiplies physics, they correlate
/// with what physics leaves.
fn selection(model: &GroupModel) -> Option<Selection> {
    const THRESHOLD: f64 = 0.75;
    const CLUSTERS: usize = 5;
    let rows: Vec<usize> = (0..model.table.rows.len()).collect();
    let mut candidates = model.planning.validation.candidates.iter();
    let linear = candidates.find(|candidate| candidate.family == Family::Linear);
    let clusters = linear.map_or(CLUSTERS, |linear| linear.clusters);
    model.table.features(&rows).select(clusters, THRESHOLD)
}

/// Name, measured and predicted seconds, and size of every run, by the model
/// and by what learns nothing.
fn ways(model: &GroupModel) -> Vec<(String, Vec<Point>)> {
    let rows = &model.table.rows;
    let size = sizes(model);
    let chosen = model.planning.validation.chosen();
    let name = chosen.map_or_else(|| "model".to_owned(), |c| c.family.to_string());
    let held_out = (model.planning.held_out.iter())
        .map(|held| Point {
            measured: held.measured,
            predicted: held.predicted,
            size: size.get(held.row).copied().unwrap_or(f64::NAN),
        })
        .collect();
    let by = |predict: &dyn Fn(usize) -> f64| {
        (rows.iter().enumerate())
            .map(|(i, row)| Point {
                measured: row.seconds,
                predicted: predict(i),
                size: size[i],
            })
            .collect()
    };
    let mut ways = vec![
        (name, held_out),
        ("prior".to_owned(), by(&|i| rows[i].prior)),
    ];
    for (place, name) in model.table.baselines.iter().enumerate() {
        ways.push((name.clone(), by(&|i| rows[i].baselines[place])));
    }
    ways
}

struct Point {
    measured: f64,
    predicted: f64,
    size: f64,
}

fn predicted(model: &GroupModel) -> Vec<Series<(f64, f64)>> {
    (ways(model).into_iter())
        .map(|(name, points)| Series {
            name,
            points: points.iter().map(|p| (p.measured, p.predicted)).collect(),
        })
        .collect()
}

fn errors(model: &GroupModel) -> Vec<Series<SizeError>> {
    (ways(model).into_iter())
        .map(|(name, points)| Series {
            name,
            points: (points.iter())
                .map(|p| SizeError {
                    size: p.size,
                    error: p.predicted / p.measured - 1.0,
                })
                .collect(),
        })
        .collect()
}

/// Bytes of each row's grid.
fn sizes(model: &GroupModel) -> Vec<f64> {
    let place = |name: &str| model.table.names.iter().position(|known| known == name);
    let (units, bytes) = (place("known.units_count"), place("known.unit_bytes"));
    (model.table.rows.iter())
        .map(|row| match (units, bytes) {
            (Some(units), Some(bytes)) => row.values[units] * row.values[bytes],
            _ => f64::NAN,
        })
        .collect()
}

fn trained(model: &GroupModel) -> Option<(f64, f64)> {
    let sizes = sizes(model);
    let least = sizes.iter().copied().min_by(f64::total_cmp)?;
    let greatest = sizes.iter().copied().max_by(f64::total_cmp)?;
    Some((least, greatest))
}
