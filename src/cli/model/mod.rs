//! `pdawl model`: models of machines.

mod adapt;
mod check;
mod exchange;
mod source;

use clap::Subcommand;
use pdawl::model::ModelStore;
use pdawl::report::model::show as show_report;
use pdawl::report::model::{ListReport, Listed};

use super::args::Format;
use super::failure::Failure;
use super::terminal;

pub use source::Source;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl model list\n  pdawl model show k40\n  \
                  pdawl model export k40 k40.json\n  pdawl model import k40.json --name lab\n  \
                  pdawl model check k40 --dataset held.csv\n  \
                  pdawl model adapt k20-32 --machine k40 --runs 8"
)]
pub struct Args {
    #[command(subcommand)]
    what: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// List the models that there are
    #[command(after_help = "Example:\n  pdawl model list")]
    List {
        /// How the list is printed
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show a model, how it was chosen and how good it is
    #[command(
        after_help = "Examples:\n  pdawl model show k40\n  pdawl model show k40 --format json"
    )]
    Show {
        /// As `pdawl model list` shows it, or a file
        #[arg(value_name = "NAME|FILE")]
        model: String,
        /// Text, or JSON as in the model's file
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Write a model to a file, to take it to another machine
    #[command(after_help = "Example:\n  pdawl model export k40 k40.json")]
    Export(exchange::Export),
    /// Keep a model from a file, after checking it
    #[command(after_help = "Examples:\n  pdawl model import k40.json\n  \
                            pdawl model import k40.json --name lab --force")]
    Import(exchange::Import),
    /// Check that a model is whole and fits a machine, and how well it predicts
    /// runs that it has not learned
    #[command(
        after_help = "Examples:\n  pdawl model check k40\n  pdawl model check ./k40.json --machine k40\n  \
                      pdawl profile stencil --machine k40 --sizes 3000,9000 --out held.csv\n  \
                      pdawl model check k40 --dataset held.csv"
    )]
    Check(check::Args),
    /// Correct another machine's model by a few runs of this one
    ///
    /// The runs are chosen where they tell most. The corrected model is kept
    /// beside the foreign one.
    #[command(after_help = "Examples:\n  pdawl model adapt lab.json\n  \
                            pdawl model adapt k20-32 --machine k40 --runs 8")]
    Adapt(adapt::Args),
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let store = ModelStore::of_user();
    match &args.what {
        ModelCommand::List { format } => list(&store, *format),
        ModelCommand::Show { model, format } => show(&store, model, *format),
        ModelCommand::Export(args) => exchange::export(&store, args),
        ModelCommand::Import(args) => exchange::import(&store, args),
        ModelCommand::Check(args) => check::run(&store, args),
        ModelCommand::Adapt(args) => adapt::run(&store, args),
    }
}

fn list(store: &ModelStore, format: Format) -> Result<(), Failure> {
    let models = terminal::readable(store.names(), |name| store.find(name)).into_iter();
    let listed = |(name, bundle): (String, _)| Listed::of(&name, !store.is_own(&name), &bundle);
    let report = ListReport {
        models: models.map(listed).collect(),
    };
    terminal::print_report(format, &report, |report| report.render())
}

fn show(store: &ModelStore, model: &str, format: Format) -> Result<(), Failure> {
    let Source {
        bundle,
        name,
        place,
    } = Source::find(store, model)?;
    match format {
        Format::Text => terminal::print(&show_report::render(&bundle, &name, &place)),
        Format::Json => terminal::print(&bundle.to_text().map_err(Failure::of)?),
    }
}
