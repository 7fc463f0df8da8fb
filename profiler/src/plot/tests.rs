//! Charts as their readers see them.

use super::*;
use crate::cluster::Dendrogram;

/// The texts of an SVG whose tags are balanced; fails on any other.
fn texts(svg: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut texts = Vec::new();
    let mut rest = svg;
    while let Some(begin) = rest.find('<') {
        let text = rest[..begin].trim();
        if !text.is_empty() {
            assert_eq!(open.last(), Some(&"text"), "{text}");
            texts.push(unescaped(text));
        }
        let end = begin + rest[begin..].find('>').expect("a tag ends");
        let tag = &rest[begin + 1..end];
        rest = &rest[end + 1..];
        assert!(!tag.contains('<'), "{tag}");
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    assert!(svg.starts_with("<svg "));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    texts
}

fn unescaped(text: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
    ];
    let text = entities
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

fn has(texts: &[String], wanted: &[&str]) {
    for text in wanted {
        assert!(texts.iter().any(|t| t == text), "no `{text}` in {texts:?}");
    }
}

/// Places of marks: circles' centres.
fn circles(svg: &str) -> usize {
    svg.matches("<circle ").count()
}

fn tree() -> Dendrogram {
    let names = [
        "known.units_count",
        "derived.flops",
        "known.workers_count",
        "machine.device_bandwidth_bytes_per_second",
        "derived.working_set_over_l3_ratio",
    ];
    let place: [f64; 5] = [0.0, 0.02, 0.7, 0.75, 0.3];
    Dendrogram::of(names.map(String::from).to_vec(), |a, b| {
        (place[a] - place[b]).abs()
    })
}

fn series() -> Vec<Series<(f64, f64)>> {
    let points = |factor: f64| -> Vec<(f64, f64)> {
        (0..20)
            .map(|i| 1e-4 * 1.5f64.powi(i))
            .enumerate()
            .map(|(i, t)| (t, t * factor * (1.0 + 0.02 * ((i * 7) % 5) as f64)))
            .collect()
    };
    [
        "gpu0: prior x linear, 2.1 %",
        "host: <&\"forest\">",
        "roofline",
    ]
    .into_iter()
    .zip([1.0, 0.9, 1.4])
    .map(|(name, factor)| Series {
        name: name.to_owned(),
        points: points(factor),
    })
    .collect()
}

fn errors() -> Vec<Series<SizeError>> {
    let points = (0..40).map(|i| SizeError {
        size: 1e6 * 1.2f64.powi(i),
        error: 0.03 * (f64::from(i) * 2.3).sin() + 0.001 * f64::from(i),
    });
    vec![Series {
        name: "gpu0".into(),
        points: points.collect(),
    }]
}

#[test]
fn a_dendrogram_names_every_feature_and_marks_the_selected() {
    let selected = ["derived.flops", "known.workers_count"];
    let svg = dendrogram("Features, k40 (simulated)", &tree(), 3, &selected).unwrap();
    let texts = texts(&svg);
    let names = tree().names;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    has(&texts, &names);
    has(
        &texts,
        &[
            "Features, k40 (simulated)",
            "3 clusters",
            "distance: 1 - |correlation|",
        ],
    );
    assert_eq!(circles(&svg), selected.len());
    // The title and the selected are bold.
    assert_eq!(
        svg.matches("bold").count() - svg.matches("bold,").count(),
        3
    );
    assert_eq!(
        dendrogram("Features, k40 (simulated)", &tree(), 3, &selected).unwrap(),
        svg
    );
}

#[test]
fn predicted_against_measured_has_every_point_and_name() {
    let svg = predicted_against_measured("Predicted, k40 (simulated)", &series()).unwrap();
    let texts = texts(&svg);
    has(
        &texts,
        &[
            "Predicted, k40 (simulated)",
            "gpu0: prior x linear, 2.1 %",
            "host: <&\"forest\">",
            "roofline",
            "within 5 %",
            "predicted = measured",
            "measured time of a step",
            "predicted time of a step",
            "1 ms",
            "100 ms",
        ],
    );
    // 20 points and one in the legend.
    assert_eq!(circles(&svg), 21);
}

#[test]
fn what_cannot_be_drawn_is_counted() {
    let mut series = series();
    series[0].points.extend([(0.1, f64::INFINITY), (0.0, 0.1)]);
    let svg = predicted_against_measured("t", &series).unwrap();
    has(&texts(&svg), &["2 points left out"]);
    assert_eq!(circles(&svg), 21);
    let nothing = Series {
        name: "a".into(),
        points: vec![(f64::NAN, 1.0)],
    };
    let error = predicted_against_measured("t", &[nothing]).unwrap_err();
    assert!(matches!(error, PlotError::Empty { .. }));
}

#[test]
fn errors_over_sizes_show_the_training() {
    let draw = |trained| error_over_size("Error, k40", "points of the grid", &errors(), trained);
    let svg = draw(Some((2e6, 1e8))).unwrap();
    let with = texts(&svg);
    has(
        &with,
        &[
            "Error, k40",
            "gpu0",
            "sizes of the training",
            "points of the grid",
            "0 %",
            "10 M",
        ],
    );
    assert_eq!(circles(&svg), 41);
    let without = texts(&draw(None).unwrap());
    assert!(!without.contains(&"sizes of the training".to_owned()));
    assert!(error_over_size("t", "s", &[], Some((1.0, 2.0))).is_err());
}

#[test]
fn a_single_point_and_equal_points_are_drawn() {
    let one = |points| {
        let name = "one".to_owned();
        predicted_against_measured("t", &[Series { name, points }]).unwrap()
    };
    texts(&one(vec![(0.5, 0.5)]));
    texts(&one(vec![(1e-299, 1e299)]));
    texts(&one(vec![(0.5, 0.5001); 3]));
    let point = SizeError {
        size: 4096.0,
        error: 0.0,
    };
    let name = "one".to_owned();
    let points = vec![point];
    texts(&error_over_size("t", "s", &[Series { name, points }], None).unwrap());
    let lone = Dendrogram::of(vec!["known.units_count".into()], |_, _| 0.0);
    texts(&dendrogram("t", &lone, 1, &[]).unwrap());
    let same = Dendrogram::of(tree().names, |_, _| 0.0);
    texts(&dendrogram("t", &same, 2, &[]).unwrap());
}

#[test]
fn names_with_markup_and_control_characters_stay_text() {
    let odd = Dendrogram::of(vec!["<script>&'\u{1b}[2J".into(), "b".into()], |_, _| 0.5);
    let svg = dendrogram("<b>\u{7}", &odd, 2, &["b"]).unwrap();
    has(&texts(&svg), &["<script>&'\u{fffd}[2J", "<b>\u{fffd}"]);
}
