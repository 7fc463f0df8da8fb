//! Panics of what users give to a session: its policy, its balancer, its tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use pdawl::Session;
use pdawl::session::{DenseMatrix, Error, Grid, SparseMatrix, Task};
use pdawl_api::balance::{Balancer, Fixed, Next, Setup, StepPlan, StepReport, StepState};
use pdawl_api::policy::{Finished, Policy, Problem};

/// A balancer that panics in a step, or when a step has ended.
struct Panics {
    halves: Fixed,
    plan: u32,
    ended: u32,
}

impl Balancer for Panics {
    fn name(&self) -> String {
        "panics".to_owned()
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        assert!(step < self.plan, "a test's panic in `plan`");
        self.halves.plan(step)
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        self.halves.next(device, state)
    }

    fn step_ended(&mut self, report: &StepReport) {
        assert!(report.step < self.ended, "a test's panic in `step_ended`");
    }

    fn lost(&mut self, _: usize) {}

    fn returned(&mut self, _: usize, _: u32) {}
}

/// A policy that panics when it is asked.
struct NoPolicy;

impl Policy for NoPolicy {
    fn name(&self) -> &'static str {
        "none"
    }

    fn may_run(&self, _: usize, _: usize) -> bool {
        true
    }

    fn begin(&mut self) {}

    fn ready(&mut self, _: usize, _: u64) {}

    fn next(&mut self, _: usize, _: u64) -> Option<usize> {
        panic!("a test's panic in `next`")
    }

    fn finished(&mut self, _: &Finished) {}

    fn lost(&mut self, _: usize) {}

    fn returned(&mut self, _: usize) {}
}

fn stencil(session: &mut Session, steps: u32) -> Result<(), Error> {
    let mut grid = Grid::new(&[40, 40], vec![1.0; 1600])?;
    session.stencil(&mut grid).steps(steps).run().map(drop)
}

fn graph(session: &mut Session, task: fn(), own: bool) -> Result<(), Error> {
    let run = session.graph(|graph| {
        for name in ["first", "second"] {
            let made = graph.result::<f64>(name, 1);
            let task = Task::new(name, move |data| {
                task();
                data.write(0)[0] = 1.0;
            });
            graph.task(task.writes(made));
        }
    });
    let make = |_: Problem| -> Box<dyn Policy> { Box::new(NoPolicy) };
    match own {
        true => run.policy_of(make).run(),
        false => run.run(),
    }
    .map(drop)
}

fn product(session: &mut Session) -> Result<(), Error> {
    let two = SparseMatrix::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![2.0, 3.0])?;
    let y = session.spmv(&two, &[1.0, 1.0])?;
    assert_eq!(y, [2.0, 3.0]);
    Ok(())
}

fn dense(session: &mut Session) -> Result<(), Error> {
    let one = DenseMatrix::new(1, 1, vec![2.0])?;
    let product = session.matmul(&one, &one).run()?.result;
    assert_eq!(product.elements(), [4.0]);
    Ok(())
}

type Call = fn(&mut Session) -> Result<(), Error>;

/// What panics, and whether the session is ruined by it.
const PANICS: [(Call, bool); 5] = [
    (
        |session| {
            of_balancer(session, (2, 100));
            stencil(session, 10)
        },
        true,
    ),
    (
        |session| {
            of_balancer(session, (100, 1));
            stencil(session, 10)
        },
        true,
    ),
    (
        |session| {
            of_balancer(session, (0, 100));
            product(session)
        },
        true,
    ),
    (|session| graph(session, || (), true), true),
    (
        |session| graph(session, || panic!("a test's panic in a task"), false),
        false,
    ),
];

fn of_balancer(session: &mut Session, (plan, ended): (u32, u32)) {
    session.set_balancer("panics", move |setup: &Setup| {
        let halves = Fixed::new("halves", setup, &vec![1.0; setup.devices.len()]);
        Box::new(Panics {
            halves,
            plan,
            ended,
        })
    });
}

/// After a panic a session works, or each call says that it does not; others work. Nothing hangs.
#[test]
fn a_panic_ruins_one_session_at_most() {
    let (ended, end) = channel();
    let all = thread::spawn(move || {
        for (panics, ruins) in PANICS {
            for open in [(|| Session::simulate("k40")) as fn() -> _, || {
                Session::open_devices("host:2")
            }] {
                let mut session = open().unwrap();
                product(&mut session).unwrap();
                let ran = catch_unwind(AssertUnwindSafe(|| panics(&mut session)));
                assert!(!matches!(ran, Ok(Ok(()))), "it did not panic");
                let is_ruined = ran.is_err();
                assert!(!ruins || is_ruined, "the panic is that of the thread");
                session.set_strategy(&"dawl".parse().unwrap()).unwrap();
                let calls: [Call; 4] = [
                    product,
                    |session| stencil(session, 3),
                    |session| graph(session, || (), false),
                    dense,
                ];
                for call in calls {
                    match call(&mut session) {
                        Err(Error::Panicked) if is_ruined => {}
                        other => assert!(other.is_ok() && !is_ruined, "{other:?}"),
                    }
                }
                drop(session);
                product(&mut open().unwrap()).unwrap();
            }
        }
        let _ = ended.send(());
    });
    let waited = end.recv_timeout(Duration::from_secs(60));
    assert!(
        waited.is_ok() || all.is_finished(),
        "a session hangs after a panic"
    );
    all.join().unwrap();
}
