//! Model files as they travel, whole and damaged.

use ndarray::Array2;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::file_error::FileError;
use crate::fitted::Fitted;
use crate::regress::Spec;
use crate::train::{Baseline, Candidate, Family, Validation};
use crate::validate::Accuracy;

fn fitted(spec: &Spec) -> Fitted {
    let sizes = (0..24).map(|i| 1000.0 * 1.3_f64.powi(i));
    let values: Vec<f64> = sizes.clone().flat_map(|s| [s, (s % 7.0) + 1.0]).collect();
    let seconds: Vec<f64> = sizes.map(|s| 1e-9 * s + 1e-6 / 3.0).collect();
    let names = ["known.units_count", "known.workers_count"].map(String::from);
    let values = Array2::from_shape_vec((24, 2), values).unwrap();
    Fitted::fit(spec, &names, &values, &seconds, None, &[1.0; 24], 7).unwrap()
}

fn validation() -> Validation {
    let accuracy = |mape| Accuracy {
        mape,
        median: mape / 3.0,
        greatest: 10.0 * mape,
        r_squared: 0.99,
    };
    Validation {
        rows: 24,
        groups: 12,
        folds: 10,
        seed: u64::MAX,
        beyond: None,
        candidates: vec![Candidate {
            family: Family::Linear,
            spec: Spec::Linear { l2: 1e-4 },
            clusters: 4,
            inputs: vec!["known.units_count".into()],
            accuracy: accuracy(0.017),
            believed: 0.015,
            standard_error: 0.001,
            folds: vec![accuracy(0.1 + 0.2)],
            beyond: Some(accuracy(0.03)),
            score: 0.02,
            score_error: 0.001,
        }],
        failed: Vec::new(),
        baselines: vec![Baseline {
            name: "roofline".into(),
            accuracy: accuracy(0.4),
            beyond: None,
        }],
        chosen: 0,
        why: "it is the best".into(),
        threshold: 0.75,
        outliers: 1,
    }
}

fn bundle() -> Bundle {
    let mut provenance = Provenance::default();
    provenance.add("command", "pdawl train --machine k40");
    let range = Range::of([1000.0, 3.5e5]).unwrap();
    let entry = |kind: &str, spec: &Spec| CodeletModel {
        kind: kind.to_owned(),
        codelet: "stencil5-f64".into(),
        rows: 24,
        configurations: 12,
        ranges: [("known.units_count".to_owned(), range)].into(),
        fitted: fitted(spec),
        validation: validation(),
        explaining: None,
    };
    let linear = Spec::Linear { l2: 1e-4 };
    let mut models = vec![entry("cpu", &linear), entry("gpu", &linear)];
    models[1].explaining = Some(Explaining {
        fitted: fitted(&linear),
        validation: validation(),
    });
    Bundle {
        name: "k40".into(),
        version: "0.1.0".into(),
        machine: "k40".into(),
        simulated: true,
        fingerprint: None,
        trained_at: 1_763_600_000,
        provenance,
        adapted: None,
        machine_file: json!({"format": "pdawl-machine/1", "host": {"cores": 8, "flops": 1.1e11}}),
        models,
    }
}

/// What reading says of the bundle's file, changed so that its checksum is
/// right.
fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut content = bundle().content("k40").unwrap();
    change(&mut content);
    Bundle::parse(&file::text(content), "k40.json")
        .unwrap_err()
        .to_string()
}

