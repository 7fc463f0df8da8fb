//! What all nodes of a run must be asked for alike: the command line, without what each node
//! may have for itself.

use std::ffi::OsStr;

use clap::{ArgMatches, Command};
use pdawl_api::cluster::wire::agreement::Agreement;
use pdawl_api::session::nodes::build_agreement;

use super::options::SpreadOptions;

/// Options that each node may have for itself: its devices and libraries, and what only the
/// first one prints and writes.
const OWN: [&str; 12] = [
    "devices", "wire", "no_cache", "format", "output", "pivots", "save", "trace", "gantt", "csv",
    "watch", "help",
];

/// What this process is and is asked for. `spread` has values that the command line need not
/// name.
pub fn asked(spread: Option<(&SpreadOptions, u64)>) -> Agreement {
    let mut agreement = build_agreement();
    agreement.add("the build", env!("PDAWL_SOURCES"));
    // What has been parsed once is parsed again.
    let (command, matches) = crate::parsed();
    if let Ok(matches) = matches {
        add(&mut agreement, &command, &matches, spread);
    }
    agreement
}

fn add(
    agreement: &mut Agreement,
    command: &Command,
    matches: &ArgMatches,
    spread: Option<(&SpreadOptions, u64)>,
) {
    let mut words = Vec::new();
    let (mut command, mut matches) = (command, matches);
    let mut options = Vec::new();
    while let Some((name, inner)) = matches.subcommand() {
        words.push(name);
        let Some(found) = command.find_subcommand(name) else {
            break;
        };
        (command, matches) = (found, inner);
        options.extend(given(command, matches));
    }
    agreement.add("the command", words.join(" "));
    let resolved = spread.map(|(spread, seed)| spread.values(seed));
    for (name, value) in resolved.iter().flatten() {
        agreement.add(*name, value);
    }
    let is_resolved = |name: &str| resolved.iter().flatten().any(|(known, _)| *known == name);
    for (name, value) in options {
        if !is_resolved(&name) {
            agreement.add(name, value);
        }
    }
}

/// The options of a command, defaults included, each with a value.
fn given(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let compared = (command.get_arguments()).filter(|arg| !OWN.contains(&arg.get_id().as_str()));
    let options = compared.flat_map(|arg| {
        let name = match arg.get_long() {
            Some(long) => format!("--{long}"),
            None => arg.get_id().to_string(),
        };
        let values = matches.try_get_raw(arg.get_id().as_str()).ok().flatten();
        let values = values.into_iter().flatten().map(value);
        values.map(move |value| (name.clone(), value))
    });
    options.collect()
}

/// A value as all spell it who mean the same number.
fn value(raw: &OsStr) -> String {
    let text = raw.to_string_lossy();
    match (text.parse::<i128>(), text.parse::<f64>()) {
        (Ok(number), _) => number.to_string(),
        (_, Ok(number)) => format!("{number:?}"),
        _ => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Agreement {
        let command = crate::command();
        let words = line.split_whitespace();
        let matches = command.clone().try_get_matches_from(words).unwrap();
        let mut agreement = Agreement::default();
        add(&mut agreement, &command, &matches, None);
        agreement
    }

    #[test]
    fn what_is_meant_alike_is_alike() {
        let line = "pdawl run pagerank --matrix rmat:9,8 --damping 0.5 --tolerance 1e-6";
        for same in [
            "pdawl run pagerank --tolerance=0.000001 --damping .5 --matrix=rmat:9,8",
            "pdawl run pagerank --matrix rmat:9,8 --damping 0.50 --tolerance 1e-6 --seed 1",
            "pdawl run pagerank --matrix rmat:9,8 --damping 0.5 --tolerance 1e-6 --devices host:1 \
             --format json --output x.npy --trace t.json --no-cache",
        ] {
            assert_eq!(of(line).difference(&of(same)), None, "{same}");
        }
    }

    #[test]
    fn what_is_meant_otherwise_is_reported_by_its_option() {
        let line = "pdawl run convolution --size 100 --verify";
        for (other, expected) in [
            ("pdawl run fft --size 100 --verify", "the command"),
            ("pdawl run convolution --size 101 --verify", "--size"),
            ("pdawl run convolution --size 100", "--verify"),
            (
                "pdawl run convolution --size 100 --verify --filter 3",
                "--filter",
            ),
            (
                "pdawl run convolution --size 100 --verify --seed 2",
                "--seed",
            ),
            (
                "pdawl run convolution --size 100 --verify --spread steal",
                "--spread",
            ),
        ] {
            let difference = of(line).difference(&of(other)).unwrap();
            assert_eq!(difference.name, expected, "{other}");
        }
    }
}
