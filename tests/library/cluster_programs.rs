//! Programs of users on a cluster as one object, whose nodes are threads of this process.

use pdawl::session::{ClusterOptions, Error, Nodes, ResultError};
use pdawl_api::cluster::space::Block;
use pdawl_api::engine::cluster::ClusterError;
use pdawl_api::workload::cluster::program::{Program, ProgramError, ProgramTask, Space};

/// Nodes that are threads, with these devices.
pub fn cluster(nodes: usize, devices: &str) -> Nodes {
    let options = ClusterOptions {
        devices: Some(devices.to_owned()),
        ..ClusterOptions::default()
    };
    Nodes::in_threads(nodes, options).expect("all join")
}

/// Multiplies each number by a factor, a row a subtask.
fn scaled(rows: u64, factor: i64) -> (Program, Space<i64>) {
    let mut program = Program::new("scaled");
    let numbers = program.given(rows, 7, |row, column| (10 * row + column) as i64);
    let scaled = program.space::<i64>(rows, 7);
    let row = |subtask: u64| Block::new(subtask..subtask + 1, 0..7);
    let accesses = (numbers.read(row), scaled.write(row));
    let task = ProgramTask::new("scale", rows, accesses, move |_, (numbers, mut scaled)| {
        for column in scaled.block().columns.clone() {
            let row = scaled.block().rows.start;
            scaled[(row, column)] = factor * numbers[(row, column)];
        }
    });
    program.add_task(task);
    program.set_result(scaled);
    (program, numbers)
}

#[test]
fn a_cluster_runs_programs_one_after_the_other() {
    for nodes in 1..=3 {
        let mut cluster = cluster(nodes, "host:1");
        assert_eq!((cluster.rank(), cluster.size()), (0, nodes));
        for (rows, factor) in [(5, 3), (1, -2), (12, 7)] {
            let (mut program, numbers) = scaled(rows, factor);
            program.add_result(numbers);
            let results = cluster.run(program).expect("it runs");
            let given = (0..rows).flat_map(|row| (0..7).map(move |column| 10 * row + column));
            let given: Vec<i64> = given.map(u64::cast_signed).collect();
            let right: Vec<i64> = given.iter().map(|number| factor * number).collect();
            assert_eq!(results.to_vec().expect("integers"), Some(right));
            assert_eq!(results.of(numbers).expect("it is brought"), Some(given));
            let outcome = results.outcome().expect("this is the first node");
            let subtasks: u64 = outcome.nodes.iter().map(|node| node.subtasks).sum();
            assert_eq!(subtasks, rows, "of this program alone");
        }
        cluster.leave().expect("all leave");
    }
}

#[test]
fn a_result_of_another_type_or_space_is_refused() {
    let (program, numbers) = scaled(3, 1);
    let results = cluster(1, "host:1").run(program).expect("it runs");
    let refused = results.to_vec::<f64>().expect_err("they are integers");
    assert_eq!(
        refused,
        ResultError::Type {
            has: "i64",
            asked: "f64"
        }
    );
    let refused = results.of(numbers).expect_err("it is not brought");
    assert!(refused.to_string().contains("add_result"), "{refused}");
}

/// The error of a program, on two nodes that run nothing afterwards.
pub fn refused(program: Program) -> Error {
    let mut cluster = cluster(2, "host:1");
    let error = cluster.run(program).expect_err("it cannot run");
    let (next, _) = scaled(2, 1);
    let after = cluster.run(next).expect_err("the nodes have ended");
    assert!(after.to_string().contains("ended with an error"), "{after}");
    error
}

#[test]
fn programs_that_cannot_run_are_refused() {
    assert!(matches!(
        refused(Program::new("empty")),
        Error::Cluster(ClusterError::Program(ProgramError::NoTask { .. }))
    ));
    let mut program = Program::new("no space");
    let (_, other) = scaled(3, 1);
    let read = other.read(move |_| other.whole());
    program.add_task(ProgramTask::new("reads", 1, read, |_, _| {}));
    let error = refused(program);
    assert!(error.to_string().contains("has no space"), "{error}");

    let mut program = Program::new("of another");
    let own = program.space::<i64>(1, 1);
    let (mut large, _) = scaled(3, 1);
    let other = large.space::<i64>(4, 4);
    let accesses = (
        other.read(move |_| other.whole()),
        own.write(move |_| own.whole()),
    );
    program.add_task(ProgramTask::new("reads", 1, accesses, |_, _| {}));
    let error = refused(program);
    assert!(error.to_string().contains("another program"), "{error}");

    let mut program = Program::new("outside");
    let space = program.given(4, 4, |_, _| 1_u8);
    let to = program.space::<u8>(4, 4);
    let row = |subtask: u64| Block::new(subtask..subtask + 2, 0..4);
    let accesses = (
        space.read(row),
        to.write(move |s| Block::new(s..s + 1, 0..4)),
    );
    program.add_task(ProgramTask::new("rows", 4, accesses, |_, _| {}));
    let error = refused(program).to_string();
    assert!(
        error.contains("subtask 3 of rows uses rows 3..5"),
        "{error}"
    );

    let mut program = Program::new("huge");
    let space = program.space::<u64>(1 << 30, 1 << 30);
    let write = space.write(move |_| space.whole());
    program.add_task(ProgramTask::new("fill", 1, write, |_, _| {}));
    let error = refused(program).to_string();
    assert!(error.contains("the spaces of huge need"), "{error}");

    let error = Nodes::in_threads(0, ClusterOptions::default()).err();
    assert!(error.is_some_and(|error| error.to_string().contains("0 nodes")));
}

#[test]
fn devices_that_do_not_exist_are_reported() {
    let options = ClusterOptions {
        devices: Some("opencl9.9".to_owned()),
        ..ClusterOptions::default()
    };
    let error = Nodes::in_threads(2, options).err().expect("there are none");
    assert!(matches!(error, Error::Runtime(_)), "{error}");
}
