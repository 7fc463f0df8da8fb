//! The report of a comparison of a codelet's variants, as JSON of schema `pdawl-trial/1`
//! and as text.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::style::{ALARM, MAIN, STRONG, cell, ending, styled, written};
use super::table;
use crate::codelet::Cost;
use crate::engine::trial::{Case, Options, Tried, Verdict};
use crate::machine::Device;
use crate::quantity::{Count, Seconds};
use pdawl_profiler::median;

/// Variants of a codelet that ran in turns on each device. Rates and seconds are on the
/// device's clock, from the first start to the last end.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Trial {
    /// The codelet and its sizes.
    pub codelet: String,
    /// Operations and bytes of least memory traffic (each input and output once) of a launch.
    pub flops: f64,
    pub bytes: f64,
    /// Queues that got launches at the same time.
    pub queues: usize,
    /// Launches of each queue that were timed together.
    pub launches: usize,
    /// Timings of each variant.
    pub repeats: u32,
    pub seed: u64,
    pub devices: Vec<OnDevice>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// The variants on one device.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct OnDevice {
    pub name: String,
    pub model: String,
    pub variants: Vec<Figures>,
}

/// The figures of a variant.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Figures {
    /// `gemm`: rows x columns x depth of a work-group's tile / rows x columns of a work-item.
    pub name: String,
    /// Whether the codelet chooses it for these sizes.
    pub chosen: bool,
    /// Whether its result was right; `None` if it does not run on this device.
    pub right: Option<bool>,
    /// The largest error over the root mean square of the numbers compared; `None` if it
    /// is infinite, or there is no result.
    pub error: Option<f64>,
    /// Why it does not run on this device.
    pub refused: Option<String>,
    /// Seconds of a launch, by turn, divided by the launches of all queues.
    pub seconds: Vec<f64>,
    /// Rates of the median turn; `None` without a turn, or where nothing is counted.
    pub flops_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
}

impl Trial {
    /// A report without devices.
    pub fn of(case: &Case, options: Options) -> Self {
        Self {
            codelet: case.title.clone(),
            flops: case.cost.flops,
            bytes: case.cost.bytes,
            queues: options.queues,
            launches: options.launches,
            repeats: options.repeats,
            seed: options.seed,
            devices: Vec::new(),
            interrupted: false,
            notes: Vec::new(),
        }
    }

    /// Adds the variants tried on a device.
    pub fn add(&mut self, device: &Device, tried: &[Tried], cost: Cost) {
        self.devices.push(OnDevice {
            name: device.name.clone(),
            model: device.model.clone(),
            variants: tried.iter().map(|tried| Figures::of(tried, cost)).collect(),
        });
    }

    /// Whether the results of all variants that ran are right.
    pub fn right(&self) -> bool {
        let variants = self.devices.iter().flat_map(|device| &device.variants);
        variants
            .into_iter()
            .all(|variant| variant.right != Some(false))
    }

    /// The report as text with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "{}, {} launches on each of {} queues, {} times, in turns",
            styled(STRONG, &self.codelet),
            self.launches,
            self.queues,
            self.repeats
        )?;
        for device in &self.devices {
            writeln!(
                out,
                "\n{}, {}\n",
                styled(STRONG, &device.name),
                device.model
            )?;
            let header = [
                "Variant",
                "Operations",
                "Traffic",
                "Median",
                "Least",
                "Error",
            ];
            let mut table = table::plain(&header, |column| column > 0);
            for variant in &device.variants {
                table.add_row(variant.row());
            }
            writeln!(out, "{}", table.trim_fmt())?;
            for variant in &device.variants {
                if let Some(why) = &variant.refused {
                    writeln!(out, "{} {}: {why}", styled(ALARM, "Refused"), variant.name)?;
                }
            }
        }
        ending(out, self.interrupted, &self.notes)
    }
}

impl Figures {
    fn of(tried: &Tried, cost: Cost) -> Self {
        let (right, error, refused) = match &tried.verdict {
            Verdict::Right { error } => (Some(true), Some(*error), None),
            Verdict::Wrong { error } => (Some(false), Some(*error), None),
            Verdict::Refused(why) => (None, None, Some(why.clone())),
        };
        let rate = |amount: f64| {
            let seconds = median(&tried.seconds).filter(|_| amount > 0.0);
            seconds.map(|seconds| amount / seconds)
        };
        Self {
            name: tried.name.clone(),
            chosen: tried.chosen,
            right,
            error: error.filter(|error| error.is_finite()),
            refused,
            seconds: tried.seconds.clone(),
            flops_per_second: rate(cost.flops),
            bytes_per_second: rate(cost.bytes),
        }
    }

    fn row(&self) -> Vec<String> {
        let rate = |rate: Option<f64>, unit| cell(rate, |rate| Count(rate, unit));
        let name = match self.chosen {
            true => format!("{} {}", self.name, styled(MAIN, "chosen")),
            false => self.name.clone(),
        };
        let error = match (self.right, self.error) {
            (Some(true), Some(error)) => format!("{error:.1e}"),
            (Some(false), Some(error)) => styled(ALARM, format!("wrong by {error:.1e}")),
            (Some(_), None) => styled(ALARM, "wrong"),
            (None, _) => "-".to_owned(),
        };
        vec![
            name,
            rate(self.flops_per_second, "flop/s"),
            rate(self.bytes_per_second, "B/s"),
            cell(median(&self.seconds), Seconds),
            cell(self.seconds.iter().copied().min_by(f64::total_cmp), Seconds),
            error,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::gemm::Gemm;

    fn tried(name: &str, verdict: Verdict, seconds: &[f64]) -> Tried {
        Tried {
            name: name.to_owned(),
            chosen: name == "b",
            verdict,
            seconds: seconds.to_vec(),
        }
    }

    #[test]
    fn rates_are_of_the_median_turn() {
        let cost = Cost {
            flops: 8.0,
            bytes: 2.0,
        };
        let right = tried("b", Verdict::Right { error: 1e-7 }, &[4.0, 2.0, 1.0]);
        let figures = Figures::of(&right, cost);
        assert_eq!(figures.flops_per_second, Some(4.0));
        assert_eq!(figures.bytes_per_second, Some(1.0));
        let wrong = tried(
            "w",
            Verdict::Wrong {
                error: f64::INFINITY,
            },
            &[],
        );
        let figures = Figures::of(&wrong, cost);
        assert_eq!((figures.right, figures.error), (Some(false), None));
        assert_eq!(figures.flops_per_second, None);
    }

    #[test]
    fn a_wrong_variant_is_seen_and_reported() {
        let options = Options {
            queues: 2,
            launches: 4,
            repeats: 1,
            seed: 1,
        };
        let case = Case::gemm(Gemm::square(8));
        let mut trial = Trial::of(&case, options);
        let device = crate::report::run::fixtures::context().machine.devices[0].clone();
        trial.add(
            &device,
            &[tried("r", Verdict::Refused("too large".into()), &[])],
            case.cost,
        );
        assert!(trial.right());
        trial.add(
            &device,
            &[tried("w", Verdict::Wrong { error: 2.0 }, &[])],
            case.cost,
        );
        assert!(!trial.right());
        let text = anstream::adapter::strip_str(&trial.render()).to_string();
        assert!(text.contains("Refused r: too large"), "{text}");
        assert!(text.contains("wrong by 2.0e0"), "{text}");
    }
}
