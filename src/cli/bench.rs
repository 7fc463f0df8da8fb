//! `pdawl bench`: compares strategies, which run in turns on one workload.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use pdawl::balance::Strategy;
use pdawl::report::bench::{Bench, Runs, host_ratio, results};
use pdawl::report::bench_text;
use pdawl_profiler::median;

use super::args::{Format, MachineArgs, ModelArgs};
use super::failure::Failure;
use super::grid::Grid;
use super::integer::integer;
use super::product::Product;
use super::session::Session;
use super::workload::WorkloadRequest;
use super::{interrupt, terminal};
use super::{tasks, transformer, trial};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl bench stencil --size 8192\n  \
                        pdawl bench spmv --matrix like:FullChip@0.1")]
pub struct Args {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// A Jacobi stencil: 2-D 5-point or 3-D 7-point
    Stencil(Box<Stencil>),
    /// Sparse matrix times vector, or its power iteration
    Spmv(Box<Spmv>),
    /// Policies on the PySchedCL paper's transformer: its experiments 1 to 3
    Transformer(Box<transformer::bench::Args>),
    /// Policies on tasks that share data in small memories
    Tasks(Box<tasks::Args>),
    /// The variants of a codelet by themselves, device by device
    Codelet(Box<trial::Args>),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl bench stencil --size 8192\n  \
                        pdawl bench stencil --strategies cpu,fixed:0.4,dawl --repeats 9\n  \
                        pdawl bench stencil --machine h200 --format json")]
struct Stencil {
    #[command(flatten)]
    grid: Grid,

    #[command(flatten)]
    options: Options,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl bench spmv --matrix memplus.mtx.gz\n  \
                        pdawl bench spmv --matrix like:eu-2005 --strategies cpu,gpu,dawl\n  \
                        pdawl bench spmv --matrix rmat:20,16 --iterate --machine h200"
)]
struct Spmv {
    #[command(flatten)]
    product: Product,

    #[command(flatten)]
    options: Options,
}

/// The strategies of a comparison, the machine, and the output.
#[derive(Debug, clap::Args)]
struct Options {
    /// The strategies to compare, run in turns [default: those of
    /// cpu,gpu,guided,dawl,pdawl,oracle that the devices and models allow]
    #[arg(long, value_name = "LIST", value_parser = strategies)]
    strategies: Option<Strategies>,

    /// Runs of each strategy
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = integer(1..=u32::MAX),
          allow_negative_numbers = true)]
    repeats: u32,

    #[command(flatten)]
    machine: MachineArgs,

    #[command(flatten)]
    model: ModelArgs,

    /// How the comparison is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

#[derive(Clone, Debug)]
struct Strategies(Vec<Strategy>);

/// Parses a list of strategies. Shares contain commas, too: a number belongs to the
/// strategy before it.
fn strategies(text: &str) -> Result<Strategies, String> {
    let mut names: Vec<String> = Vec::new();
    for word in text.split(',') {
        match names.last_mut() {
            Some(name) if word.trim().parse::<f64>().is_ok() => {
                name.push(',');
                name.push_str(word.trim());
            }
            _ => names.push(word.trim().to_owned()),
        }
    }
    let list = names
        .iter()
        .map(|name| name.parse().map_err(|e| format!("{e}")))
        .collect::<Result<Vec<Strategy>, String>>()?;
    for (i, strategy) in list.iter().enumerate() {
        if list[..i].contains(strategy) {
            return Err(format!("{strategy} is named twice"));
        }
    }
    Ok(Strategies(list))
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    interrupt::listen()?;
    match &args.workload {
        Workload::Stencil(args) => {
            args.grid.check()?;
            compare(&args.options, |_| Ok(WorkloadRequest::Stencil(&args.grid)))
        }
        Workload::Spmv(args) => compare(&args.options, |stop| {
            let memory = args.options.machine.host_memory.map(|size| size.0);
            let matrix = args.product.load(memory, args.options.format, stop)?;
            Ok(WorkloadRequest::Spmv(&args.product, matrix))
        }),
        Workload::Transformer(args) => transformer::bench::run(args),
        Workload::Tasks(args) => tasks::run(args),
        Workload::Codelet(args) => trial::run(args),
    }
}

/// Runs the strategies in turns on a workload.
fn compare<'a>(
    args: &Options,
    request: impl FnOnce(&AtomicBool) -> Result<WorkloadRequest<'a>, Failure>,
) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let given = args.strategies.as_ref().map(|Strategies(list)| list);
    let choice = match given {
        Some(list) if !list.contains(&Strategy::Pdawl) => args.model.unused("--strategies")?,
        _ => args.model.choice(),
    };
    // All strategies have the same steps between two barriers: those of an only one.
    let only = given.and_then(|list| match list.as_slice() {
        [strategy] => Some(strategy),
        _ => None,
    });
    let mut session = Session::open(&args.machine, request(stop)?, false, choice, only)?;
    let list = match &args.strategies {
        Some(Strategies(list)) => list.clone(),
        None => session.strategies(),
    };
    let turns = u64::from(args.repeats) * list.len() as u64;
    let bar = terminal::progress(args.format, turns, "runs");
    let mut runs: Vec<Runs> = list.iter().map(Runs::of).collect();
    let mut outcome = Ok(());
    let (mut copies, mut plain) = (Vec::new(), Vec::new());
    'turns: for _ in 0..args.repeats {
        if list.contains(&Strategy::Cpu) {
            copies.extend(session.copy_bandwidth()?);
            plain.extend(session.time_plainly());
        }
        for (strategy, runs) in list.iter().zip(&mut runs) {
            match session.run(strategy, stop, &mut |_, _| {}) {
                // The time of an interrupted run is not one of the strategy.
                Ok(done) if done.interrupted => break 'turns,
                Ok(done) => runs.add(&done),
                Err(failure) => {
                    outcome = Err(failure);
                    break 'turns;
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    outcome?;

    let bytes_per_point = session.bytes_per_point();
    let context = session.context(&Strategy::Dawl);
    let singles: Vec<String> = session
        .single_devices()
        .iter()
        .map(Strategy::to_string)
        .collect();
    let results = results(&context.workload, &runs, &singles);
    let host =
        median(&copies).and_then(|bandwidth| host_ratio(&results, bandwidth, bytes_per_point));
    let points = context.workload.points();
    let host = host.map(|host| host.with_sequential(median(&plain), points));
    let bench = Bench {
        workload: context.workload,
        machine: context.machine,
        repeats: args.repeats,
        results,
        host,
        interrupted: stop.load(Ordering::Relaxed),
        notes: context.notes,
    };
    terminal::print_report(args.format, &bench, bench_text::render)?;
    match bench.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_with_their_strategy() {
        let list = strategies("cpu, fixed:0.2,0.5,0.3 ,dawl,fixed:0.4").unwrap();
        let names: Vec<String> = list.0.iter().map(Strategy::to_string).collect();
        assert_eq!(names, ["cpu", "fixed:0.2,0.5,0.3", "dawl", "fixed:0.4"]);
        assert!(strategies("cpu,cpu").unwrap_err().contains("twice"));
        assert!(strategies("0.5").is_err());
        assert!(strategies("").is_err());
    }
}
