//! Runs on a part of a machine's devices.

use std::sync::atomic::AtomicBool;

use pdawl_api::policy::NamedPolicy;
use pdawl_api::session::{
    DeviceOptions, Expected, GraphJob, GraphOptions, NamedMachine, Session, TakingPart,
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
        let expected = |part: &[usize]| Expected {
            part: part.to_vec(),
            seconds: 1.0,
        };
        let options = GraphOptions {
            part: TakingPart::Known(Some([expected(&[1]), expected(&[0, 1])])),
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
