//! What the page offers: the options of `pdawl run` as the command line has them, for simulated
//! machines and clusters, without those that do nothing there or touch files.

use clap::{Arg, ArgAction, ArgMatches, Command};
use pdawl_api::balance::Strategy;
use pdawl_api::machine::{ClusterStore, MachineStore};
use pdawl_api::policy::NamedPolicy;
use serde::Serialize;

use crate::place::Place;
use crate::place::rules::{RECORDING, rule};

/// What the page offers.
#[derive(Serialize)]
pub struct Catalogue {
    version: &'static str,
    workloads: Vec<Workload>,
    /// Names and titles.
    machines: Vec<(String, String)>,
    /// And how many nodes there are.
    clusters: Vec<(String, String, u64)>,
}

#[derive(Serialize)]
struct Workload {
    name: String,
    about: String,
    options: Vec<Offered>,
}

/// An option.
#[derive(Serialize)]
struct Offered {
    name: String,
    /// What its value is called; absent for a flag.
    value: Option<String>,
    help: String,
    default: Option<String>,
    required: bool,
    /// Whether it may be given several times.
    many: bool,
    /// Values and what they mean; empty if there are too many.
    choices: Vec<(String, String)>,
    /// Where it acts: on a `machine`, a `cluster`.
    at: Vec<&'static str>,
}

/// Where the page's runs are: the option that says so, the place, and what rules call the workload
/// there if not by its name.
const PLACES: [(&str, Place, Option<&str>); 3] = [
    ("machine", Place::Simulated, None),
    ("cluster", Place::Cluster, None),
    ("starpu", Place::Simulated, Some(RECORDING)),
];

/// Where an option is offered, if it is.
fn places(workload: &Command, argument: &Arg) -> Vec<&'static str> {
    let Some(option) = argument.get_long() else {
        return Vec::new();
    };
    let value = argument.get_value_names().unwrap_or_default();
    let is_file = value
        .iter()
        .any(|name| *name == "FILE" || name.ends_with("=FILE"));
    let is_output = argument.get_help_heading() == Some("Output");
    if is_file || is_output || option == "help" {
        return Vec::new();
    }
    let has = |option: &str| {
        (workload.get_arguments()).any(|argument| argument.get_long() == Some(option))
    };
    let acts = |(name, place, called): &&(&str, Place, Option<&str>)| {
        let called = called.unwrap_or(workload.get_name());
        let refused = |option| rule(called, option, *place, &[]).is_some();
        has(name) && !refused(name) && !refused(option)
    };
    (PLACES.iter().filter(acts))
        .map(|(name, ..)| *name)
        .collect()
}

/// The values that an option is known to take.
fn choices(argument: &Arg) -> Vec<(String, String)> {
    let named = |names: Vec<(&str, &str)>| {
        let owned = |(name, help): (&str, &str)| (name.to_owned(), help.to_owned());
        names.into_iter().map(owned).collect()
    };
    let value = argument.get_value_names().unwrap_or_default();
    match value.first().map(|name| name.as_str()) {
        Some("STRATEGY") => named(Strategy::NAMED.map(|(name, _)| (name, "")).to_vec()),
        Some("POLICY") => named(NamedPolicy::all()),
        _ => (argument.get_possible_values().iter())
            .filter(|value| !value.is_hide_set())
            .map(|value| {
                let help = value.get_help().map(ToString::to_string);
                (value.get_name().to_owned(), help.unwrap_or_default())
            })
            .collect(),
    }
}

impl Offered {
    fn of(workload: &Command, argument: &Arg) -> Option<Self> {
        let at = places(workload, argument);
        let option = argument.get_long().filter(|_| !at.is_empty())?;
        let takes = argument.get_action().takes_values();
        let names = argument.get_value_names().filter(|_| takes);
        let default = argument.get_default_values().first().filter(|_| takes);
        Some(Self {
            name: option.to_owned(),
            value: names.map(|names| names.join(" ")),
            help: argument
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default(),
            default: default.map(|value| value.to_string_lossy().into_owned()),
            required: argument.is_required_set(),
            many: matches!(argument.get_action(), ArgAction::Append),
            choices: match takes {
                true => choices(argument),
                false => Vec::new(),
            },
            at,
        })
    }
}

impl Catalogue {
    pub fn new() -> Self {
        let mut command = crate::command();
        command.build();
        let run = command.find_subcommand("run").into_iter();
        let workloads = run
            .flat_map(|run| run.get_subcommands())
            .map(|workload| Workload {
                name: workload.get_name().to_owned(),
                about: workload
                    .get_about()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                options: (workload.get_arguments())
                    .filter_map(|argument| Offered::of(workload, argument))
                    .collect(),
            });
        let (machines, clusters) = (MachineStore::of_user(), ClusterStore::of_user());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            workloads: workloads.filter(|of| !of.options.is_empty()).collect(),
            // A broken file is left out: the page cannot use it.
            machines: (machines.names().into_iter())
                .filter_map(|name| machines.find(&name).ok().map(|file| (name, file.title)))
                .collect(),
            clusters: (clusters.names().into_iter())
                .filter_map(|name| {
                    let file = clusters.find(&name).ok()?;
                    Some((name, file.title.clone(), file.count()))
                })
                .collect(),
        }
    }
}

