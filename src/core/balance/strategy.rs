//! Strategies by name, as on the command line.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{Balancer, Dawl, Fixed, Guided, Setup};
use crate::machine::DeviceKind;

/// By how much the sum of several shares may differ from 1: shares are often rounded to
/// two digits.
const ROUNDING: f64 = 0.0101;

/// Fixed shares: one for all CPU devices together, or one a device. Each is in 0 to
/// 1, and several sum to 1, with an error of a hundredth for rounded ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares(Vec<f64>);

impl Shares {
    /// # Errors
    /// When the list is empty, a share is outside 0 to 1, or several do not sum to 1.
    pub fn new(shares: Vec<f64>) -> Result<Self, StrategyError> {
        if let Some(share) = shares.iter().find(|s| !(0.0..=1.0).contains(*s)) {
            return Err(StrategyError::Outside(share.to_string()));
        }
        if shares.is_empty() || (shares.len() > 1 && shares.iter().sum::<f64>() <= 0.0) {
            return Err(StrategyError::Nothing);
        }
        let sum: f64 = shares.iter().sum();
        if shares.len() > 1 && (sum - 1.0).abs() > ROUNDING {
            let scaled: Vec<String> = (shares.iter())
                .map(|share| ((share / sum * 100.0).round() / 100.0).to_string())
                .collect();
            return Err(StrategyError::Sum {
                sum: format!("{sum:.3}"),
                scaled: scaled.join(","),
            });
        }
        Ok(Self(shares))
    }
}

/// How the work is to be shared.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// All of it on the CPU devices.
    Cpu,
    /// All of it on the GPUs and accelerators.
    Gpu,
    Fixed(Shares),
    Guided,
    Dawl,
    /// DAWL that begins with a cost model's plan. Its caller builds it, as
    /// [`Pdawl`](super::Pdawl) with a planner: a setup is not enough.
    Pdawl,
    /// The best fixed shares, found by measuring many: a
    /// [`Sweep`](super::Sweep) that its caller runs, not one balancer.
    Oracle,
}

/// Why a strategy is unknown or cannot run.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StrategyError {
    #[error(
        "unknown strategy '{0}'; known are cpu, gpu, fixed:SHARE[,SHARE...], guided, dawl, pdawl, \
         oracle"
    )]
    Unknown(String),
    #[error(
        "share '{0}' is not a number; give the CPU's part of the work, such as fixed:0.3, or one share a device, such as fixed:0.2,0.5,0.3"
    )]
    NotANumber(String),
    #[error(
        "share {0} is outside 0 to 1: it is a fraction of the work, 0 for none and 1 for all of it"
    )]
    Outside(String),
    #[error("the shares give the work to no device; at least one must be above 0")]
    Nothing,
    #[error("the shares sum to {sum}, and must to 1; in these proportions: fixed:{scaled}")]
    Sum { sum: String, scaled: String },
    #[error(
        "{strategy} gives the CPU's part, and the rest to a GPU, but all {devices} devices are \
         {kind}s; give one share a device: fixed:{each}"
    )]
    OneKind {
        strategy: String,
        devices: usize,
        kind: &'static str,
        each: String,
    },
    #[error("{shares} shares for {devices} devices; give one a device, or the CPU's alone")]
    Count { shares: usize, devices: usize },
    #[error(
        "strategy {strategy} needs a {needs}, and no such device takes part; add one to the devices or choose another strategy"
    )]
    NoDevice {
        strategy: String,
        needs: &'static str,
    },
    #[error("there is no device to share the work among")]
    NoDevices,
    #[error(
        "the oracle is a sweep of many runs, not one balancer; run a Sweep and take its best shares"
    )]
    Sweep,
    #[error(
        "strategy pdawl needs a cost model of the machine, and none was given; train one with \
         `pdawl train`, or take dawl, which needs none"
    )]
    NoModel,
}

