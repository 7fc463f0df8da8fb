//! Predictions on growing numbers of a described cluster's nodes.

use clap::Subcommand;
use pdawl::machine::{ClusterFile, MachineFile};
use pdawl::report::Printed;
use pdawl::report::scaling::{Reference, ScalingContext, ScalingReport};
use pdawl::workload::cluster::Placement;

use super::one_node::{self, OneNode};
use super::options::SpreadOptions;
use super::prepared::PreparedWorkload;
use super::simulated::{DescribedCluster, Simulation, find, notes, refuse_launched};
use super::{convolution, fft, lu, matmul, sort, sparse};
use crate::args::{Format, noise};
use crate::dense::matmul::Sizes as MatmulSizes;
use crate::failure::Failure;
use crate::integer::integer;
use crate::workload::WorkloadRequest;
use crate::{interrupt, terminal};

/// The cluster that is simulated, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub struct ScalingOptions {
    /// Simulate runs on a described cluster
    ///
    /// `pdawl cluster list` shows the names. The path of a cluster file works, too.
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,

    /// Numbers of nodes: the cluster's first ones, or more than it has if all are alike
    /// [default: powers of two, and all that it has]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = integer(1..=u64::from(u32::MAX)), requires = "cluster")]
    nodes: Vec<u64>,

    /// Relative standard deviation of subtasks' times, such as 0.02
    #[arg(long, value_name = "FRACTION", value_parser = noise, requires = "cluster")]
    noise: Option<f64>,

    #[command(flatten)]
    pub spread: SpreadOptions,
}

/// A workload that only clusters predict.
#[derive(Debug, Subcommand)]
pub enum Workload {
    /// Predict a convolution on a described cluster
    #[command(
        after_help = "Example:\n  pdawl predict convolution --size 65536 --cluster unicorn --nodes 1,2,4,8,16"
    )]
    Convolution {
        #[command(flatten)]
        sizes: convolution::Sizes,
        #[command(flatten)]
        options: Options,
    },
    /// Predict a product of dense matrices on a described cluster
    #[command(after_help = "Example:\n  pdawl predict matmul --size 32768 --cluster unicorn")]
    Matmul {
        #[command(flatten)]
        sizes: MatmulSizes,
        /// Rows and columns of a block [default: by the nodes]
        #[arg(long, value_name = "N", value_parser = integer(1..=16384_u64))]
        tile: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
    /// Predict an LU factorisation on a described cluster
    #[command(
        after_help = "Example:\n  pdawl predict lu --size 32768 --cluster four --nodes 1,2,4,8"
    )]
    Lu {
        #[command(flatten)]
        sizes: lu::Sizes,
        #[command(flatten)]
        options: Options,
    },
    /// Predict a 2-D Fourier transform on a described cluster
    #[command(
        after_help = "Example:\n  pdawl predict fft --size 16384 --cluster four --format json"
    )]
    Fft {
        #[command(flatten)]
        sizes: fft::Sizes,
        #[command(flatten)]
        options: Options,
    },
    /// Predict a sort on the hosts of a described cluster
    #[command(after_help = "Example:\n  pdawl predict sort --size 1000000000 --cluster four")]
    Sort {
        #[command(flatten)]
        sizes: sort::Sizes,
        #[command(flatten)]
        options: Options,
    },
    /// Predict the page ranks of a graph on a described cluster
    #[command(after_help = "Example:\n  pdawl predict pagerank --matrix rmat:20,16 --cluster four")]
    Pagerank {
        #[command(flatten)]
        ranking: sparse::Ranking,
        #[command(flatten)]
        options: Options,
    },
}

/// The options that these workloads share.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seed of generated graphs, of random placements and of the simulation's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    #[command(flatten)]
    scaling: ScalingOptions,

    /// How the predictions are printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

impl Options {
    fn placement(&self, usual: Placement) -> Placement {
        self.scaling.spread.placement(usual, self.seed)
    }
}

/// Runs the subcommand.
pub fn run(workload: &Workload) -> Result<(), Failure> {
    let (mut prepared, options) = match workload {
        Workload::Convolution { sizes, options } => {
            let placement = options.placement(Placement::Grid);
            let prepared = convolution::prepare(sizes, placement, options.seed)?;
            (prepared, options)
        }
        Workload::Matmul {
            sizes,
            tile,
            options,
        } => {
            let placement = options.placement(Placement::Grid);
            let shape = sizes.shape().map(u64::from);
            let prepared = matmul::prepare(shape, *tile, placement, options.seed);
            (prepared, options)
        }
        Workload::Lu { sizes, options } => {
            let placement = options.placement(Placement::ColumnCyclic);
            let prepared = lu::prepare(sizes, placement, options.seed);
            (prepared, options)
        }
        Workload::Fft { sizes, options } => {
            let placement = options.placement(Placement::Rows);
            let prepared = fft::prepare(sizes, placement, options.seed);
            (prepared, options)
        }
        Workload::Sort { sizes, options } => {
            let prepared = sort::prepare(sizes, options.seed)?;
            (prepared, options)
        }
        Workload::Pagerank { ranking, options } => {
            let product = ranking.product(None, options.seed, false);
            (sparse::prepare(&product, options.format)?, options)
        }
    };
    let (seed, format) = (options.seed, options.format);
    let (lone, computing) = (prepared.alone.take(), prepared.computing);
    let chance = (seed, options.scaling.noise);
    let alone = |machine: &MachineFile| match (workload, &lone) {
        (Workload::Matmul { sizes, tile, .. }, _) => {
            one_node::product(machine, sizes.shape(), *tile, chance).map(Some)
        }
        (Workload::Pagerank { ranking, .. }, _) => {
            let product = ranking.product(None, seed, false);
            let matrix = product.load(None, format, interrupt::listen()?)?;
            let request = WorkloadRequest::Spmv(&product, matrix);
            one_node::divisible(machine, request, options.scaling.noise).map(Some)
        }
        (_, Some(lone)) => one_node::spaces(machine, lone, computing, chance),
        (_, None) => Ok(None),
    };
    predict(&mut prepared, &options.scaling, seed, format, alone)
}

