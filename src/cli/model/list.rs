//! `pdawl model list` and `show`.

use pdawl::model::ModelStore;
use pdawl::report::model::list::{ListReport, Listed};
use pdawl::report::model::show;

use super::Source;
use crate::args::Format;
use crate::failure::Failure;
use crate::terminal;

pub fn list(store: &ModelStore, format: Format) -> Result<(), Failure> {
    let models = terminal::readable(store.names(), |name| store.find(name)).into_iter();
    let listed = |(name, bundle): (String, _)| Listed::of(&name, !store.is_own(&name), &bundle);
    let report = ListReport {
        models: models.map(listed).collect(),
    };
    terminal::print_report(format, &report, |report| report.render())
}

pub fn show(store: &ModelStore, model: &str, format: Format) -> Result<(), Failure> {
    let Source {
        bundle,
        name,
        place,
    } = Source::find(store, model)?;
    match format {
        Format::Text => terminal::print(&show::render(&bundle, &name, &place)),
        Format::Json => terminal::print(&bundle.to_text().map_err(Failure::of)?),
    }
}
