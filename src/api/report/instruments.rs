//! The instruments of a machine for profiles: counters and telemetry.

use std::fmt::{self, Write};

use pdawl_profiler::{counters, telemetry};
use schemars::JsonSchema;
use serde::Serialize;

use super::style::{ALARM, FAINT, STRONG, line, styled, written};

/// What this machine's profiles can hold, as in the JSON of `pdawl devices`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Instruments {
    pub counters: counters::Availability,
    pub telemetry: telemetry::Availability,
}

/// Writes a section on them, with ANSI styles.
pub fn render(instruments: &Instruments) -> String {
    written(|out| write_section(instruments, out))
}

fn write_section(instruments: &Instruments, out: &mut String) -> fmt::Result {
    writeln!(out, "{}", styled(STRONG, "Profiling"))?;
    let counters = &instruments.counters;
    let source = counters.source;
    match counters.counted.is_empty() {
        true => line(out, "Counters", styled(ALARM, source))?,
        false => line(
            out,
            "Counters",
            format!("{source}: {}", words(&counters.counted)),
        )?,
    }
    for missing in &counters.missing {
        line(
            out,
            "  missing",
            format!("{}: {}", words(&missing.names), missing.why),
        )?;
        remedy(&missing.remedy, out)?;
    }
    let telemetry = &instruments.telemetry;
    for gpu in &telemetry.gpus {
        let figures = match gpu.figures.is_empty() {
            true => "tells nothing".into(),
            false => words(&gpu.figures),
        };
        line(out, "Telemetry", format!("{}: {figures}", gpu.model))?;
    }
    if let Some(why) = &telemetry.why {
        line(out, "Telemetry", format!("none: {why}"))?;
    }
    telemetry
        .remedy
        .iter()
        .try_for_each(|text| remedy(text, out))
}

fn remedy(text: &str, out: &mut String) -> fmt::Result {
    line(out, "  try", styled(FAINT, text))
}

/// Names of features as words: their group is known here, and so is the unit.
fn words(names: &[String]) -> String {
    const UNITS: [&str; 6] = [
        "_bytes_per_second",
        "_count",
        "_joules",
        "_mhz",
        "_seconds",
        "_watts",
    ];
    let word = |name: &String| {
        let what = name.split_once('.').map_or(name.as_str(), |(_, what)| what);
        let unit = UNITS.iter().find_map(|unit| what.strip_suffix(unit));
        let words = unit.unwrap_or(what).split('_').map(spelt);
        words.collect::<Vec<_>>().join(" ")
    };
    names.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// A part of a feature's name as people write it.
fn spelt(part: &str) -> &str {
    match part {
        "cpu" => "CPU",
        "l1d" => "L1d",
        "llc" => "LLC",
        "pcie" => "PCIe",
        "sm" => "SM",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use pdawl_profiler::counters::{Missing, Source};
    use pdawl_profiler::telemetry::Described;

    use super::*;

    fn plain(instruments: &Instruments) -> String {
        anstream::adapter::strip_str(&render(instruments)).to_string()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_missing_has_its_reason_and_its_remedy() {
        let text = plain(&Instruments {
            counters: counters::Availability {
                source: Source::Software,
                paranoid: Some(2),
                counted: names(&["counter.task_clock_seconds", "counter.page_faults_count"]),
                missing: vec![Missing {
                    names: names(&["counter.cycles_count", "counter.l1d_read_misses_count"]),
                    why: "there is no PMU".into(),
                    remedy: "have one".into(),
                }],
            },
            telemetry: telemetry::Availability {
                gpus: Vec::new(),
                why: Some("no library".into()),
                remedy: Some("install it".into()),
            },
        });
        let expected = [
            "Profiling",
            "  Counters    software: task clock, page faults",
            "    missing   cycles, L1d read misses: there is no PMU",
            "    try       have one",
            "  Telemetry   none: no library",
            "    try       install it",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn gpus_are_listed_with_what_they_tell() {
        let gpu = |model: &str, figures: &[&str]| Described {
            model: model.into(),
            figures: names(figures),
        };
        let text = plain(&Instruments {
            counters: counters::Availability {
                source: Source::None,
                paranoid: None,
                counted: Vec::new(),
                missing: Vec::new(),
            },
            telemetry: telemetry::Availability {
                gpus: vec![
                    gpu(
                        "A GPU",
                        &[
                            "telemetry.pcie_rx_bytes_per_second",
                            "telemetry.power_watts",
                        ],
                    ),
                    gpu("Another", &[]),
                ],
                why: None,
                remedy: None,
            },
        });
        let expected = [
            "Profiling",
            "  Counters    none",
            "  Telemetry   A GPU: PCIe rx, power",
            "  Telemetry   Another: tells nothing",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
