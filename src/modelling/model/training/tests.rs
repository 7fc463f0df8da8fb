//! Training on made-up runs, and what it refuses.

use std::sync::atomic::{AtomicBool, Ordering};

use super::fixtures::{CODELET, machine, model, recipe, samples};
use super::*;
use crate::model::training::fixtures;

fn refused(change: impl Fn(&mut Vec<Sample>), kinds: &[&str]) -> String {
    let mut samples = samples(&machine("k40"));
    change(&mut samples);
    let request = TrainingRequest {
        machine: "k40",
        samples: &samples,
        codelet: Some(CODELET),
        kinds,
        recipe: &recipe(),
    };
    let error = fit_all(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).unwrap_err();
    error.to_string()
}

#[test]
fn a_model_is_better_than_the_prior_and_says_what_it_learned() {
    let machine = machine("k40");
    let samples = samples(&machine);
    let bundle = model("mine", &machine, &samples);
    assert_eq!(
        (bundle.name.as_str(), bundle.machine.as_str()),
        ("mine", "k40")
    );
    assert!(bundle.simulated);
    let back: MachineFile = serde_json::from_value(bundle.machine_file.clone()).unwrap();
    assert_eq!(back, machine);

    let entry = bundle.find("cpu", CODELET).unwrap();
    assert_eq!((entry.rows, entry.configurations), (60, 30));
    let units = entry.ranges["known.units_count"];
    assert_eq!((units.min, units.max), (100.0, 1000.0));
    assert!(entry.ranges.keys().all(|name| !name.starts_with("prior.")));
    assert!(entry.explaining.is_none());
    let chosen = entry.validation.chosen().unwrap();
    let baselines = &entry.validation.baselines;
    let names: Vec<&str> = baselines.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["naive", "roofline"]);
    for baseline in baselines {
        assert!(
            chosen.accuracy.mape < 0.2 * baseline.accuracy.mape,
            "{}",
            baseline.name
        );
    }
    assert!(chosen.accuracy.mape < 0.02);
}

#[test]
fn runs_with_counters_give_a_model_that_explains_as_well() {
    let machine = machine("k40");
    let mut samples = samples(&machine);
    for sample in &mut samples {
        let cycles = 2.6e9 * sample.seconds;
        sample
            .features
            .insert("counter.cycles_count".into(), cycles);
        sample.counters = "hardware".into();
    }
    let groups = groups(&samples);
    let stop = AtomicBool::new(false);
    let model = fit(&groups[0], "k40", &recipe(), &mut |_, _, _| {}, &stop).unwrap();
    let is_counted = |name: &String| name == "counter.cycles_count";
    let planning = &model.planning.validation.candidates;
    assert!(!planning.iter().flat_map(|c| &c.inputs).any(is_counted));
    let explaining = model.explaining.as_ref().unwrap();
    assert_eq!(explaining.validation.rows, 60);
    let entry = model.entry();
    let kept = entry.explaining.unwrap();
    assert_eq!(kept.fitted, explaining.fitted);
    let folds = |chosen: bool| {
        let candidates = kept.validation.candidates.iter().enumerate();
        let mut of = candidates.filter(|(i, _)| (*i == kept.validation.chosen) == chosen);
        of.all(|(_, candidate)| candidate.folds.len() == if chosen { 5 } else { 0 })
    };
    assert!(
        folds(true) && folds(false),
        "files keep the chosen one's folds"
    );
}

#[test]
fn what_cannot_be_learned_is_reported_with_kind_and_codelet() {
    for (message, words) in [
        (
            refused(Vec::clear, &["cpu"]),
            ["no runs", "pdawl profile stencil --machine k40"],
        ),
        (
            refused(
                |s| s.iter_mut().for_each(|s| s.codelet = "other".into()),
                &["gpu"],
            ),
            ["no run of stencil5-f64 on gpu", "--budget"],
        ),
        (
            refused(|s| s.truncate(2), &["cpu"]),
            ["no model of stencil5-f64 on cpu", "1 configurations"],
        ),
        (
            refused(|s| s[3].machine = "titan".into(), &["cpu"]),
            ["a run of `titan`", "`k40`"],
        ),
        (
            refused(
                |s| {
                    s[3].features.remove("known.chunk_units_count");
                },
                &["cpu"],
            ),
            ["cpu, stencil5-f64", "`known.chunk_units_count` is missing"],
        ),
    ] {
        for word in words {
            assert!(message.contains(word), "no {word:?} in {message}");
        }
    }
}

/// As after an interruption, or with a budget that sufficed for one kind.
#[test]
fn what_was_measured_makes_a_model_and_what_lacks_runs_is_named() {
    let some = samples(&machine("k40"));
    let mut with_few = some.clone();
    for mut few in samples(&machine("k40")).into_iter().take(2) {
        few.kind = "gpu".into();
        with_few.push(few);
    }
    for (samples, why) in [(&some, "no run of"), (&with_few, "no model of")] {
        let request = TrainingRequest {
            machine: "k40",
            samples,
            codelet: Some(CODELET),
            kinds: &["cpu", "gpu"],
            recipe: &recipe(),
        };
        let models = fit_all(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).unwrap();
        assert_eq!(models.groups.len(), 1);
        assert!(models.left_out[0].contains("stencil5-f64 on gpu"));
        assert!(models.left_out[0].contains(why), "{}", models.left_out[0]);
    }
}

