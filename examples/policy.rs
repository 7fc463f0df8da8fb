//! A policy of one's own: each device takes the ready task that it computes fastest beside the
//! others. It runs on a simulated machine and on this one.
use pdawl::policy::{Policy, Problem};
use pdawl::session::{Error, Results, Session, Task};

struct Relative {
    problem: Problem,
    ready: Vec<usize>,
}

impl Relative {
    /// The seconds of a task on a device, relative to the fastest device for it.
    fn slowdown(&self, task: usize, device: usize) -> Option<f64> {
        let seconds = &self.problem.tasks[task].seconds;
        let least = seconds
            .iter()
            .flatten()
            .copied()
            .fold(f64::INFINITY, f64::min);
        Some((*seconds.get(device)?)? / least.max(1e-9))
    }
}

impl Policy for Relative {
    fn name(&self) -> &'static str {
        "relative"
    }

    fn may_run(&self, task: usize, device: usize) -> bool {
        self.problem.able(task, device)
    }

    /// A device has one task, and the data of the next one are loaded meanwhile.
    fn window(&self) -> Option<usize> {
        Some(2)
    }

    fn begin(&mut self) {
        self.ready.clear();
    }

    fn ready(&mut self, task: usize, _now: u64) {
        self.ready.push(task);
    }

    fn next(&mut self, device: usize, _now: u64) -> Option<usize> {
        let slowdowns = (self.ready.iter().enumerate())
            .filter_map(|(at, task)| Some((self.slowdown(*task, device)?, at)));
        let (_, at) = slowdowns.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        Some(self.ready.remove(at))
    }

    // The engine tells again which tasks are ready.
    fn changed(&mut self, _device: usize, _lost: bool) {
        self.ready.clear();
    }
}

/// Adds numbers in pairs, like the matches of a tournament.
pub fn run(session: &mut Session, leaves: usize) -> Result<(Results, f64), Error> {
    let mut winner = None;
    let graph = session.graph(|graph| {
        let mut round: Vec<_> = (0..leaves)
            .map(|leaf| graph.given("leaf", &vec![leaf as f64; 1000]))
            .collect();
        while round.len() > 1 {
            let pairs = round.chunks_exact(2).map(|pair| {
                let sum = match round.len() {
                    2 => graph.result::<f64>("sum", 1000),
                    _ => graph.between::<f64>("sum", 1000),
                };
                let add = Task::new("add", |data| {
                    for at in 0..1000 {
                        let sum = data.read::<f64>(0)[at] + data.read::<f64>(1)[at];
                        data.write(0)[at] = sum;
                    }
                });
                let kernel = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
                    __kernel void add(__global const double *a, __global const double *b,
                                      __global double *sum) {
                        size_t i = get_global_id(0);
                        sum[i] = a[i] + b[i];
                    }";
                let add = add.kernel(kernel, "add", &[1000]).cost(1e3, 24e3);
                graph.task(add.reads(pair[0]).reads(pair[1]).writes(sum));
                sum
            });
            round = pairs.collect();
        }
        winner = round.pop();
    });
    let make = |problem| -> Box<dyn Policy> {
        Box::new(Relative {
            problem,
            ready: Vec::new(),
        })
    };
    let results = graph.policy_of(make).run()?;
    let sum = winner.map_or(f64::NAN, |winner| results.of(winner)[0]);
    Ok((results, sum))
}

pub fn main() -> Result<(), Error> {
    for (name, mut session) in [
        ("simulated", Session::simulate("v100x2")?),
        ("real", Session::open()?),
    ] {
        let (results, sum) = run(&mut session, 64)?;
        assert_eq!(sum, (0..64).sum::<usize>() as f64);
        let run = results.run();
        println!("{name}: {:.6} s, shares {:.2?}", run.seconds, run.shares());
    }
    Ok(())
}
