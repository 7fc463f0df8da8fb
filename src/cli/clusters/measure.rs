//! `pdawl cluster measure`.

use pdawl_api::cluster::wire::Wire;
use pdawl_api::engine::cluster::ClusterError;
use pdawl_api::machine::{ClusterStore, MachineFile, MachineStore};
use pdawl_api::session::nodes::measure::{
    MeasureOptions, MeasuredCluster, ThisMachine, measure, refuse,
};
use pdawl_api::session::this_machine;

use super::{MeasureArgs, list_text};
use crate::cluster::asked;
use crate::failure::Failure;
use crate::saved_report::SavedReport;
use crate::{interrupt, terminal};

/// Runs the subcommand on a node. The first one writes the files and prints.
///
/// # Errors
/// A run of one node, a name that is taken, and what cannot be measured or written.
pub fn run(store: &ClusterStore, args: &MeasureArgs) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let wire = args.join.join(&asked(None), stop)?;
    let Some(mut wire) = wire.filter(|wire| wire.size() > 1) else {
        return Err(alone());
    };
    let rank = wire.rank();
    if rank == 0
        && let Err(failure) = check_name(store, args, wire.size())
    {
        // The others end as well; an error of telling them would hide the first one.
        let _ = refuse(&mut wire, "the first node refuses the name");
        let _ = Box::new(wire).finish();
        return Err(failure);
    }
    let machines = MachineStore::of_user();
    let known = |fingerprint: &str| known(&machines, fingerprint);
    let bar = match rank {
        0 => terminal::spinner(),
        _ => indicatif::ProgressBar::hidden(),
    };
    let mut measure_machine = || {
        let name = format!("{}-{rank}", args.name);
        let measured = this_machine::measure(&name, args.copy_size.0, &mut |_, _| {});
        measured.map_err(|error| error.to_string())
    };
    let this = ThisMachine {
        fingerprint: this_machine::fingerprint().to_string(),
        known: &known,
        measure: &mut measure_machine,
    };
    let options = MeasureOptions::default();
    let measured = measure(&mut wire, this, options, stop, &mut |what| {
        bar.set_message(format!("measuring {what}"));
    });
    bar.finish_and_clear();
    let measured = measured.map_err(|error| of_measuring(error, rank));
    let finished = Box::new(wire).finish();
    match measured? {
        Some(measured) => save(store, &machines, &measured, args),
        None => Ok(finished.map_err(Failure::of)?),
    }
}

fn alone() -> Failure {
    Failure::failed(
        "a network is between two nodes, and this process was started alone",
        "mpirun -n 4 --map-by node pdawl cluster measure NAME",
    )
}

/// A failure that all ranks have: the first one prints it.
fn first(failure: Failure, rank: usize) -> Failure {
    match rank {
        0 => failure,
        _ => Failure::Program(1),
    }
}

/// What a node received from another one, only the first prints.
fn of_measuring(error: ClusterError, rank: usize) -> Failure {
    match error {
        ClusterError::Interrupted => Failure::Interrupted,
        ClusterError::Stopped(_) => first(Failure::of(error), rank),
        error => Failure::of(error),
    }
}

/// Checks that the name can be given to a new file, and with a number to machine files.
fn check_name(store: &ClusterStore, args: &MeasureArgs, nodes: usize) -> Result<(), Failure> {
    let existing = store.existing(&args.name).map_err(Failure::of)?;
    let numbered = format!("{}-{nodes}", args.name);
    store.existing(&numbered).map_err(Failure::of)?;
    match existing {
        Some(path) if !args.force => Err(Failure::failed(
            format!("{} is there already", path.display()),
            "another name, or --force to replace the file",
        )),
        _ => Ok(()),
    }
}

/// The machine file with a fingerprint, if there is one. A broken file hides no right one.
fn known(store: &MachineStore, fingerprint: &str) -> Option<MachineFile> {
    let same = |file: &MachineFile| {
        let recorded = file.fingerprint.as_deref().unwrap_or_default();
        recorded
            .split_whitespace()
            .eq(fingerprint.split_whitespace())
    };
    let names = store.names().into_iter();
    names.filter_map(|name| store.find(&name).ok()).find(same)
}

/// Writes the machine files that are new, then the cluster file.
fn save(
    store: &ClusterStore,
    machines: &MachineStore,
    measured: &MeasuredCluster,
    args: &MeasureArgs,
) -> Result<(), Failure> {
    let mut names: Vec<String> = Vec::new();
    let mut written = String::new();
    for found in &measured.machines {
        let mut file = found.file.clone();
        let is_here = |name: &String| machines.find(name).is_ok_and(|here| here == file);
        if !is_here(&file.name) {
            file.name = free(&file.name, |name| {
                machines
                    .names()
                    .iter()
                    .chain(&names)
                    .any(|taken| taken == name)
            });
            let path = machines.save(&file).map_err(Failure::of)?;
            written.push_str(&format!(
                "machine {} saved in {}\n",
                file.name,
                path.display()
            ));
        }
        names.push(file.name);
    }
    let cluster = measured.file(&args.name, &names);
    let path = store.save(&cluster).map_err(Failure::of)?;
    let saved = SavedReport {
        kind: "cluster",
        name: &args.name,
        machine: &names[measured.of_rank[0]],
        simulated: false,
        file: &path,
    };
    let text = format!(
        "{}{written}saved in {}\n",
        list_text(&[cluster]),
        path.display()
    );
    saved.print(args.format, &text)
}

/// The name, or the name with the first number from 2 with which it is not taken.
fn free(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    // The numbers do not end.
    names.find(|name| !taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["a", "b", "b-2"];
        let free = |name| free(name, |name| taken.contains(&name));
        assert_eq!([free("c"), free("a"), free("b")], ["c", "a-2", "b-3"]);
    }
}
