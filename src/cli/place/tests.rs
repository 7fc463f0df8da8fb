//! Every option of every workload acts where it runs, or is refused there.

use super::*;

include!("../../../tests/fixtures/option_effects.rs");

const PLACES: [Place; 5] = [
    Place::Here,
    Place::Simulated,
    Place::OneNode,
    Place::Cluster,
    Place::Nodes,
];

/// Whether some row of the effects is of this.
fn acts(workload: &str, option: &str, place: Place) -> bool {
    let letter = format!("{place:?}").chars().next().unwrap();
    EFFECTS.iter().any(|(of, workloads, places, ..)| {
        let mut named = workloads.split_whitespace().peekable();
        *of == option
            && places.contains(letter)
            && (named.peek().is_none() || named.any(|name| name == workload))
    })
}

/// Whether a workload runs at a place at all.
fn runs(command: &Command, place: Place) -> bool {
    let is_opencl = rule(command.get_name(), "machine", Place::Simulated, &[]).is_some();
    match place {
        Place::Here => true,
        Place::Simulated => !is_opencl,
        Place::OneNode | Place::Cluster => is_of_nodes(command) && !is_opencl,
        Place::Nodes => is_of_nodes(command),
    }
}

#[test]
fn every_option_acts_or_is_refused_at_every_place() {
    let mut command = crate::command();
    command.build();
    let run = command.find_subcommand("run").unwrap();
    let mut cells = 0;
    for workload in run.get_subcommands().filter(|of| of.get_name() != "help") {
        let name = workload.get_name();
        let options = workload.get_arguments().filter_map(|of| of.get_long());
        for option in options {
            for place in PLACES.into_iter().filter(|place| runs(workload, *place)) {
                let refused = rule(name, option, place, &[]).is_some();
                assert_ne!(
                    acts(name, option, place),
                    refused,
                    "run {name} --{option} at {place:?}: {}",
                    match refused {
                        true => "it is refused, and option_effects.rs says what it changes",
                        false =>
                            "rules.rs must refuse it, or option_effects.rs say what it changes",
                    }
                );
                cells += 1;
            }
        }
    }
    assert!(cells > 800, "{cells}");
}

#[test]
fn no_row_of_the_tables_is_of_nothing() {
    let mut command = crate::command();
    command.build();
    let run = command.find_subcommand("run").unwrap();
    let has = |workload: &str, option: &str| {
        let found = run.find_subcommand(workload);
        let found = found.unwrap_or_else(|| panic!("there is no `run {workload}`"));
        let mut options = found.get_arguments();
        options.any(|argument| argument.get_long() == Some(option))
    };
    for (option, workloads, ..) in EFFECTS {
        for workload in workloads.split_whitespace() {
            assert!(has(workload, option), "run {workload} has no --{option}");
        }
    }
}

/// What `pdawl` says of a line at a place.
fn said(line: &str, place: Place) -> Option<String> {
    let mut command = crate::command();
    command.build();
    let words = line.split_whitespace();
    let matches = command.clone().try_get_matches_from(words).unwrap();
    let (name, inner) = matches.subcommand().unwrap();
    let (workload, given) = inner.subcommand().unwrap();
    let command = command.find_subcommand(name).unwrap();
    let command = command.find_subcommand(workload).unwrap();
    match check_at(command, given, place) {
        Ok(()) => None,
        Err(Failure::Usage { what, remedy }) => Some(format!("{what}; try: {remedy}")),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_refusal_names_the_option_what_it_is_for_and_what_to_do() {
    for (line, place, part) in [
        (
            "fft --size 2048 --gpu-memory 1MiB",
            Place::Cluster,
            "--gpu-memory is for runs on one machine, and --cluster names a cluster; try: ",
        ),
        (
            "fft --fault gpu0:lost@0.001s",
            Place::Cluster,
            "--fault is for runs on one machine",
        ),
        (
            "lu --spread steal",
            Place::Simulated,
            "--spread is for a run over several nodes; try: the run with mpirun or --cluster",
        ),
        (
            "stencil --fault gpu0:lost@3",
            Place::Here,
            "--fault is for simulated machines, and this run is on real devices",
        ),
        (
            "matmul --precision bf16",
            Place::Nodes,
            "--precision bf16 is for products on one machine",
        ),
        (
            "stencil --superstep auto",
            Place::Cluster,
            "--superstep auto is for a run on one machine",
        ),
        (
            "sort --tile 9",
            Place::Here,
            "--tile is for sorts over nodes",
        ),
        (
            "matmul --repeats 1",
            Place::Nodes,
            "--repeats is for runs on one machine",
        ),
        (
            "transformer --heads 2",
            Place::Nodes,
            "transformer computes on one machine, and several processes were started",
        ),
        (
            "lu --runtime opencl",
            Place::Simulated,
            "--runtime is for real devices",
        ),
        (
            "kernel a.json --machine k40",
            Place::Simulated,
            "a kernel in OpenCL C cannot be simulated",
        ),
        (
            "dag --starpu folder --verify",
            Place::Simulated,
            "--verify is for graphs of kernels, and a recording has single tasks",
        ),
        (
            "lu --policy recorded",
            Place::Here,
            "--policy recorded is for recordings",
        ),
    ] {
        let found = said(&format!("pdawl run {line}"), place).unwrap_or_default();
        assert!(found.contains(part), "{line}: {found}");
    }
    for (line, place) in [
        ("matmul --precision f32", Place::Nodes),
        ("stencil --superstep 4", Place::Cluster),
        ("lu --fault gpu0:lost@0.1s", Place::Here),
        ("stencil --steps 9", Place::Nodes),
        ("dag --starpu folder --policy recorded", Place::Simulated),
    ] {
        assert_eq!(said(&format!("pdawl run {line}"), place), None, "{line}");
    }
}
