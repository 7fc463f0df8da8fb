//! `pdawl model export` and `import`: models travel as files.

use std::path::{Path, PathBuf};

use pdawl_api::machine::StoreError;
use pdawl_api::model::ModelStore;
use pdawl_profiler::bundle::Bundle;

use crate::args::Format;
use crate::failure::Failure;
use crate::saved_report::SavedReport;

#[derive(Debug, clap::Args)]
pub struct Export {
    /// As `pdawl model list` shows it
    name: String,
    /// The file to write
    file: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    /// How it is given
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub struct Import {
    /// A file that `pdawl model export` wrote
    file: PathBuf,
    /// What to call it [default: as it is called in the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Replace the model of this name if there is one
    #[arg(long)]
    force: bool,
    /// How it is given
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn export(store: &ModelStore, args: &Export) -> Result<(), Failure> {
    let bundle = store.find(&args.name).map_err(Failure::of)?;
    vacant(&args.file, args.force)?;
    bundle.write(&args.file).map_err(Failure::of)?;
    let words = format!("{} written to {}\n", args.name, args.file.display());
    saved(&bundle, &args.name, &args.file).print(args.format, &words)
}

pub fn import(store: &ModelStore, args: &Import) -> Result<(), Failure> {
    let mut bundle = Bundle::read(&args.file).map_err(Failure::of)?;
    if let Some(name) = &args.name {
        bundle.name.clone_from(name);
    }
    let path = store.path(&bundle.name).map_err(|error| match error {
        // The file's own name may be none that a file can have.
        StoreError::Name { .. } if args.name.is_none() => {
            Failure::failed(error, "--name NAME, to call it otherwise")
        }
        error => Failure::of(error),
    })?;
    vacant(&path, args.force)?;
    store.save(&bundle).map_err(Failure::of)?;
    let words = format!(
        "{} of {}{} kept in {}\n",
        bundle.name,
        bundle.machine,
        if bundle.simulated { " (simulated)" } else { "" },
        path.display()
    );
    saved(&bundle, &bundle.name, &path).print(args.format, &words)
}

fn saved<'a>(bundle: &'a Bundle, name: &'a str, file: &'a Path) -> SavedReport<'a> {
    SavedReport {
        kind: "model",
        name,
        machine: &bundle.machine,
        simulated: bundle.simulated,
        file,
    }
}

/// Whether a file may be written there.
fn vacant(path: &Path, force: bool) -> Result<(), Failure> {
    // Only files are replaced; writing to anything else fails with its own message.
    if force || !path.exists() || path.is_dir() {
        return Ok(());
    }
    Err(Failure::failed(
        format!("{} is there already, and was left as it is", path.display()),
        "--force to replace it, or another name",
    ))
}
