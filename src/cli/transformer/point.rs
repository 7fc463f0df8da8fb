//! One size of transformer: the best clustering is searched, then contenders
//! take turns.

use std::sync::atomic::{AtomicBool, Ordering};

use pdawl::engine::graph::{Control, GraphOutcome};
use pdawl::experiment::{Bout, Contender};
use pdawl::machine::DeviceKind;
use pdawl::policy::{Configuration, Space};
use pdawl::report::bench::median;
use pdawl::report::transformer as report;
use pdawl::runtime::Runtime;
use pdawl::workload::transformer::{Form, Transformer, Verification};

use super::failure;
use crate::cli::failure::Failure;

/// Runs in which adaptive learns before one counts: the layers after which it
/// is to be as good as the search.
const LEARNING: usize = 3;

/// Most queues that a batch, a chain of five kernels, is searched over.
const BATCH_QUEUES: usize = 3;

/// How a point is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub repeats: u32,
    /// Most queues of a GPU, and heads on CPUs, that are searched.
    pub queues: usize,
    pub on_cpu: usize,
    pub rounds: usize,
    /// Whether data stay on the devices.
    pub resident: bool,
    pub verify: bool,
    /// Of the order of turns.
    pub seed: u64,
}

/// A run's seconds.
struct Run {
    whole: f64,
    /// For a kernel, of the host beyond the driver, and of the driver.
    host: f64,
    driver: f64,
}

/// A contender and its runs.
struct Entry {
    name: &'static str,
    contender: Contender,
    /// Of batches, or of heads.
    batch: bool,
    runs: Vec<Run>,
    verified: Option<Verification>,
}

/// Measures a point; `None` for its figures when it was interrupted before any.
pub fn measure(
    runtime: &mut dyn Runtime,
    transformer: &Transformer,
    plan: Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<report::Point>, Failure> {
    let batch = Transformer {
        form: Form::Batches(vec![transformer.heads]),
        ..transformer.clone()
    };
    let mut bouts = Bouts {
        heads: Bout::new(runtime, transformer, plan.resident).map_err(failure)?,
        batch: Bout::new(runtime, &batch, plan.resident).map_err(failure)?,
    };
    let point = turns(runtime, &mut bouts, transformer, plan, stop, progress);
    bouts.heads.release(runtime);
    bouts.batch.release(runtime);
    point
}

/// The transformer in both forms.
struct Bouts {
    heads: Bout,
    batch: Bout,
}

impl Bouts {
    fn of(&mut self, entry: &Entry) -> &mut Bout {
        match entry.batch {
            true => &mut self.batch,
            false => &mut self.heads,
        }
    }

    fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        entry: &Entry,
        stop: &AtomicBool,
    ) -> Result<GraphOutcome, Failure> {
        let mut control = Control {
            stop,
            progress: &mut |_, _| {},
        };
        let outcome = (self.of(entry)).run(runtime, entry.contender, false, &mut control);
        outcome.map_err(failure)
    }
}

