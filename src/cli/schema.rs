//! `pdawl schema`: the JSON Schemas of what the program prints and keeps, made from the types
//! that are printed.

use pdawl_api::machine::{ClusterFile, MachineFile, cluster, file};
use pdawl_api::profile::kernels::{self, KernelsFile};
use pdawl_api::report::exec::{self, ExecReport};
use pdawl_api::report::matrix::MatrixReport;
use pdawl_api::report::model::{AdaptReport, CheckReport, ListReport};
use pdawl_api::report::prediction::PredictionReport;
use pdawl_api::report::profile::ProfileReport;
use pdawl_api::report::spec::SpecReport;
use pdawl_api::report::training::TrainingReport;
use pdawl_api::report::{Bench, Printed, Report, Schematic, table};
use pdawl_profiler::bundle::{self, Bundle};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

use super::args::Format;
use super::failure::Failure;
use super::saved_report::SavedReport;
use super::spec::{infer, show};
use super::{clusters, devices, machine, terminal, ui};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl schema\n  pdawl schema pdawl-report/2")]
pub struct Args {
    /// The schema to print [default: a list of all]
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// How the list is printed; a schema is JSON
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The schemas that there are. `pdawl schema NAME` prints one.
#[derive(JsonSchema, Serialize)]
struct Listing {
    schemas: Vec<SchemaEntry>,
}

/// A schema.
#[derive(JsonSchema, Serialize)]
struct SchemaEntry {
    name: &'static str,
    /// The commands of `pdawl` that print such JSON, or what the file is.
    printed_by: &'static str,
    #[serde(skip)]
    schema: fn() -> Schema,
}

/// A file of a model.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is only described; `Bundle` writes files")]
struct ModelFile {
    /// Name and version of the schema.
    format: String,
    /// SHA-256 of everything else, with sorted keys and without whitespace.
    checksum: String,
    #[serde(flatten)]
    bundle: Bundle,
}

impl Schematic for infer::Report {
    const SCHEMA: &'static str = "pdawl-infer/1";
}

impl Schematic for show::Report {
    const SCHEMA: &'static str = "pdawl-drawing/1";
}

impl Schematic for devices::Listing {
    const SCHEMA: &'static str = "pdawl-devices/1";
}

impl Schematic for machine::Listing {
    const SCHEMA: &'static str = "pdawl-machines/1";
}

impl Schematic for clusters::Listing {
    const SCHEMA: &'static str = "pdawl-clusters/1";
}

impl Schematic for ui::Served {
    const SCHEMA: &'static str = "pdawl-served/1";
}

impl Schematic for SavedReport<'_> {
    const SCHEMA: &'static str = "pdawl-saved/1";
}

impl Schematic for Listing {
    const SCHEMA: &'static str = "pdawl-schemas/1";
}

impl SchemaEntry {
    /// The schema of a report.
    fn of<T: Schematic>(printed_by: &'static str) -> Self {
        Self {
            name: T::SCHEMA,
            printed_by,
            schema: || described::<T>(made::<Printed<'_, T>>()),
        }
    }

    /// The schema of a file.
    fn file<T: JsonSchema>(name: &'static str, printed_by: &'static str) -> Self {
        Self {
            name,
            printed_by,
            schema: made::<T>,
        }
    }
}

/// The schema of what a type is written as.
fn made<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// A report's schema with the description of its type, and a version if it has one.
fn described<T: Schematic>(mut schema: Schema) -> Schema {
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    if let (Some(required), Some(_)) = (required, T::VERSION) {
        required.insert(1, "version".into());
    }
    if let Some(description) = made::<T>().get("description") {
        schema.insert("description".to_owned(), description.clone());
    }
    schema
}

fn all() -> Vec<SchemaEntry> {
    vec![
        SchemaEntry::of::<Report>("run"),
        SchemaEntry::of::<Bench>("bench"),
        SchemaEntry::file::<ExecReport>(exec::FORMAT, "exec, on standard error or in --report"),
        SchemaEntry::file::<KernelsFile>(
            kernels::FORMAT,
            "the file that exec and runs keep, model show",
        ),
        SchemaEntry::of::<PredictionReport>("predict"),
        SchemaEntry::of::<ProfileReport>("profile"),
        SchemaEntry::of::<TrainingReport>("train"),
        SchemaEntry::of::<ListReport>("model list"),
        SchemaEntry::file::<ModelFile>(bundle::FORMAT, "model show: the model file"),
        SchemaEntry::of::<CheckReport>("model check"),
        SchemaEntry::of::<AdaptReport>("model adapt"),
        SchemaEntry::of::<MatrixReport>("matrix stats, matrix generate"),
        SchemaEntry::of::<SpecReport>("spec check"),
        SchemaEntry::of::<infer::Report>("spec infer"),
        SchemaEntry::of::<show::Report>("graph show"),
        SchemaEntry::of::<devices::Listing>("devices"),
        SchemaEntry::of::<machine::Listing>("machine list"),
        SchemaEntry::file::<MachineFile>(file::FORMAT, "machine show: the machine file"),
        SchemaEntry::of::<clusters::Listing>("cluster list"),
        SchemaEntry::of::<ui::Served>("ui"),
        SchemaEntry::file::<ClusterFile>(cluster::FORMAT, "cluster show: the cluster file"),
        SchemaEntry::of::<SavedReport<'_>>(
            "machine save, cluster measure, model export, model import, chart",
        ),
        SchemaEntry::of::<Listing>("schema"),
    ]
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let listing = Listing { schemas: all() };
    let Some(name) = &args.name else {
        return terminal::print_report(args.format, &listing, list_text);
    };
    let Some(entry) = listing.schemas.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = listing.schemas.iter().map(|entry| entry.name).collect();
        return Err(Failure::usage(
            format!("there is no schema {name}"),
            format!("one of {}", names.join(", ")),
        ));
    };
    let mut schema = (entry.schema)();
    schema.insert("title".to_owned(), entry.name.into());
    // A report has its name in `schema`, a file in `format`.
    let members = ["/properties/schema", "/properties/format"];
    let member = members
        .into_iter()
        .find(|member| schema.pointer(member).is_some());
    let member = member.and_then(|member| schema.pointer_mut(member));
    if let Some(member) = member.and_then(Value::as_object_mut) {
        member.insert("const".to_owned(), entry.name.into());
    }
    terminal::print_json(&schema)
}

fn list_text(listing: &Listing) -> String {
    let mut rows = table::plain(&["Schema", "Printed by"], |_| false);
    for entry in &listing.schemas {
        rows.add_row(vec![entry.name, entry.printed_by]);
    }
    format!("{}\n", rows.trim_fmt())
}