#[test]
fn another_codelet_with_few_runs_is_left_out_and_reported() {
    let machine = machine("k40");
    let mut all = samples(&machine);
    let mut others: Vec<Sample> = samples(&machine)[..4].to_vec();
    for other in &mut others {
        other.codelet = "stencil7-f64".into();
    }
    all.append(&mut others);
    let request = TrainingRequest {
        machine: "k40",
        samples: &all,
        codelet: Some(CODELET),
        kinds: &["cpu"],
        recipe: &recipe(),
    };
    let stop = AtomicBool::new(false);
    let mut left_out = Vec::new();
    let models = fit_all(
        &request,
        &mut |what, _, _| left_out.push(what.to_owned()),
        &stop,
    )
    .unwrap();
    assert_eq!(models.groups.len(), 1);
    assert_eq!(models.left_out.len(), 1);
    assert!(models.left_out[0].contains("stencil7-f64 on cpu"));
    assert!(left_out.contains(&"cpu stencil5-f64".to_owned()));

    stop.store(true, Ordering::Relaxed);
    let error = fit_all(&request, &mut |_, _, _| {}, &stop).unwrap_err();
    assert!(matches!(error, TrainingError::Interrupted), "{error}");
}

fn table_samples() -> Vec<Sample> {
    fixtures::samples(&fixtures::machine("k40"))
}

fn all(samples: &[Sample]) -> Vec<&Sample> {
    samples.iter().collect()
}

#[test]
fn a_planning_table_has_what_is_known_before_the_run() {
    let mut samples = table_samples();
    for sample in &mut samples {
        let features = &mut sample.features;
        features.insert("counter.cycles_count".into(), 1e9);
        features.insert("trace.kernel_seconds".into(), sample.seconds);
    }
    let table = planning(&all(&samples)).unwrap();
    assert_eq!(table.baselines, baseline::NAMES);
    assert!(table.names.contains(&"derived.traffic_bytes".to_owned()));
    assert!(table.names.contains(&"prior.total_seconds".to_owned()));
    for name in &table.names {
        assert!(
            !name.starts_with("counter.") && !name.starts_with("trace."),
            "{name}"
        );
        assert!(!name.contains("device"), "no host row has {name}");
    }
    let place = table.names.iter().position(|n| n == "known.units_count");
    for (row, sample) in table.rows.iter().zip(&samples) {
        assert_eq!(row.values.len(), table.names.len());
        assert_eq!(
            row.values[place.unwrap()],
            sample.features["known.units_count"]
        );
        assert_eq!(row.seconds, sample.seconds / 5.0, "of a step");
        assert!(row.prior > 0.0 && row.baselines.iter().all(|b| *b > 0.0));
    }
}

#[test]
fn of_grids_on_cores_the_parts_make_up_the_whole() {
    let samples = table_samples();
    let mut table = planning(&all(&samples)).unwrap();
    let named = |table: &Table| -> Vec<String> {
        let parts = table.parts.iter();
        parts.map(|place| table.names[*place].clone()).collect()
    };
    assert!(table.complete);
    assert_eq!(table.hidden(), table.parts);
    let summands = (0..features::NAMES.len()).filter(|i| features::is_summand(*i));
    let summands: Vec<&str> = summands.map(|index| features::NAMES[index]).collect();
    assert_eq!(named(&table), summands);
    table.complete = false;
    assert!(table.hidden().is_empty());
}

#[test]
fn an_explaining_table_has_what_most_runs_tell_of_themselves() {
    let mut samples = table_samples();
    let plan = planning(&all(&samples)).unwrap();
    assert_eq!(explaining(&all(&samples), &plan), None);
    for (i, sample) in samples.iter_mut().enumerate() {
        let features = &mut sample.features;
        if i != 3 {
            features.insert("counter.cycles_count".into(), 1e9);
            features.insert("counter.scaled_ratio".into(), 0.5);
        }
        if i < 3 {
            features.insert("telemetry.power_watts".into(), 250.0);
        }
    }
    let table = explaining(&all(&samples), &plan).unwrap();
    assert_eq!(
        table.rows.len(),
        samples.len() - 1,
        "one run has no counters"
    );
    let more = &table.names[plan.names.len()..];
    assert_eq!(more, ["counter.cycles_count", "counter.scaled_ratio"]);
    let figures = &table.rows[0].values[plan.names.len()..];
    assert_eq!(
        figures,
        [2e8, 0.5],
        "cycles of a step, and a ratio as it is"
    );
}

#[test]
fn a_row_that_does_not_say_what_was_run_is_named() {
    let mut samples = table_samples();
    samples[13].features.remove("known.units_count");
    let message = planning(&all(&samples)).unwrap_err().to_string();
    assert!(
        message.contains("1000x300 f64; host:1, repeat 1"),
        "{message}"
    );
    assert!(message.contains("known.units_count"), "{message}");
}