fn turns(
    runtime: &mut dyn Runtime,
    bouts: &mut Bouts,
    transformer: &Transformer,
    plan: Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<report::Point>, Failure> {
    let all = space(runtime, bouts.heads.heads(), plan.queues, plan.on_cpu);
    let on_cpu = all.h_cpu[0];
    let Some((best, searched)) =
        search(runtime, &mut bouts.heads, &all, plan.rounds, stop, progress)?
    else {
        return Ok(None);
    };
    let narrow = Space {
        q_gpu: (1..=plan.queues.min(BATCH_QUEUES)).collect(),
        h_cpu: vec![on_cpu.min(1)],
        ..space(runtime, 1, 1, 0)
    };
    let Some((batched, _)) = search(
        runtime,
        &mut bouts.batch,
        &narrow,
        plan.rounds,
        stop,
        progress,
    )?
    else {
        return Ok(None);
    };
    let coarse = Configuration {
        q_gpu: 1,
        q_cpu: 1,
        h_cpu: on_cpu,
        width: 1,
    };
    let entry = |name, contender, batch| Entry {
        name,
        contender,
        batch,
        runs: Vec::new(),
        verified: None,
    };
    let mut entries = [
        entry("coarse", Contender::Clustering(coarse), false),
        entry("clustering", Contender::Clustering(best), false),
        entry("eager", Contender::Eager, false),
        entry("heft", Contender::Heft, false),
        entry("adaptive", Contender::Adaptive(best), false),
        entry("batch", Contender::Clustering(batched), true),
    ];
    for entry in &entries {
        // Kernels' times, memory and kernels are made, and shares learned,
        // before anything counts.
        let times = if entry.name == "adaptive" {
            LEARNING
        } else {
            1
        };
        for _ in 0..times {
            bouts.run(runtime, entry, stop)?;
        }
        progress(entry.name);
    }
    // Whoever comes after a policy finds the caches and the driver as that has
    // left them: so a turn is two runs, of which the second counts, and everybody
    // comes after everybody.
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut order: Vec<usize> = (0..entries.len()).collect();
    for _ in 0..plan.repeats {
        random.shuffle(&mut order);
        for index in &order {
            let entry = &mut entries[*index];
            bouts.run(runtime, entry, stop)?;
            let outcome = bouts.run(runtime, entry, stop)?;
            if outcome.interrupted {
                return Ok(Some(figures(
                    transformer,
                    bouts.heads.flops(),
                    searched,
                    &entries,
                )));
            }
            entry.runs.push(Run {
                whole: outcome.seconds,
                host: outcome.host_seconds_per_kernel(),
                driver: outcome.driver_seconds_per_kernel(),
            });
        }
        progress("turn");
    }
    if plan.verify {
        for entry in &mut entries {
            bouts.run(runtime, entry, stop)?;
            entry.verified = bouts.of(entry).verify(runtime, stop).map_err(failure)?;
            progress("verify");
        }
    }
    Ok(Some(figures(
        transformer,
        bouts.heads.flops(),
        searched,
        &entries,
    )))
}

/// The best configuration, and how many were tried; `None` if it was
/// interrupted.
fn search(
    runtime: &mut dyn Runtime,
    bout: &mut Bout,
    space: &Space,
    rounds: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<(Configuration, usize)>, Failure> {
    let mut control = Control {
        stop,
        progress: &mut |_, _| progress("search"),
    };
    let searched = bout.search(runtime, space, rounds, &mut control);
    let found = searched.map_err(failure)?;
    let best = found.best.filter(|_| !stop.load(Ordering::Relaxed));
    Ok(best.map(|(best, _)| (best, found.all.len())))
}

/// The paper's space, mc = (q_gpu, q_cpu, h_cpu), as far as the devices go: up
/// to `queues` queues a GPU and two a CPU, whose pool computes one kernel after
/// the other with all its cores; up to `on_cpu` heads on CPUs, and all of them
/// if there is no GPU. A head has a queue for itself or spreads over all.
fn space(runtime: &dyn Runtime, heads: usize, queues: usize, on_cpu: usize) -> Space {
    let kinds = || runtime.devices().iter().map(|device| device.kind);
    let gpus = kinds().any(|kind| kind != DeviceKind::Cpu);
    let cpus = kinds().any(|kind| kind == DeviceKind::Cpu);
    Space {
        q_gpu: match gpus {
            true => (1..=queues.max(1)).collect(),
            false => vec![1],
        },
        q_cpu: match cpus {
            true => vec![1, 2],
            false => vec![1],
        },
        h_cpu: match (cpus, gpus) {
            (true, true) => (0..=on_cpu.min(heads)).collect(),
            (true, false) => vec![heads],
            (false, _) => vec![0],
        },
        widths: vec![1, usize::MAX],
    }
}

fn figures(
    transformer: &Transformer,
    flops: f64,
    searched: usize,
    entries: &[Entry],
) -> report::Point {
    let contenders: Vec<report::Contender> = entries
        .iter()
        .map(|entry| contender(entry, flops))
        .collect();
    report::Point {
        heads: transformer.heads,
        beta: transformer.beta,
        flops,
        searched,
        ratios: report::Ratios::of(&contenders),
        contenders,
    }
}

fn contender(entry: &Entry, flops: f64) -> report::Contender {
    let (q_gpu, q_cpu, h_cpu, width) = match entry.contender {
        Contender::Clustering(c) => (c.q_gpu, c.q_cpu, Some(c.h_cpu), c.width),
        Contender::Adaptive(c) => (c.q_gpu, c.q_cpu, None, c.width),
        Contender::Eager | Contender::Heft => (1, 1, None, 1),
    };
    let of = |which: fn(&Run) -> f64| entry.runs.iter().map(which).collect::<Vec<_>>();
    let seconds = of(|run| run.whole);
    report::Contender {
        name: entry.name,
        q_gpu,
        q_cpu,
        h_cpu,
        width,
        flops_per_second: median(&seconds).map(|seconds| flops / seconds),
        host_seconds_per_kernel: median(&of(|run| run.host)),
        driver_seconds_per_kernel: median(&of(|run| run.driver)),
        seconds,
        right: entry.verified.map(|verified| verified.right()),
        error: (entry.verified)
            .map(|verified| verified.error)
            .filter(|error| error.is_finite()),
    }
}
