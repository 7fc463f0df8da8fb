//! The telemetry that this machine has.

use schemars::JsonSchema;
use serde::Serialize;

use super::absent::Absent;
use super::figures::figures;
use super::nvml::Telemetry;
use super::sensor::Sensor;

/// The GPUs with sensors, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Availability {
    pub gpus: Vec<Described>,
    /// Why there is none at all, and what to do.
    pub why: Option<String>,
    pub remedy: Option<String>,
}

/// A GPU and the figures of its sensors.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Described {
    pub model: String,
    /// Feature names.
    pub figures: Vec<String>,
}

/// Asks every GPU once, which takes some tens of milliseconds each.
pub fn availability() -> Availability {
    match Telemetry::open() {
        Ok(telemetry) => Availability {
            gpus: described(&telemetry),
            why: None,
            remedy: None,
        },
        Err(absent) => without(&absent),
    }
}

fn without(absent: &Absent) -> Availability {
    Availability {
        gpus: Vec::new(),
        why: Some(absent.to_string()),
        remedy: Some(absent.remedy().to_owned()),
    }
}

fn described(telemetry: &Telemetry) -> Vec<Described> {
    let models = telemetry.models().iter();
    models
        .zip(0..)
        .map(|(model, index)| Described {
            model: model.clone(),
            figures: figure_names(&*telemetry.gauge_at(index)),
        })
        .collect()
}

/// The names of the figures of a GPU's sensors.
fn figure_names(sensor: &dyn Sensor) -> Vec<String> {
    let energy = sensor.energy();
    let figures = figures(&[sensor.read()], (energy, energy));
    figures.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::super::sensor::SensorReading;
    use super::*;

    struct Old;

    impl Sensor for Old {
        fn read(&self) -> SensorReading {
            SensorReading {
                sm_clock: Some(745.0),
                power: Some(60.0),
                ..SensorReading::default()
            }
        }

        fn energy(&self) -> Option<f64> {
            None
        }
    }

    #[test]
    fn a_gpu_is_described_by_what_it_tells() {
        assert_eq!(
            figure_names(&Old),
            ["telemetry.power_watts", "telemetry.sm_clock_mhz"]
        );
    }

    #[test]
    fn no_telemetry_has_a_reason_and_a_remedy() {
        let found = without(&Absent::NoGpu);
        assert_eq!(found.gpus, []);
        assert!(found.why.unwrap().contains("no GPU"));
        assert!(found.remedy.unwrap().contains("nvidia-smi"));
    }
}
