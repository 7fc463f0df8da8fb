use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::dataset::{Appender, check, read};

/// Figures of all sizes, down to the smallest and up to the largest.
fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::MIN_POSITIVE / 4.0),
        Just(f64::MAX),
        any::<f64>().prop_filter_map("finite", |v| v.is_finite().then_some(v.abs())),
        (1u64..1 << 53).prop_map(|v| v as f64),
        0.0..10.0,
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9:_.=;-]{1,12}",
        "[a-z\"', äß0-9]{1,12}".prop_map(|text| format!("x{text}y")),
    ]
}

prop_compose! {
    fn any_sample()(
        text in (name(), name(), name()),
        gpu in any::<bool>(),
        steps in 1..=u32::MAX,
        seconds in figure(),
        figures in prop::collection::btree_map(
            prop::sample::select(vec![
                "derived.flops",
                "derived.working_set_over_l2_ratio",
                "derived.intensity_flops_per_byte",
                "counter.cycles_count",
                "trace.kernel_seconds",
                "telemetry.energy_joules",
                "telemetry.power_watts",
            ]),
            figure(),
            0..7,
        ),
        units in prop::option::of(1u64..1 << 53),
    ) -> Sample {
        let features: BTreeMap<String, f64> = figures
            .into_iter()
            .chain(units.map(|units| ("known.units_count", units as f64)))
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Sample {
            machine: text.0,
            simulated: true,
            device: text.1,
            kind: if gpu { "gpu" } else { "cpu" }.into(),
            codelet: "stencil5-f64".into(),
            configuration: text.2,
            repeat: 0,
            counters: "software".into(),
            steps,
            seconds: seconds.max(f64::MIN_POSITIVE),
            features,
        }
    }
}

prop_compose! {
    /// Runs that differ in their repeats.
    fn any_dataset()(
        mut samples in prop::collection::vec(any_sample(), 1..6),
        last in 10..=u32::MAX,
    ) -> Dataset {
        for (sample, before) in samples.iter_mut().zip(0..) {
            sample.repeat = last - before;
        }
        Dataset { provenance: provenance(), samples }
    }
}

/// Equal to the last bit, so that a model trained on them is the same.
fn bits(dataset: &Dataset) -> Vec<u64> {
    let of = |sample: &Sample| {
        let features = sample.features.values().map(|value| value.to_bits());
        features
            .chain([sample.seconds.to_bits()])
            .collect::<Vec<_>>()
    };
    dataset.samples.iter().flat_map(of).collect()
}

/// What can be read are valid runs, which can be written and read again.
fn valid_or_refused(bytes: &[u8]) {
    if let Ok(dataset) = parse(bytes, "runs.csv") {
        for sample in &dataset.samples {
            assert_eq!(check::check(sample), Ok(()));
        }
        assert_eq!(parse(text(&dataset).as_bytes(), "again").unwrap(), dataset);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_runs_are_read_bit_for_bit(dataset in any_dataset()) {
        let read = parse(text(&dataset).as_bytes(), "runs.csv").unwrap();
        prop_assert_eq!(&read, &dataset);
        prop_assert_eq!(bits(&read), bits(&dataset));
    }

    #[test]
    fn appended_runs_are_the_same_as_written_ones(dataset in any_dataset()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        for sample in &dataset.samples {
            Appender::open(&path, &provenance()).unwrap().append(sample).unwrap();
        }
        prop_assert_eq!(read(&path).unwrap(), dataset);
    }

    #[test]
    fn a_corrupted_file_is_valid_or_refused(
        dataset in any_dataset(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = text(&dataset).into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        valid_or_refused(&bytes);
    }
}

#[test]
fn any_flipped_bit_and_any_cut_is_valid_or_refused() {
    let bytes = text(&dataset()).into_bytes();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            valid_or_refused(&flipped);
        }
        let cut = parse(&bytes[..at], "runs.csv");
        assert_eq!(cut.is_ok(), bytes[..at].ends_with(b"0.05\n"), "cut at {at}");
    }
}