#[test]
fn a_written_bundle_is_read_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k40.json");
    for spec in [
        Spec::Linear { l2: 1e-4 },
        Spec::Gaussian {
            c: 10.0,
            epsilon: 0.01,
            gamma: 0.1,
        },
        Spec::Forest {
            trees: 3,
            depth: 4,
            min_leaf: 2,
        },
    ] {
        let mut bundle = bundle();
        bundle.models[0].fitted = fitted(&spec);
        bundle.adapted = Some(Adapted {
            machine: "titan".into(),
            checksum: bundle.checksum().unwrap(),
            runs: 8,
        });
        bundle.fingerprint = Some("0123456789abcdef".into());
        bundle.write(&path).unwrap();
        let read = Bundle::read(&path).unwrap();
        assert_eq!(read, bundle);
        let (old, new) = (&bundle.models[0].fitted, &read.models[0].fitted);
        for size in [999.0, 1234.5, 1e6] {
            let predicted = |f: &Fitted| f.predict(&[size, 3.0], 1.0).to_bits();
            assert_eq!(predicted(old), predicted(new));
        }
    }
}

#[test]
fn the_file_says_what_it_is_first() {
    let text = bundle().to_text().unwrap();
    let checksum = bundle().checksum().unwrap();
    let first: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(
        first,
        [
            "{",
            "  \"format\": \"pdawl-model/1\",",
            &format!("  \"checksum\": \"{checksum}\","),
            "  \"machine\": \"k40\","
        ]
    );
    assert_eq!(bundle().to_text().unwrap(), text);
}

#[test]
fn reformatting_changes_nothing() {
    let text = bundle().to_text().unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        Bundle::parse(&value.to_string(), "k40.json").unwrap(),
        bundle()
    );
}

