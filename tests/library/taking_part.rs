//! Runs on a part of a machine's devices.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pdawl_api::policy::NamedPolicy;
use pdawl_api::report::run::Details;
use pdawl_api::report::run::corun::CoRun;
use pdawl_api::session::{
    Chosen, DenseMatrix, DeviceOptions, GraphJob, GraphOptions, Grid, NamedMachine, Run, Session,
    TakingPart,
};
use pdawl_api::workload::task_set::{Matmul2d, TaskSet, Tasks};

#[test]
fn devices_without_a_part_take_over_when_all_others_are_lost() {
    let mut session = Session::with(DeviceOptions {
        machine: Some(NamedMachine::find("k40").expect("it is shipped")),
        ..DeviceOptions::default()
    })
    .expect("it is simulated");
    let set = TaskSet::paper(Tasks::Matmul2d(Matmul2d::paper(4)));
    let job = GraphJob::of_set(&set).expect("a graph");
    let mut run = |fault: Option<&str>| {
        let options = GraphOptions {
            part: TakingPart::Known(Chosen {
                part: vec![1],
                note: Some("host without a part".to_owned()),
                ..Chosen::all(2)
            }),
            faults: fault
                .into_iter()
                .map(|fault| fault.parse().expect("a fault"))
                .collect(),
            ..GraphOptions::of(NamedPolicy::LOCALITY)
        };
        let stop = AtomicBool::new(false);
        let ran = session.run_graph(&job, options, &stop, &mut |_, _, _| {});
        ran.expect("it runs").run
    };
    let whole = run(None);
    assert_eq!(whole.shares(), [0.0, 1.0]);
    let late = format!("gpu0:lost@{}s", whole.seconds / 2.0);
    let taken_over = run(Some(&late));
    assert_eq!(taken_over.shares(), [1.0, 0.0]);
    let notes = taken_over.notes.join("; ");
    assert!(notes.contains("host without a part"), "{notes}");
    assert!(notes.contains("lost: "), "{notes}");
}

/// A session of its own on a simulated machine, whose runs are kept in a file.
fn session(machine: &str, kept: &Path, fresh: bool) -> Session {
    Session::with(DeviceOptions {
        machine: Some(NamedMachine::find(machine).expect("it is shipped")),
        data: true,
        kept: Some(kept.to_owned()),
        fresh,
        ..DeviceOptions::default()
    })
    .expect("it is simulated")
}

fn stencil(session: &mut Session) -> Run {
    let mut grid = Grid::new(&[1500, 1500], vec![1.0; 1500 * 1500]).expect("a grid");
    session.stencil(&mut grid).steps(40).run().expect("it runs")
}

fn of_steps(run: &Run) -> &CoRun {
    let Details::CoRun(details) = &run.details else {
        panic!("it has steps");
    };
    details
}

fn shares(run: &Run, step: usize) -> Vec<f64> {
    of_steps(run).steps[step].shares.clone()
}

fn says_earlier(run: &Run) -> bool {
    run.notes.iter().any(|note| note.contains("earlier runs"))
}

#[test]
fn steps_begin_as_those_of_an_earlier_run_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.json");
    let first = stencil(&mut session("k40", &kept, false));
    assert!(!says_earlier(&first));
    let second = stencil(&mut session("k40", &kept, false));
    assert!(says_earlier(&second), "{:?}", second.notes);
    assert_eq!(shares(&second, 0), shares(&first, 39));
    assert!(second.seconds <= first.seconds);
    // Whatever that was: the only row, with other parts.
    let change = |parts: serde_json::Value| {
        let text = std::fs::read_to_string(&kept).expect("it was written");
        let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let rows = file["runs"].as_object_mut().expect("runs");
        assert_eq!(rows.len(), 1);
        rows.values_mut().next().expect("a row")["parts"] = parts;
        std::fs::write(&kept, file.to_string()).expect("it is written");
    };
    let times = serde_json::json!({ "last": [1e-9], "count": 1 });
    change(serde_json::json!({ "gpu0,host:8": {
        "times": times, "units": { "gpu0": [600, 0], "host:8": [0, 900] } } }));
    let third = stencil(&mut session("k40", &kept, false));
    // The GPU, which is faster, takes what the host has not begun of its units.
    let begun = shares(&third, 0);
    assert!(begun[0] > 0.1 && begun[1] >= 0.4, "{begun:?}");
    // A part that is expected to be faster is tried.
    change(
        serde_json::json!({ "gpu0": { "times": { "last": [1.0], "count": 1 } },
        "host:8": { "expected": 0.5 } }),
    );
    let tried = stencil(&mut session("k40", &kept, false));
    assert_eq!(shares(&tried, 0), [1.0, 0.0], "{:?}", tried.notes);
    let fresh = stencil(&mut session("k40", &kept, true));
    assert!(!says_earlier(&fresh) && fresh.seconds == first.seconds);
    // Another size is another kind of run.
    let mut other = session("k40", &kept, false);
    let mut grid = Grid::new(&[500, 500], vec![1.0; 250_000]).expect("a grid");
    let run = other.stencil(&mut grid).steps(40).run().expect("it runs");
    assert!(!says_earlier(&run));
    // A session alone knows its own runs.
    let mut alone = Session::simulate("k40").expect("it is shipped");
    assert!(!says_earlier(&stencil(&mut alone)) && says_earlier(&stencil(&mut alone)));
}

#[test]
fn operations_begin_on_the_part_that_was_fastest() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.json");
    let ones = DenseMatrix::new(512, 512, vec![1.0_f32; 512 * 512]).expect("a matrix");
    let product = |kept: &Path| {
        let mut session = session("v100x2", kept, false);
        let ran = session.matmul(&ones, &ones).run().expect("it runs");
        assert!(ran.result.elements().iter().all(|sum| *sum == 512.0));
        ran.run
    };
    let first = product(&kept);
    let second = product(&kept);
    assert!(says_earlier(&second), "{:?}", second.notes);
    assert_eq!(first.shares(), second.shares());
    // What a run took outranks what is expected.
    let text = std::fs::read_to_string(&kept).expect("it was written");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let runs = file["runs"].as_object_mut().expect("runs");
    let row = runs.values_mut().next().expect("a row");
    assert_eq!(first.shares(), [1.0, 0.0, 0.0], "{row}");
    assert!(row["parts"]["host:40"]["times"].is_object(), "{row}");
    row["parts"]["gpu0"] = serde_json::json!({ "times": { "last": [1e-9], "count": 1 } });
    std::fs::write(&kept, file.to_string()).expect("it is written");
    assert_eq!(product(&kept).shares(), [0.0, 1.0, 0.0]);
}

#[test]
fn a_file_that_is_damaged_is_noted_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.json");
    std::fs::write(&kept, "{}").expect("it is written");
    let run = stencil(&mut session("k40", &kept, false));
    assert!(
        run.notes.iter().any(|note| note.contains("are not kept")),
        "{:?}",
        run.notes
    );
    assert_eq!(std::fs::read_to_string(&kept).expect("it is there"), "{}");
}