/// Why these words of a run are not for the page, in words; `None` if they are.
pub fn unfit(words: &[String]) -> Option<String> {
    let mut command = crate::command();
    command.build();
    let line = ["pdawl", "run"]
        .into_iter()
        .chain(words.iter().map(String::as_str));
    let matches = match command.clone().try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            return Some(text.trim_start_matches("error: ").trim_end().to_owned());
        }
        Err(_) => return Some("a workload of `pdawl run` and its options".to_owned()),
    };
    let run = command.find_subcommand("run");
    let inner = matches.subcommand().and_then(|(_, run)| run.subcommand());
    let found = inner.and_then(|(name, given)| Some((run?.find_subcommand(name)?, given)));
    let Some((workload, given)) = found else {
        return Some("a workload of `pdawl run` is missing".to_owned());
    };
    let typed = |argument: &&Arg| {
        let source = given.value_source(argument.get_id().as_str());
        source == Some(clap::parser::ValueSource::CommandLine)
    };
    let mut typed = workload.get_arguments().filter(typed);
    if let Some(other) = typed.find(|argument| places(workload, argument).is_empty()) {
        return Some(format!(
            "the page does not offer {other}; `pdawl run` has it"
        ));
    }
    why_real(given)
}

/// Why a run is no simulated one, if so.
fn why_real(given: &ArgMatches) -> Option<String> {
    match Place::of(given) {
        Ok(Place::Simulated | Place::OneNode | Place::Cluster) => None,
        Ok(_) => Some(
            "the page simulates: give --machine NAME of another machine than this one, or \
             --cluster NAME"
                .to_owned(),
        ),
        Err(failure) => Some(failure.in_words()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_simulated_workload_is_offered_with_what_acts() {
        let catalogue = Catalogue::new();
        let names: Vec<&str> = catalogue.workloads.iter().map(|of| &*of.name).collect();
        for name in ["stencil", "spmv", "transformer", "cholesky", "lu", "tasks"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(!names.contains(&"kernel"));
        let dag = catalogue
            .workloads
            .iter()
            .find(|of| of.name == "dag")
            .expect("recordings");
        assert!(dag.options.iter().all(|option| option.at == ["starpu"]));
        let of = |workload: &str, option: &str| {
            let found = catalogue.workloads.iter().find(|of| of.name == workload);
            let mut options = found.expect("a workload").options.iter();
            options.find(|of| of.name == option)
        };
        let policy = of("cholesky", "policy").expect("a policy");
        assert!(policy.choices.iter().any(|(name, _)| name == "heft"));
        assert_eq!(policy.at, ["machine"]);
        let strategy = of("stencil", "strategy").expect("a strategy");
        assert!(strategy.choices.iter().any(|(name, _)| name == "oracle"));
        assert_eq!(of("lu", "spread").expect("a policy").at, ["cluster"]);
        assert!(of("stencil", "fault").is_some_and(|fault| fault.many));
        for (workload, option) in [
            ("stencil", "output"),
            ("stencil", "runtime"),
            ("lu", "verify"),
        ] {
            assert!(of(workload, option).is_none(), "{option}");
        }
    }

    #[test]
    fn only_simulated_runs_without_files_are_taken() {
        for line in [
            "stencil --machine k40 --fault gpu0:slow:2@3",
            "cholesky --machine v100x2,gpu0.speed=2x --policy heft",
            "lu --size 4096 --cluster four",
            "dag --starpu folder --policy recorded",
        ] {
            assert_eq!(unfit(&words(line)), None, "{line}");
        }
        for (line, expected) in [
            ("stencil", "--machine NAME of another machine"),
            ("", "workload"),
            ("--help", "workload"),
            ("stencil --machine k40 --output x.npy", "--output"),
            ("stencil --machine k40 --gantt x.svg", "--gantt"),
            ("stencil --machine k40 --format json", "--format"),
            ("stencil --machine none", "none"),
            ("stencil --machine k40 --size -3", "--size"),
            ("kernel x.json", "the page does not offer"),
            ("stencil --machine k40 --verify", "--verify"),
            ("stencil --machine k40 --watch", "--watch"),
            ("lu --cluster four --watch", "--watch"),
        ] {
            let refused = unfit(&words(line)).unwrap_or_default();
            assert!(refused.contains(expected), "{line}: {refused}");
        }
    }
}
