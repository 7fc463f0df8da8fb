//! A model that is named by its name or by its file.

use std::path::Path;

use pdawl::model::ModelStore;
use pdawl::model::store::ModelStoreError;
use pdawl_profiler::bundle::Bundle;

use crate::failure::Failure;

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