impl Strategy {
    /// Those that need no figures.
    pub const NAMED: [(&str, Self); 6] = [
        ("cpu", Self::Cpu),
        ("gpu", Self::Gpu),
        ("guided", Self::Guided),
        ("dawl", Self::Dawl),
        ("pdawl", Self::Pdawl),
        ("oracle", Self::Oracle),
    ];
}

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        if let Some((_, named)) = Self::NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(named);
        }
        let Some(shares) = text.strip_prefix("fixed:") else {
            return Err(StrategyError::Unknown(text.to_owned()));
        };
        let number = |share: &str| {
            let share = share.trim();
            (share.parse::<f64>()).map_err(|_| StrategyError::NotANumber(share.to_owned()))
        };
        let shares = shares.split(',').map(number).collect::<Result<_, _>>()?;
        Shares::new(shares).map(Self::Fixed)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Fixed(Shares(shares)) = self {
            let shares: Vec<String> = shares.iter().map(f64::to_string).collect();
            return write!(f, "fixed:{}", shares.join(","));
        }
        let named = Self::NAMED.into_iter().find(|(_, named)| named == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl Strategy {
    /// All of the work on one device of several.
    pub fn alone(device: usize, devices: usize) -> Self {
        let share = |d| if d == device { 1.0 } else { 0.0 };
        Self::Fixed(Shares((0..devices).map(share).collect()))
    }

    /// All of the work on the only device, which is of this kind. One fixed share would be the
    /// CPU's, which a lone GPU cannot have.
    pub fn lone(kind: DeviceKind) -> Self {
        match is_a_cpu(kind) {
            true => Self::Cpu,
            false => Self::Gpu,
        }
    }

    /// The balancer for this strategy.
    ///
    /// # Errors
    /// When a device that the strategy needs is missing, when the number of shares
    /// is neither 1 nor the number of devices, and for the oracle and pdawl, which
    /// need more than a setup.
    pub fn build(&self, setup: &Setup) -> Result<Box<dyn Balancer>, StrategyError> {
        if setup.devices.is_empty() {
            return Err(StrategyError::NoDevices);
        }
        let kinds: Vec<DeviceKind> = setup.devices.iter().map(|d| d.kind).collect();
        self.suits(&kinds)?;
        let fixed = |shares: Vec<f64>| -> Result<Box<dyn Balancer>, StrategyError> {
            Ok(Box::new(Fixed::new(self.to_string(), setup, &shares)))
        };
        match self {
            Self::Cpu => fixed(shares_by_kind(setup, 1.0)),
            Self::Gpu => fixed(shares_by_kind(setup, 0.0)),
            Self::Fixed(Shares(shares)) => match shares.as_slice() {
                [cpu] => fixed(shares_by_kind(setup, *cpu)),
                shares => fixed(shares.to_vec()),
            },
            Self::Guided => Ok(Box::new(Guided::new(setup))),
            Self::Dawl => Ok(Box::new(Dawl::new(setup))),
            Self::Pdawl => Err(StrategyError::NoModel),
            Self::Oracle => Err(StrategyError::Sweep),
        }
    }

    /// Whether devices of these kinds can share the work by this strategy.
    ///
    /// # Errors
    /// When a device that the strategy needs is missing, and when the number of
    /// shares is neither 1 nor the number of devices.
    pub fn suits(&self, kinds: &[DeviceKind]) -> Result<(), StrategyError> {
        match self {
            Self::Cpu => self.has_kinds(kinds, 1.0),
            Self::Gpu => self.has_kinds(kinds, 0.0),
            Self::Fixed(Shares(shares)) => match shares.as_slice() {
                [cpu] => self.has_kinds(kinds, *cpu),
                shares if shares.len() == kinds.len() => Ok(()),
                shares => Err(StrategyError::Count {
                    shares: shares.len(),
                    devices: kinds.len(),
                }),
            },
            Self::Guided | Self::Dawl | Self::Pdawl | Self::Oracle => Ok(()),
        }
    }

    /// Whether there are devices for the CPUs' part `cpu`, and for the rest.
    fn has_kinds(&self, kinds: &[DeviceKind], cpu: f64) -> Result<(), StrategyError> {
        let has = |is_cpu: bool| kinds.iter().any(|kind| is_cpu == is_a_cpu(*kind));
        let missing = match (cpu > 0.0 && !has(true), cpu < 1.0 && !has(false)) {
            (true, _) => Some("CPU"),
            (_, true) => Some("GPU"),
            _ => None,
        };
        match missing {
            Some(_) if matches!(self, Self::Fixed(_)) && kinds.len() > 1 => {
                let rest = (1.0 - cpu) / (kinds.len() - 1) as f64;
                let rest = ((rest * 1000.0).round() / 1000.0).to_string();
                let each = std::iter::once(cpu.to_string());
                let each = each.chain(std::iter::repeat_n(rest, kinds.len() - 1));
                Err(StrategyError::OneKind {
                    strategy: self.to_string(),
                    devices: kinds.len(),
                    kind: if has(true) { "CPU" } else { "GPU" },
                    each: each.collect::<Vec<_>>().join(","),
                })
            }
            Some(needs) => Err(StrategyError::NoDevice {
                strategy: self.to_string(),
                needs,
            }),
            None => Ok(()),
        }
    }
}

pub(super) fn is_a_cpu(kind: DeviceKind) -> bool {
    kind == DeviceKind::Cpu
}

/// One share a device: `cpu` of the work for the CPU devices, the rest for
/// the others, each kind's part divided by compute units.
pub(super) fn shares_by_kind(setup: &Setup, cpu: f64) -> Vec<f64> {
    let total = |is_cpu: bool| -> f64 {
        (setup.devices.iter())
            .filter(|d| is_a_cpu(d.kind) == is_cpu)
            .map(|d| f64::from(d.compute_units.max(1)))
            .sum()
    };
    let (cpus, others) = (total(true), total(false));
    (setup.devices.iter())
        .map(|device| {
            let units = f64::from(device.compute_units.max(1));
            match is_a_cpu(device.kind) {
                true => cpu * units / cpus,
                false => (1.0 - cpu) * units / others,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::StepPlan;
    use crate::balance::fixtures::{cpu, gpu, setup};

    fn plan(strategy: &str, setup: &Setup) -> Result<StepPlan, StrategyError> {
        let strategy: Strategy = strategy.parse()?;
        Ok(strategy.build(setup)?.plan(0))
    }

    #[test]
    fn names_go_there_and_back() {
        for name in [
            "cpu",
            "gpu",
            "guided",
            "dawl",
            "pdawl",
            "oracle",
            "fixed:0.3",
            "fixed:0.2,0.5,0.3",
        ] {
            let strategy: Strategy = name.parse().unwrap();
            assert_eq!(strategy.to_string(), name);
        }
    }

    #[test]
    fn wrong_names_and_shares_say_what_is_wrong() {
        let message = |text: &str| text.parse::<Strategy>().unwrap_err().to_string();
        assert!(message("fixed:1.5").starts_with("share 1.5 is outside 0 to 1: "));
        assert!(message("fixed:-0.1").contains("outside 0 to 1"));
        assert!(message("fixed:NaN").contains("outside 0 to 1"));
        assert!(message("fixed:").contains("is not a number"));
        assert!(message("fixed:0,0").contains("no device"));
        assert_eq!(
            message("fixed:0.2,0.9"),
            "the shares sum to 1.100, and must to 1; in these proportions: fixed:0.18,0.82"
        );
        assert!(message("fixed:1,1").ends_with("fixed:0.5,0.5"));
        assert!(message("fixed:0.1,0.1,0.1").contains("sum to 0.300"));
        // Rounded thirds are meant as such.
        assert!("fixed:0.33,0.33,0.33".parse::<Strategy>().is_ok());
        let unknown = message("fastest");
        for known in [
            "fastest", "cpu", "gpu", "fixed:", "guided", "dawl", "pdawl", "oracle",
        ] {
            assert!(unknown.contains(known), "{unknown}");
        }
    }

    #[test]
    fn a_single_share_is_the_cpus_and_kinds_divide_by_compute_units() {
        let mut setup = setup(1000, vec![cpu(), cpu(), gpu(300, 1.0), gpu(1000, 1.0)]);
        setup.devices[0].compute_units = 3;
        setup.devices[1].compute_units = 1;
        setup.devices[2].compute_units = 1;
        setup.devices[3].compute_units = 1;
        let both = plan("fixed:0.2", &setup).unwrap();
        assert_eq!(both.pooled, [150, 50, 100, 0]);
        assert_eq!(both.held, [0, 0, 300, 400]);
        let cpus = plan("cpu", &setup).unwrap();
        assert_eq!(cpus.pooled, [750, 250, 0, 0]);
        let gpus = plan("gpu", &setup).unwrap();
        assert_eq!(gpus.held, [0, 0, 300, 500]);
        let each = plan("fixed:0.1,0.1,0.2,0.6", &setup).unwrap();
        assert_eq!(each.held, [0, 0, 200, 600]);
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let only = setup(10, vec![cpu()]);
        assert!(matches!(
            plan("gpu", &only),
            Err(StrategyError::NoDevice { needs: "GPU", .. })
        ));
        assert!(matches!(
            plan("fixed:0.5", &only),
            Err(StrategyError::NoDevice { .. })
        ));
        assert!(plan("fixed:1", &only).is_ok());
        for only in [setup(10, vec![cpu()]), setup(10, vec![gpu(1, 1.0)])] {
            let lone = Strategy::lone(only.devices[0].kind);
            assert!(lone.build(&only).is_ok());
        }
        let alike = |setup: Setup, text: &str| plan(text, &setup).unwrap_err().to_string();
        let two = alike(setup(10, vec![cpu(), cpu()]), "fixed:0.5");
        assert!(
            two.contains("all 2 devices are CPUs") && two.ends_with("fixed:0.5,0.5"),
            "{two}"
        );
        let three = alike(
            setup(10, vec![gpu(1, 1.0), gpu(1, 1.0), gpu(1, 1.0)]),
            "fixed:0.4",
        );
        assert!(three.ends_with("fixed:0.4,0.3,0.3"), "{three}");
        assert_eq!(plan("oracle", &only), Err(StrategyError::Sweep));
        assert_eq!(plan("pdawl", &only), Err(StrategyError::NoModel));
        assert_eq!(
            plan("fixed:0.5,0.2,0.3", &only),
            Err(StrategyError::Count {
                shares: 3,
                devices: 1
            })
        );
        assert_eq!(
            plan("dawl", &setup(10, vec![])),
            Err(StrategyError::NoDevices)
        );
    }
}
