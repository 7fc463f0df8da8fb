//! A model of made-up runs: what physics says, with a factor.

use super::*;
use crate::model::training::fixtures::{CODELET, machine, model, samples, work};

fn predictor(name: &str) -> Result<Predictor, PredictorError> {
    let trained = machine("k40");
    let bundle = model("mine", &trained, &samples(&trained));
    let descriptors = Descriptors::of(&machine(name), None, CODELET, true);
    Predictor::new(&bundle, CODELET, descriptors)
}

fn case(units: u64, workers: u32) -> Case {
    let part = DevicePart::Host {
        workers,
        sockets: 1,
        units,
        chunk: units,
    };
    let work = work(units);
    Case { work, part }
}

#[test]
fn it_predicts_what_it_learned_and_says_what_it_never_saw() {
    let predictor = predictor("k40").unwrap();
    let seen = case(550, 4);
    let physics = prior::seconds(&seen, predictor.descriptors());
    let factor = predictor.seconds(&seen) / physics;
    assert!((factor - 1.41).abs() < 0.05, "{factor}");
    assert_eq!(predictor.outside(&seen), []);

    let large = case(2000, 8);
    let outside = predictor.outside(&large);
    let names: Vec<&str> = outside.iter().map(|o| o.feature.as_str()).collect();
    for name in ["known.units_count", "known.workers_count"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let units = outside.iter().find(|o| o.feature == "known.units_count");
    let units = units.unwrap();
    assert_eq!((units.value, units.min, units.max), (2000.0, 100.0, 1000.0));
}

#[test]
fn a_device_that_the_model_has_nothing_for_is_refused() {
    let trained = machine("k40");
    let bundle = model("mine", &trained, &samples(&trained));
    let device = Some(&trained.devices[0]);
    let on_device = Descriptors::of(&trained, device, CODELET, true);
    let error = Predictor::new(&bundle, CODELET, on_device).unwrap_err();
    let message = error.to_string();
    for words in [
        "`mine` has nothing for stencil5-f64 on gpu",
        "it has stencil5-f64 on cpu",
        "pdawl train --machine k40",
    ] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn an_input_that_this_machine_does_not_tell_is_named() {
    let trained = machine("k40");
    let mut bundle = model("mine", &trained, &samples(&trained));
    bundle.models[0].fitted.inputs[0].name = "machine.clock_mhz".into();
    let mut here = trained;
    here.host.clock_mhz = None;
    let descriptors = Descriptors::of(&here, None, CODELET, true);
    let error = Predictor::new(&bundle, CODELET, descriptors).unwrap_err();
    assert!(
        matches!(&error, PredictorError::Unknown { feature, .. } if feature == "machine.clock_mhz"),
        "{error}"
    );
}