#[test]
fn any_other_change_is_noticed() {
    let text = bundle().to_text().unwrap();
    for (from, to) in [
        ("\"simulated\": true", "\"simulated\": false"),
        ("\"name\": \"k40\"", "\"name\": \"k41\""),
        ("\"cores\":8", "\"cores\":9"),
        ("\"rows\":24", "\"rows\":25"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = Bundle::parse(&text.replacen(from, to, 1), "k40.json").unwrap_err();
        assert!(matches!(error, BundleError::Checksum { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("was changed or cut off"), "{error}");
        assert!(error.contains("get it again from its source"), "{error}");
    }
    for cut in [0, 1, text.len() / 2, text.len() - 3] {
        let error = Bundle::parse(&text[..cut], "k40.json").unwrap_err();
        assert!(matches!(error, BundleError::Json { .. }), "{error}");
        assert!(error.to_string().contains("line"), "{error}");
    }
}

#[test]
fn another_format_or_version_is_refused_with_a_remedy() {
    let newer = refusal(|content| {
        content["format"] = "pdawl-model/2".into();
        content["version"] = "3.1.4".into();
        content["models"] = json!({"as": "the future wants"});
    });
    assert_eq!(
        newer,
        "k40.json: made by pdawl 3.1.4 with format `pdawl-model/2`; \
         this program reads `pdawl-model/1`; update pdawl"
    );
    for format in [
        json!("pdawl-machine/1"),
        json!("pdawl-model/0"),
        json!(1),
        Value::Null,
    ] {
        let other = refusal(|content| content["format"] = format);
        assert!(other.contains("is no pdawl model"), "{other}");
    }
    for text in ["[]", "3", "{}", "null"] {
        let other = Bundle::parse(text, "k40.json").unwrap_err().to_string();
        assert!(other.contains("found none"), "{other}");
    }
    let open = Bundle::parse("{\"format\": \"pdawl-model/1\"}", "k40.json").unwrap_err();
    assert!(open.to_string().contains("its checksum is missing"));
}

#[test]
fn a_foreign_schema_is_refused_with_the_fields_path() {
    let place = |refusal: String, path: &str, why: &str| {
        assert!(refusal.contains(&format!("`{path}`: ")), "{refusal}");
        assert!(refusal.contains(why), "{refusal}");
    };
    let fields = |value: &mut Value, key: &str| value.as_object_mut().unwrap().remove(key).unwrap();
    let missing = refusal(|content| drop(fields(content, "machine_file")));
    place(missing, ".", "missing field `machine_file`");
    let missing = refusal(|content| drop(fields(&mut content["models"][1], "rows")));
    place(missing, "models[1]", "missing field `rows`");
    let missing = refusal(|content| drop(fields(&mut content["models"][0]["fitted"], "spread")));
    place(missing, "models[0].fitted", "missing field `spread`");
    let unknown = refusal(|content| content["models"][0]["colour"] = "red".into());
    place(unknown, "models[0].colour", "unknown field `colour`");
    let unknown = refusal(|content| {
        content["models"][1]["validation"]["candidates"][0]["accuracy"]["rmse"] = 0.1.into();
    });
    let path = "models[1].validation.candidates[0].accuracy.rmse";
    place(unknown, path, "unknown field `rmse`");
    let text = refusal(|content| content["models"][0]["rows"] = "many".into());
    place(text, "models[0].rows", "invalid type: string \"many\"");
}

#[test]
fn values_that_no_training_gives_are_refused_with_their_path() {
    let check = |path: &str, why: &str, change: &dyn Fn(&mut Value)| {
        let refusal = refusal(change);
        let place = format!("k40.json: `{path}`: ");
        assert!(refusal.starts_with(&place), "{path}: {refusal}");
        assert!(refusal.contains(why), "{path}: {refusal}");
        assert!(refusal.contains("train the model again"), "{refusal}");
    };
    check("name", "is empty", &|c| c["name"] = " ".into());
    check("models", "is empty", &|c| c["models"] = json!([]));
    check("models[1]", "another model of stencil5-f64 on cpu", &|c| {
        c["models"][1]["kind"] = "cpu".into();
    });
    check("models[0].kind", "neither `cpu` nor `gpu`", &|c| {
        c["models"][0]["kind"] = "fpga".into();
    });
    check("models[0].configurations", "between 1 and the rows", &|c| {
        c["models"][0]["configurations"] = 25.into();
    });
    let range = "models[0].ranges.known.units_count";
    check(range, "begins at 10 and ends at 1", &|c| {
        c["models"][0]["ranges"]["known.units_count"] = json!({"min": 10.0, "max": 1.0});
    });
    check(
        "models[0].ranges.trace.h2d_seconds",
        "only after a run",
        &|c| {
            c["models"][0]["ranges"]["trace.h2d_seconds"] = json!({"min": 0.0, "max": 1.0});
        },
    );
    check("models[0].ranges.x", "has no group", &|c| {
        c["models"][0]["ranges"]["x"] = json!({"min": 0.0, "max": 1.0});
    });
    let input = "models[0].fitted.inputs[1].name";
    check(input, "is empty", &|c| {
        c["models"][0]["fitted"]["inputs"][1]["name"] = "".into();
    });
    check(input, "not known before a run", &|c| {
        c["models"][0]["fitted"]["inputs"][1]["name"] = "counter.cycles_count".into();
    });
    check(input, "for the second time", &|c| {
        c["models"][0]["fitted"]["inputs"][1]["name"] = "known.units_count".into();
    });
    check("models[0].fitted", "the regressor wants 2 inputs", &|c| {
        c["models"][0]["fitted"]["inputs"] = json!([]);
    });
    check(
        "models[0].validation.chosen",
        "none of the candidates",
        &|c| {
            c["models"][0]["validation"]["chosen"] = 1.into();
        },
    );
    check(
        "models[1].explaining.validation.baselines[0].accuracy.mape",
        "negative",
        &|c| {
            c["models"][1]["explaining"]["validation"]["baselines"][0]["accuracy"]["mape"] =
                (-0.1).into();
        },
    );
    let adapted =
        |checksum: &str, runs: u32| json!({"machine": "t", "checksum": checksum, "runs": runs});
    check("adapted.checksum", "is no checksum", &|c| {
        c["adapted"] = adapted("x", 8)
    });
    let checksum = "0".repeat(64);
    check("adapted.runs", "without runs", &|c| {
        c["adapted"] = adapted(&checksum, 0)
    });
}

#[test]
fn counters_may_explain_but_not_plan() {
    let mut bundle = bundle();
    let explaining = bundle.models[1].explaining.as_mut().unwrap();
    explaining.fitted.inputs[1].name = "counter.cycles_count".into();
    bundle.to_text().unwrap();
    bundle.models[1].fitted.inputs[1].name = "prior.memory_seconds".into();
    bundle.to_text().unwrap();
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k40.json");
    std::fs::write(&path, "precious").unwrap();
    let refusal = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = bundle();
        change(&mut bundle);
        let error = bundle.write(&path).unwrap_err();
        assert!(matches!(error, BundleError::Refused { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        error.to_string()
    };
    let nan = refusal(&|b| b.models[0].validation.candidates[0].accuracy.mape = f64::NAN);
    assert!(
        nan.contains("`models[0].validation.candidates[0].accuracy.mape`"),
        "{nan}"
    );
    assert!(nan.contains("a figure that is not finite is null"), "{nan}");
    assert!(refusal(&|b| b.models.clear()).contains("`models`: is empty"));
    let missing = bundle()
        .write(&folder.path().join("none/k40.json"))
        .unwrap_err();
    assert!(matches!(
        missing,
        BundleError::File(FileError::Write { .. })
    ));
    let missing = Bundle::read(&folder.path().join("none.json")).unwrap_err();
    assert!(matches!(missing, BundleError::File(FileError::Read { .. })));
    std::fs::write(&path, [b'{', 0xff]).unwrap();
    let binary = Bundle::read(&path).unwrap_err().to_string();
    assert!(binary.contains("byte 1 is not UTF-8"), "{binary}");
}

#[test]
fn a_model_is_found_by_kind_and_codelet() {
    let bundle = bundle();
    assert_eq!(bundle.find("gpu", "stencil5-f64"), Some(&bundle.models[1]));
    assert_eq!(bundle.find("gpu", "stencil5-f32"), None);
}

#[test]
fn ranges_hold_what_was_seen() {
    let range = Range::of([3.0, -1.0, 2.0]).unwrap();
    assert!(range.holds(-1.0) && range.holds(3.0) && !range.holds(3.1));
    assert!(!range.holds(f64::NAN));
    assert_eq!(Range::of([]), None);
}

/// Refused, or the same: such as a blank more.
fn refused_or_equal(bytes: &[u8], original: &Bundle) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(read) = Bundle::parse(text, "k40.json")
    {
        assert_eq!(&read, original);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_damaged_file_is_refused_or_the_same(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let original = bundle();
        let text = original.to_text().unwrap();
        let mut bytes = text.clone().into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        refused_or_equal(&bytes, &original);
        refused_or_equal(&text.as_bytes()[..cut.index(text.len())], &original);
    }
}

#[test]
fn any_flipped_byte_is_refused_or_changes_nothing() {
    let original = bundle();
    let bytes = original.to_text().unwrap().into_bytes();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 7);
        refused_or_equal(&flipped, &original);
    }
}

#[path = "../../../tests/fixtures/changed.rs"]
mod changed;

/// Nothing but the checksum keeps a changed file from being read, and anybody can compute it.
#[test]
fn changed_models_with_a_right_checksum_are_read_or_refused() {
    let content = bundle().content("k40").unwrap().to_string();
    let words = [
        "null", "[]", "{}", "\"gpu\"", ",", ":", "-", "1e308", "0.0", "true",
    ];
    changed::changed(&[content.as_bytes()], &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(content) = serde_json::from_str::<Value>(&text) else {
            return;
        };
        if !content.is_object() {
            return;
        }
        if let Ok(bundle) = Bundle::parse(&file::text(content), "k40.json") {
            for model in &bundle.models {
                let inputs = vec![1000.0; model.ranges.len()];
                let _ = (model.fitted).predict(&inputs, 1.0);
            }
        }
    });
}
