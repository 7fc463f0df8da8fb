//! `pdawl cluster`: measures a cluster, and lists and shows cluster files.

mod measure;

use clap::Subcommand;
use pdawl_api::machine::{ClusterFile, ClusterStore};
use pdawl_api::quantity::{Count, Seconds};
use pdawl_api::report::table;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::Format;
use super::cluster::JoinOptions;
use super::failure::Failure;
use super::machine::copy_size;
use super::size::ByteSize;
use super::terminal;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl cluster list\n  pdawl cluster show unicorn\n  \
                  mpirun -n 4 pdawl cluster measure mine\n  pdawl run lu --cluster mine"
)]
pub struct Args {
    #[command(subcommand)]
    what: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// List the clusters that --cluster knows
    #[command(after_help = "Example:\n  pdawl cluster list --format json")]
    List {
        /// How the list is printed
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show a cluster file
    #[command(after_help = "Example:\n  pdawl cluster show unicorn")]
    Show {
        /// A name that `pdawl cluster list` shows, or a file
        #[arg(value_name = "NAME|FILE")]
        name: String,
        /// TOML as in the file, or JSON
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Measure the network between the nodes that mpirun has started, and save a cluster
    /// file
    ///
    /// A node's machine is measured as `pdawl machine save` does, unless a machine file has
    /// its fingerprint. The first node writes all files.
    #[command(after_help = "Example:\n  mpirun -n 4 --map-by node pdawl cluster measure mine")]
    Measure(MeasureArgs),
}

/// How a cluster is measured.
#[derive(Debug, clap::Args)]
struct MeasureArgs {
    /// Letters, digits, `-`, `_` and `.`
    name: String,

    /// Replace the cluster file of this name
    #[arg(long)]
    force: bool,

    /// Size of the largest copies in a machine, much larger than any cache
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = copy_size)]
    copy_size: ByteSize,

    #[command(flatten)]
    join: JoinOptions,

    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let store = ClusterStore::of_user();
    match &args.what {
        ClusterCommand::List { format } => list(&store, *format),
        ClusterCommand::Show { name, format } => {
            let cluster = store.find(name).map_err(Failure::of)?;
            let toml = cluster.to_toml().map_err(Failure::of)?;
            terminal::print_file(*format, &cluster, &toml)
        }
        ClusterCommand::Measure(args) => measure::run(&store, args),
    }
}

/// A cluster in the list.
#[derive(JsonSchema, Serialize)]
pub struct ClusterSummary {
    /// For `--cluster`.
    name: String,
    /// A line about it.
    title: String,
    nodes: u64,
    /// Names of the nodes' machines, each once.
    machines: Vec<String>,
}

/// The known clusters.
#[derive(JsonSchema, Serialize)]
pub struct Listing {
    clusters: Vec<ClusterSummary>,
}

fn list(store: &ClusterStore, format: Format) -> Result<(), Failure> {
    let clusters = terminal::readable(store.names(), |name| store.find(name));
    let clusters: Vec<ClusterFile> = clusters.into_iter().map(|(_, cluster)| cluster).collect();
    let text = list_text(&clusters);
    let entry = |cluster: ClusterFile| ClusterSummary {
        nodes: cluster.count(),
        machines: machines(&cluster),
        name: cluster.name,
        title: cluster.title,
    };
    let listing = Listing {
        clusters: clusters.into_iter().map(entry).collect(),
    };
    terminal::print_report(format, &listing, |_| text)
}

/// The names of unlike machines, sorted.
fn machines(cluster: &ClusterFile) -> Vec<String> {
    let names = cluster.nodes.iter().map(|nodes| nodes.machine.clone());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

fn list_text(clusters: &[ClusterFile]) -> String {
    let header = ["Cluster", "Nodes", "Machines", "Link", "Latency", "Title"];
    let mut table = table::plain(&header, |column| matches!(column, 1 | 3 | 4));
    for cluster in clusters {
        let network = &cluster.network;
        table.add_row(vec![
            cluster.name.clone(),
            cluster.count().to_string(),
            machines(cluster).join(", "),
            Count(network.bandwidth, "B/s").to_string(),
            Seconds(network.latency_ns as f64 * 1e-9).to_string(),
            cluster.title.clone(),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}
