//! `pdawl model`: models of machines.

use std::path::Path;

use clap::Subcommand;
use pdawl_api::model::ModelStore;
use pdawl_api::model::store::ModelStoreError;
use pdawl_api::report::model::{ListReport, Listed, known, show as show_report};
use pdawl_api::session::this_machine;
use pdawl_profiler::bundle::Bundle;

use crate::args::Format;
use crate::failure::Failure;
use crate::terminal;

mod adapt;
mod check;
mod exchange;

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
    /// Show a model, how it was chosen and how good it is; or what runs took on this machine
    ///
    /// Later runs of a kind begin on the devices on which it was fastest.
    #[command(
        after_help = "Examples:\n  pdawl model show k40\n  pdawl model show k40 --format json\n  \
                      pdawl model show"
    )]
    Show {
        /// As `pdawl model list` shows it, or a file; without it, the runs that were measured
        #[arg(value_name = "NAME|FILE")]
        model: Option<String>,
        /// Text, or JSON as in the file
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
        ModelCommand::Show { model, format } => match model {
            Some(model) => show(&store, model, *format),
            None => show_runs(*format),
        },
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

fn show_runs(format: Format) -> Result<(), Failure> {
    let profiles = this_machine::kept().map_err(Failure::of)?;
    match format {
        Format::Text => terminal::print(&known::render(&profiles.file().runs)),
        Format::Json => {
            let text = serde_json::to_string_pretty(profiles.file()).map_err(Failure::of)?;
            terminal::print(&(text + "\n"))
        }
    }
}

/// A model, what it is called, and where it lies.
pub struct Source {
    pub bundle: Bundle,
    pub name: String,
    pub place: String,
}

impl Source {
    /// The model of this name, or in this file. What has a separator or ends
    /// in `.json` is a file.
    ///
    /// # Errors
    /// An unknown name; a file that cannot be read, or is no whole model of a
    /// version that this program reads.
    pub fn find(store: &ModelStore, text: &str) -> Result<Self, Failure> {
        Self::of(store, text, |name| store.find(name))
    }

    /// The same for a run of this codelet ([`ModelStore::find_for`]).
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_for(store: &ModelStore, text: &str, codelet: &str) -> Result<Self, Failure> {
        Self::of(store, text, |name| store.find_for(name, codelet))
    }

    fn of(
        store: &ModelStore,
        text: &str,
        named: impl Fn(&str) -> Result<Bundle, ModelStoreError>,
    ) -> Result<Self, Failure> {
        if text.contains(std::path::MAIN_SEPARATOR) || text.ends_with(".json") {
            let bundle = Bundle::read(Path::new(text)).map_err(Failure::of)?;
            return Ok(Self {
                name: bundle.name.clone(),
                place: text.to_owned(),
                bundle,
            });
        }
        Ok(Self {
            bundle: named(text).map_err(Failure::of)?,
            name: text.to_owned(),
            place: store.place(text),
        })
    }
}
