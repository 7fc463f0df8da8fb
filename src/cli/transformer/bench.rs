//! `pdawl bench transformer`: the experiments of the PySchedCL paper.

use std::sync::atomic::Ordering;

use pdawl::codelet::NumberFormat;
use pdawl::experiment::{Point, PointOptions};
use pdawl::policy::NamedPolicy;
use pdawl::report::transformer::{Experiments, PointReport, claims};
use pdawl::workload::transformer::{Form, Transformer};

use super::{beta, check_memory, failure, heads};
use crate::args::{Format, MachineArgs};
use crate::failure::Failure;
use crate::graph::open_machine;
use crate::integer::integer;
use crate::machine_session::Needs;
use crate::policies::{Policies, help, policies};
use crate::precision::NumberFormatArg;
use crate::{interrupt, terminal};

/// The paper's points: H of 1 to 16 at this beta, and these betas at this H.
const PAPER_BETA: u32 = 256;
const PAPER_BETAS: [u32; 4] = [64, 128, 256, 512];
const PAPER_HEADS: u32 = 16;

const EXAMPLES: &str = "Examples:\n  pdawl bench transformer\n  \
                        pdawl bench transformer --heads 16 --beta 512 --resident\n  \
                        pdawl bench transformer --machine k40 --heads 1,4,16 --beta 256 \
                        --format json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("host_memory", |limit| limit.hide(true)))]
pub struct Args {
    /// Heads of a layer [default: the paper's 1 to 16 at beta 256, and 16]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = heads)]
    heads: Vec<u32>,

    /// Rows and columns of every matrix [default: the paper's 64 to 512 at 16
    /// heads, and 256]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = beta)]
    beta: Vec<u32>,

    /// Layers of each transformer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=1000_u32))]
    layers: u32,

    /// The precision of all matrices; kernels compute in f32 and round their results
    #[arg(long, value_enum, default_value_t)]
    precision: NumberFormatArg,

    /// Runs of each policy that count, in turns; each follows one that does not
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = integer(1..=u32::MAX))]
    repeats: u32,

    /// The policies that are compared with clustering, beside a batch, in turns
    #[arg(long, value_name = "LIST", value_parser = others, long_help = help(COMPARED),
          default_value = "eager,heft,adaptive")]
    policies: Policies,

    /// Most queues of a GPU that are searched for the best clustering
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = integer(1..=64_usize))]
    most_queues: usize,

    /// Most heads on CPUs that are searched for the best clustering
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = integer(0..=64_usize))]
    most_on_cpu: usize,

    /// Leave inputs, weights and results on the devices from run to run
    ///
    /// Without it all of them are copied in every run, as in the paper.
    #[arg(long)]
    resident: bool,

    /// Seed of the input, the weights and the order of turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    #[command(flatten)]
    machine: MachineArgs,

    /// Compare every policy's result with the sequential reference
    #[arg(long, help_heading = "Output", conflicts_with = "resident")]
    verify: bool,

    /// How the comparison is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

/// What --policies is for.
const COMPARED: &str = "The policies that are compared with clustering, beside a batch, in turns";

/// Parses a list of policies without clustering.
fn others(text: &str) -> Result<Policies, String> {
    let list = policies(text)?;
    match list.0.contains(&NamedPolicy::CLUSTERING) {
        true => Err("clustering is always compared, and is not to be named".to_owned()),
        false => Ok(list),
    }
}

impl Args {
    /// The heads and the beta of every point.
    fn points(&self) -> Vec<(u32, u32)> {
        if self.heads.is_empty() && self.beta.is_empty() {
            let by_heads = (1..=PAPER_HEADS).map(|heads| (heads, PAPER_BETA));
            let by_beta = PAPER_BETAS.iter().map(|beta| (PAPER_HEADS, *beta));
            let others = by_beta.filter(|(_, beta)| *beta != PAPER_BETA);
            return by_heads.chain(others).collect();
        }
        let or = |list: &[u32], default: u32| match list {
            [] => vec![default],
            list => list.to_vec(),
        };
        let betas = or(&self.beta, PAPER_BETA);
        let heads = or(&self.heads, PAPER_HEADS);
        let of = |heads: u32| betas.iter().map(move |beta| (heads, *beta));
        heads.into_iter().flat_map(of).collect()
    }

    fn transformer(&self, (heads, beta): (u32, u32)) -> Transformer {
        Transformer {
            heads,
            beta,
            layers: self.layers,
            format: self.precision.into(),
            seed: self.seed,
            form: Form::Heads,
            read_back: !self.resident,
        }
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let points = args.points();
    let needs = Needs {
        fp64: false,
        data: args.verify,
        seed: args.seed,
    };
    let mut session = open_machine(&args.machine, needs, args.layers)?;
    if args.verify || !session.machine.simulated {
        for point in &points {
            // Three copies: by heads, by kernels and as a batch.
            check_memory(&args.transformer(*point), 3, args.verify)?;
        }
    }
    let options = PointOptions {
        policies: args.policies.0.clone(),
        repeats: args.repeats,
        most_queues: args.most_queues,
        most_on_cpu: args.most_on_cpu,
        rounds: 3,
        resident: args.resident,
        verify: args.verify,
        seed: args.seed,
    };
    let bar = terminal::progress(args.format, points.len() as u64, "transformer");
    let mut measured = Vec::new();
    for point in points {
        let transformer = args.transformer(point);
        let tell = &mut |what: &str| {
            bar.set_message(format!("{} x {}: {what}", point.0, point.1));
        };
        let point = session.with(None, |runtime| {
            Point::measure(runtime, &transformer, &options, stop, tell)
        })?;
        measured.extend(point.map_err(failure)?.as_ref().map(PointReport::of));
        bar.inc(1);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    let experiments = Experiments {
        machine: session.machine,
        layers: args.layers,
        precision: NumberFormat::from(args.precision).name(),
        seed: args.seed,
        repeats: args.repeats,
        resident: args.resident,
        points: measured,
        paper: claims(),
        interrupted: stop.load(Ordering::Relaxed),
        notes: session.notes,
    };
    terminal::print_report(args.format, &experiments, |report| report.render())?;
    match (experiments.interrupted, experiments.right()) {
        (true, _) => Err(Failure::Interrupted),
        (false, true) => Ok(()),
        (false, false) => Err(Failure::failed(
            "a policy's result differs from the sequential reference",
            "the same with other --devices, to find the one that computes wrongly",
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn points(line: &str) -> Vec<(u32, u32)> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Line::parse_from(words).args.points()
    }

    #[test]
    fn the_papers_points_are_the_default() {
        let all = points("");
        assert_eq!(all.len(), 16 + 3);
        assert!((1..=16).all(|heads| all.contains(&(heads, 256))));
        assert!(PAPER_BETAS.iter().all(|beta| all.contains(&(16, *beta))));
    }

    #[test]
    fn lists_are_multiplied() {
        let all = points("--heads 1,2 --beta 64,65");
        assert_eq!(all, [(1, 64), (1, 65), (2, 64), (2, 65)]);
        assert_eq!(points("--beta 512"), [(16, 512)]);
        assert_eq!(points("--heads 3"), [(3, 256)]);
    }
}
