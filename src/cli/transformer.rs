//! `pdawl run transformer`: a transformer as a task graph.

use std::sync::Arc;

use clap::ValueEnum;
use pdawl_api::codelet::NumberFormat;
use pdawl_api::report::run::workload::TransformerParameters;
use pdawl_api::report::{Parameters, Workload};
use pdawl_api::session::{GraphJob, Placed, Reference};
use pdawl_api::workload::transformer::{Form, MOST_HEADS, MOST_ROWS, Transformer};

use super::failure::Failure;
use super::graph::{self, GraphArgs, GraphRequest};
use super::size::integer;

/// The remedy when memory does not suffice.
const SMALLER: &str = "a smaller --beta, fewer --heads or --layers";

const EXAMPLES: &str = "Examples:\n  pdawl run transformer --heads 16 --beta 512 --adaptive\n  \
                        pdawl run transformer --policy clustering --queues gpu=8 --map h_cpu=1 \
                        --verify\n  \
                        pdawl run transformer --policy clustering --search --repeats 9\n  \
                        pdawl run transformer --batch --precision bf16 --verify\n  \
                        pdawl run transformer --machine k40 --layers 3 --gantt run.html";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("host_memory", |limit| limit.hide(true)))]
pub struct Args {
    /// Heads of a layer
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = integer(1..=MOST_HEADS))]
    heads: u32,

    /// Rows and columns of every matrix
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = integer(1..=MOST_ROWS))]
    beta: u32,

    /// Layers; the output of each is the input of the next
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=1000_u32))]
    layers: u32,

    /// The precision of all matrices; kernels compute in f32 and round their results
    #[arg(long, value_enum, default_value_t)]
    precision: NumberFormatArg,

    /// Run the heads of a device as one batch: five kernels for all of them instead
    /// of eight each
    ///
    /// With --map h_cpu=N, N heads are separate, for CPUs.
    #[arg(long)]
    batch: bool,

    /// Leave the results on the devices
    #[arg(long, conflicts_with = "verify")]
    leave_results: bool,

    /// Seed of the input and the weights
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    #[command(flatten)]
    graph: GraphArgs,
}

impl Args {
    fn transformer(&self) -> Transformer {
        Transformer {
            heads: self.heads,
            beta: self.beta,
            layers: self.layers,
            format: self.precision.into(),
            seed: self.seed,
            form: self.form(),
            read_back: !self.leave_results,
        }
    }

    fn form(&self) -> Form {
        if !self.batch {
            return Form::Heads;
        }
        let single = self.graph.scheduling.map.unwrap_or(0) as u32;
        let single = single.min(self.heads);
        let together = self.heads - single;
        let groups = (together > 0).then_some(together).into_iter();
        Form::Batches(groups.chain((0..single).map(|_| 1)).collect())
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let transformer = args.transformer();
    let layers = transformer.layers().map_err(Failure::of)?;
    let components = layers.components().map_err(Failure::of)?;
    let flops = layers.flops();
    let workload = Workload {
        name: "transformer",
        title: title(&transformer),
        parameters: Parameters::Transformer(TransformerParameters {
            heads: args.heads,
            beta: args.beta,
            layers: args.layers,
            precision: transformer.format.name(),
            batch: args.batch,
            seed: args.seed,
            flops,
            leave_results: args.leave_results,
        }),
    };
    let request = GraphRequest {
        job: GraphJob {
            workload,
            graph: Arc::clone(&layers.graph),
            placed: Placed::Components(Arc::new(components)),
            computes: true,
            reference: Some(Reference::Transformer(Box::new((transformer, layers)))),
        },
        policy: None,
        queues: None,
        fp64: false,
        seed: args.seed,
        smaller: SMALLER,
        reads: Vec::new(),
        saves: Vec::new(),
        notes: Vec::new(),
    };
    graph::run(request, &args.graph)
}

/// One line for people.
fn title(of: &Transformer) -> String {
    let batch = match of.form {
        Form::Heads => "",
        Form::Batches(_) => ", in batches",
    };
    format!(
        "transformer, {} of {}, beta {}, {}{batch}",
        counted(of.layers, "layer"),
        counted(of.heads, "head"),
        of.beta,
        of.format.name()
    )
}

/// `1 layer`, `3 layers`.
fn counted(count: u32, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// The format of matrices whose sums are computed in single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NumberFormatArg {
    #[default]
    F32,
    /// IEEE's half precision; sums are singles
    F16,
    /// bfloat16; sums are singles
    Bf16,
    /// Singles, whose products have factors rounded to 10 bits of the mantissa
    Tf32,
}

impl From<NumberFormatArg> for NumberFormat {
    fn from(arg: NumberFormatArg) -> Self {
        match arg {
            NumberFormatArg::F32 => Self::F32,
            NumberFormatArg::F16 => Self::F16,
            NumberFormatArg::Bf16 => Self::Bf16,
            NumberFormatArg::Tf32 => Self::Tf32,
        }
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

    fn form(line: &str) -> Form {
        let words = std::iter::once("run").chain(line.split_whitespace());
        Line::parse_from(words).args.form()
    }

    #[test]
    fn a_batch_leaves_the_cpus_heads_by_themselves() {
        let on_cpu = "--policy clustering --map";
        assert_eq!(form(""), Form::Heads);
        assert_eq!(form("--batch --heads 3"), Form::Batches(vec![3]));
        let two = form(&format!("--batch --heads 5 {on_cpu} h_cpu=2"));
        assert_eq!(two, Form::Batches(vec![3, 1, 1]));
        let all = form(&format!("--batch --heads 2 {on_cpu} h_cpu=9"));
        assert_eq!(all, Form::Batches(vec![1, 1]));
    }
}