/// A divisible workload on a node of a cluster by itself.
///
/// # Errors
/// As [`one_node::divisible`].
pub fn alone(
    machine: &MachineFile,
    request: WorkloadRequest,
    options: &ScalingOptions,
) -> Result<Option<OneNode>, Failure> {
    one_node::divisible(machine, request, options.noise).map(Some)
}

/// Simulates a workload on each number of nodes, and prints the report.
///
/// # Errors
/// No cluster, one that is not known or wrong, what [`DescribedCluster`] refuses, and what
/// `alone` does: it runs the workload on the first machine by itself, if that has room.
pub fn predict(
    prepared: &mut PreparedWorkload,
    options: &ScalingOptions,
    seed: u64,
    format: Format,
    alone: impl FnOnce(&MachineFile) -> Result<Option<OneNode>, Failure>,
) -> Result<(), Failure> {
    let Some(cluster) = &options.cluster else {
        let name = prepared.workload.name();
        return Err(Failure::usage(
            format!("{name} is predicted on a described cluster, and none is named"),
            "--cluster NAME; `pdawl cluster list` shows them",
        ));
    };
    refuse_launched()?;
    interrupt::listen()?;
    interrupt::end_at_once();
    let file = find(cluster)?;
    let counts = counts(&options.nodes, &file);
    let spread = &options.spread;
    let simulation = Simulation {
        spread,
        noise: options.noise,
        seed,
        traces: false,
    };
    // What is refused for one number of nodes is refused before any is simulated.
    let clusters = counts.iter().map(|count| {
        let described = DescribedCluster::of(&file, *count)?;
        described.fit(prepared)?;
        described.check(prepared).map(|()| described)
    });
    let clusters: Vec<DescribedCluster> = clusters.collect::<Result<_, _>>()?;
    let bar = terminal::progress(format, counts.len() as u64, "numbers of nodes");
    let one = DescribedCluster::of(&file, 1)?;
    one.fit(prepared)?;
    let lone = match (one.check(prepared), one.machines.first()) {
        (Ok(()), Some(machine)) => alone(machine)?,
        _ => None,
    };
    let first = match (lone, clusters.first()) {
        (Some(lone), _) => lone,
        (None, Some(least)) if least.machines.len() > 1 => {
            // What is not the first of the runs is simulated for the speed-ups.
            least.fit(prepared)?;
            OneNode {
                what: format!(
                    "the run on {} nodes, the least of these",
                    least.machines.len()
                ),
                report: least.simulate(prepared, &simulation)?,
                tile: prepared.fitted_tile(),
            }
        }
        _ => {
            return Err(Failure::failed(
                format!(
                    "{}: the memory of one node of {} has no room for it",
                    prepared.size, file.name
                ),
                "a smaller size, or more --nodes",
            ));
        }
    };
    let reference = Reference {
        what: first.what,
        nodes: first.report.nodes.len() as u64,
        seconds: first.report.seconds,
    };
    if let Some(most) = clusters.last() {
        most.fit(prepared)?;
    }
    let context = ScalingContext {
        simulated: true,
        reference,
        workload: prepared.described(prepared.workload.tasks()),
        cluster: file.name.clone(),
        policy: prepared.policy(spread),
        prefetch: spread.prefetch(),
        seed,
        noise: simulation.noise(),
        notes: notes(prepared, &file, counts.last().copied().unwrap_or(0)),
    };
    let print = |text: String| match format {
        Format::Text => bar.suspend(|| terminal::print(&text)),
        Format::Json => Ok(()),
    };
    print(context.heading())?;
    let mut runs = Vec::new();
    for described in &clusters {
        let run = match described.machines.len() == first.report.nodes.len() {
            true => context.run(&first.report, first.tile),
            false => {
                described.fit(prepared)?;
                let report = described.simulate(prepared, &simulation)?;
                context.run(&report, prepared.fitted_tile())
            }
        };
        bar.inc(1);
        print(run.line())?;
        runs.push(run);
    }
    bar.finish_and_clear();
    print(context.ending())?;
    match format {
        Format::Text => Ok(()),
        Format::Json => terminal::print_json(&Printed::from(&ScalingReport { context, runs })),
    }
}

/// The numbers of nodes, ascending, each once.
fn counts(asked: &[u64], file: &ClusterFile) -> Vec<u64> {
    let all = file.count();
    let mut counts = match asked {
        [] => {
            let powers = (0..u64::BITS).map(|exponent| 1 << exponent);
            powers
                .take_while(|power| *power < all)
                .chain([all])
                .collect()
        }
        asked => asked.to_vec(),
    };
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use pdawl::machine::ClusterStore;

    use super::*;

    #[test]
    fn numbers_of_nodes_are_powers_of_two_and_all_or_as_asked() {
        let file = ClusterStore::at("/nonexistent").find("unicorn").unwrap();
        assert_eq!(counts(&[], &file), [1, 2, 4, 8, 10]);
        assert_eq!(counts(&[3, 1, 3], &file), [1, 3]);
        let eight = file.with_nodes(8).unwrap();
        assert_eq!(counts(&[], &eight), [1, 2, 4, 8]);
        assert_eq!(counts(&[], &file.with_nodes(1).unwrap()), [1]);
    }
}
