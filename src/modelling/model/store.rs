//! The store of models: the user's directory, then the models that ship with the
//! program; and where the runs are kept that models learn from.

use std::cmp::Reverse;
use std::path::PathBuf;

use pdawl_profiler::bundle::{Bundle, BundleError};
use thiserror::Error;

use crate::file_store::{FileStore, StoreError, StoreKind, StoredFile};

static MODELS: StoreKind = StoreKind {
    what: "model",
    variable: "PDAWL_MODELS",
    folder: "models",
    ending: "json",
    shipped: &[
        ("k20-32", include_str!("../../../models/k20-32.json")),
        ("k20-40", include_str!("../../../models/k20-40.json")),
        ("k40", include_str!("../../../models/k40.json")),
        ("titan", include_str!("../../../models/titan.json")),
    ],
    remedy: "Make one with `pdawl train --machine NAME`, or get one with `pdawl model import \
             FILE`",
    instead: "",
};

/// The models that can be found by name.
#[derive(Clone, Debug)]
pub struct ModelStore {
    files: FileStore,
}

/// The errors of the store of models.
#[derive(Debug, Error)]
pub enum ModelStoreError {
    #[error(transparent)]
    Store(#[from] StoreError),

    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// The machine and codelet that a model is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelQuery<'a> {
    pub machine: &'a str,
    /// Of the machine's file, or of this machine.
    pub fingerprint: Option<&'a str>,
    /// Whether it is simulated.
    pub simulated: bool,
    /// What is to be computed, if that is known.
    pub codelet: Option<&'a str>,
}

/// The result of a search for a machine's model.
#[derive(Debug, Default)]
pub struct ModelSearch {
    pub bundle: Option<Bundle>,
    /// Files that could not be read on the way, for a warning.
    pub broken: Vec<BundleError>,
}

impl ModelStore {
    /// The user's store: `$PDAWL_MODELS`, else `$XDG_CONFIG_HOME/pdawl/models`,
    /// else `~/.config/pdawl/models`, before the shipped models.
    pub fn of_user() -> Self {
        Self {
            files: FileStore::of_user(&MODELS),
        }
    }

    /// A store with this directory before the shipped models.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            files: FileStore::at(&MODELS, directory),
        }
    }

    /// The names of all models, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        self.files.names()
    }

    /// Whether the model of this name is the user's own, not a shipped one.
    pub fn is_own(&self, name: &str) -> bool {
        matches!(self.files.get(name), Some(StoredFile::File(_)))
    }

    /// The model of this name. A user's hides a shipped one.
    ///
    /// # Errors
    /// An unknown name, with the known ones; a file that cannot be read or is
    /// wrong.
    pub fn find(&self, name: &str) -> Result<Bundle, ModelStoreError> {
        let found = self.files.find(name)?;
        Ok(self.read(name, found)?)
    }

    /// The model of this name for a codelet: a user's hides a shipped one unless that alone has
    /// learned the codelet.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_for(&self, name: &str, codelet: &str) -> Result<Bundle, ModelStoreError> {
        let found = self.find(name)?;
        if kinds(&found, codelet) > 0 {
            return Ok(found);
        }
        let mut all = self.files.all().into_iter();
        let shipped =
            all.find(|(each, file)| each == name && matches!(file, StoredFile::Shipped(_)));
        let shipped = shipped.and_then(|(_, file)| self.read(name, file).ok());
        Ok(shipped
            .filter(|shipped| kinds(shipped, codelet) > 0)
            .unwrap_or(found))
    }

    /// The best model for a machine among those that were trained on it or adapted to
    /// it.
    ///
    /// A model fits if it names the machine or has its fingerprint, and has no
    /// other fingerprint. Among several, one that has learned the codelet goes
    /// before others, one of the same kind of times (simulated or measured), one that has
    /// learned it on more kinds of devices, a user's before shipped ones, one that was trained
    /// on the machine before adapted ones, and one that is called like the machine before
    /// other names.
    pub fn for_machine(&self, wanted: ModelQuery) -> ModelSearch {
        let mut search = ModelSearch::default();
        let mut best = None;
        for (name, found) in self.files.all() {
            let shipped = matches!(found, StoredFile::Shipped(_));
            // Shipped models are called like their machines.
            if shipped && name != wanted.machine {
                continue;
            }
            match self.read(&name, found) {
                Ok(bundle) if fits(&bundle, wanted) => {
                    let kinds = wanted.codelet.map_or(1, |codelet| kinds(&bundle, codelet));
                    let rank = (
                        kinds == 0,
                        bundle.simulated != wanted.simulated,
                        Reverse(kinds),
                        shipped,
                        bundle.adapted.is_some(),
                        name != wanted.machine,
                    );
                    if best.is_none_or(|best| rank < best) {
                        best = Some(rank);
                        search.bundle = Some(bundle);
                    }
                }
                Ok(_) => {}
                Err(error) => search.broken.push(error),
            }
        }
        search
    }

    /// Saves a model under its name, and returns the file's path. The user's
    /// model of a name hides the shipped one.
    ///
    /// # Errors
    /// A name that no file can have; a directory that cannot be written.
    pub fn save(&self, bundle: &Bundle) -> Result<PathBuf, ModelStoreError> {
        let path = self.files.path_to_write(&bundle.name)?;
        bundle.write(&path)?;
        Ok(path)
    }

    /// Where a model of this name lies, or would lie.
    ///
    /// # Errors
    /// A name that no file can have; no directory.
    pub fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        self.files.path(name)
    }

    /// The location of a model, for people.
    pub fn place(&self, name: &str) -> String {
        match self.files.get(name) {
            Some(StoredFile::File(path)) => path.display().to_string(),
            Some(StoredFile::Shipped(_)) => "the program, with which it ships".to_owned(),
            None => self.files.place(),
        }
    }

    fn read(&self, name: &str, found: StoredFile) -> Result<Bundle, BundleError> {
        match found {
            StoredFile::File(path) => Bundle::read(&path),
            StoredFile::Shipped(text) => {
                Bundle::parse(text, &format!("{} (shipped)", self.files.file(name)))
            }
        }
    }
}

/// On how many kinds of devices a model has learned a codelet.
fn kinds(bundle: &Bundle, codelet: &str) -> usize {
    let entries = bundle.models.iter();
    entries.filter(|entry| entry.codelet == codelet).count()
}

/// Whether a model is of a machine: it has its fingerprint, or where one of
/// both has none, names it.
pub fn fits(bundle: &Bundle, wanted: ModelQuery) -> bool {
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    match (&bundle.fingerprint, wanted.fingerprint) {
        (Some(of_model), Some(of_machine)) => words(of_model) == words(of_machine),
        _ => bundle.machine == wanted.machine,
    }
}

static DATASETS: StoreKind = StoreKind {
    what: "dataset",
    variable: "PDAWL_DATASETS",
    folder: "datasets",
    ending: "csv",
    shipped: &[],
    remedy: "Make one with `pdawl profile`",
    instead: "--out FILE, or ",
};

/// Where the user's runs of a machine are kept, whether there are any or not: in
/// `$PDAWL_DATASETS`, else `$XDG_CONFIG_HOME/pdawl/datasets`, else
/// `~/.config/pdawl/datasets`.
///
/// # Errors
/// A name that no file can have; no directory.
pub fn dataset(machine: &str) -> Result<PathBuf, StoreError> {
    FileStore::of_user(&DATASETS).path(machine)
}

/// As [`dataset`], and makes the directory.
///
/// # Errors
/// As [`dataset`], and a directory that cannot be made.
pub fn dataset_to_write(machine: &str) -> Result<PathBuf, StoreError> {
    FileStore::of_user(&DATASETS).path_to_write(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::training::fixtures::{machine, model, samples};

    fn bundle() -> Bundle {
        let machine = machine("k40");
        model("mine", &machine, &samples(&machine))
    }

    fn wanted(machine: &str) -> ModelQuery<'_> {
        ModelQuery {
            codelet: None,
            machine,
            fingerprint: None,
            simulated: true,
        }
    }

    #[test]
    fn every_shipped_model_is_whole_and_is_its_machines() {
        let store = ModelStore::at("/nonexistent");
        assert!(store.names().len() >= 4);
        for name in store.names() {
            let bundle = store.find(&name).expect("a shipped model is right");
            assert!(!store.is_own(&name));
            assert_eq!(bundle.name, name);
            let machine = machine(&bundle.machine);
            let described = serde_json::to_value(&machine).unwrap();
            assert_eq!(bundle.machine_file, described, "{name}: trained on another");
            let wanted = ModelQuery {
                machine: &machine.name,
                fingerprint: machine.fingerprint.as_deref(),
                simulated: bundle.simulated,
                codelet: bundle.models.first().map(|entry| entry.codelet.as_str()),
            };
            assert_eq!(store.for_machine(wanted).bundle, Some(bundle.clone()));
            let keys: Vec<&str> = bundle
                .provenance
                .pairs()
                .iter()
                .map(|p| p.0.as_str())
                .collect();
            for key in ["hardware", "date", "command", "trained by"] {
                assert!(keys.contains(&key), "{name} says its {key}");
            }
            for codelet in [
                "stencil5-f64",
                "stencil5-f32",
                "stencil7-f64",
                "stencil7-f32",
                "spmv-f64",
            ] {
                assert_good(&bundle, codelet, 0.06);
            }
        }
    }

    /// Whether a model beats the baselines on both kinds of devices, and is at
    /// most so far off in its validation.
    fn assert_good(bundle: &Bundle, codelet: &str, most: f64) {
        for kind in ["cpu", "gpu"] {
            let entry = bundle.find(kind, codelet).expect("both kinds");
            let chosen = entry.validation.chosen().expect("a choice").accuracy.mape;
            assert!(chosen < most, "{} on {kind}: {chosen}", bundle.name);
            for baseline in entry
                .validation
                .baselines
                .iter()
                .filter(|b| b.name != "prior")
            {
                let is_beaten = baseline.accuracy.mape > chosen;
                assert!(is_beaten, "{} on {kind}: {}", bundle.name, baseline.name);
            }
        }
    }

    #[test]
    fn models_of_a_measured_machine_can_be_imported() {
        for (name, codelet) in [("h200", "stencil5-f64"), ("h200-spmv", "spmv-f64")] {
            let file = format!("{}/../../models/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let bundle = Bundle::read(file.as_ref()).expect("a model");
            assert!(!bundle.simulated);
            // Single runs of a machine that others share are as far off.
            assert_good(&bundle, codelet, 0.2);
        }
    }

    #[test]
    fn saving_and_finding_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModelStore::at(folder.path().join("deep"));
        let mut bundle = bundle();
        let path = store.save(&bundle).unwrap();
        assert_eq!(Bundle::read(&path).unwrap(), bundle);
        assert_eq!(store.find("mine").unwrap(), bundle);
        assert!(store.names().contains(&"mine".to_owned()));
        assert!(store.is_own("mine"));

        let message = store.find("none").unwrap_err().to_string();
        for word in [
            "`none`",
            "known are",
            "mine",
            "pdawl train",
            "pdawl model import",
        ] {
            assert!(message.contains(word), "no {word:?} in {message}");
        }
        for odd in ["", "../mine", ".hidden", "a/b"] {
            bundle.name = odd.into();
            assert!(store.save(&bundle).is_err(), "{odd:?} names a file");
            assert!(store.find(odd).is_err(), "{odd:?} is looked for");
        }
        let blocked = ModelStore::at(path.join("below a file"));
        bundle.name = "mine".into();
        let message = blocked.save(&bundle).unwrap_err().to_string();
        assert!(message.contains("PDAWL_MODELS"), "{message}");
    }

    #[test]
    fn the_model_that_fits_best_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModelStore::at(folder.path());
        let name = |search: &ModelSearch| search.bundle.as_ref().map(|b| b.name.clone());
        let save = |name: &str, change: &dyn Fn(&mut Bundle)| {
            let mut bundle = bundle();
            bundle.name = name.into();
            bundle.machine = "lab".into();
            change(&mut bundle);
            store.save(&bundle).unwrap();
        };
        assert_eq!(name(&store.for_machine(wanted("lab"))), None);
        save("adapted", &|bundle| {
            bundle.adapted = Some(pdawl_profiler::bundle::Adapted {
                machine: "k40".into(),
                checksum: "0".repeat(64),
                runs: 8,
            });
        });
        assert_eq!(
            name(&store.for_machine(wanted("lab"))),
            Some("adapted".into())
        );
        save("another", &|_| {});
        assert_eq!(
            name(&store.for_machine(wanted("lab"))),
            Some("another".into())
        );
        save("lab", &|_| {});
        assert_eq!(name(&store.for_machine(wanted("lab"))), Some("lab".into()));
        save("measured", &|bundle| bundle.simulated = false);
        assert_eq!(name(&store.for_machine(wanted("lab"))), Some("lab".into()));
        let real = ModelQuery {
            simulated: false,
            ..wanted("lab")
        };
        assert_eq!(name(&store.for_machine(real)), Some("measured".into()));
        save("products", &|bundle| {
            for entry in &mut bundle.models {
                entry.codelet = "spmv-f64".into();
            }
        });
        for (codelet, found) in [("spmv-f64", "products"), ("unheard-of", "lab")] {
            let about = ModelQuery {
                codelet: Some(codelet),
                ..wanted("lab")
            };
            assert_eq!(name(&store.for_machine(about)), Some(found.into()));
        }
    }

    #[test]
    fn a_model_hides_only_what_it_has_learned() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModelStore::at(folder.path());
        // The user's model of a shipped machine knows one stencil, on one kind of device only.
        let mut own = Bundle {
            name: "k40".into(),
            ..bundle()
        };
        let stencil = own.models[0].codelet.clone();
        own.models.truncate(1);
        store.save(&own).unwrap();
        let found = |codelet| {
            let about = ModelQuery {
                codelet: Some(codelet),
                ..wanted("k40")
            };
            store.for_machine(about).bundle.unwrap()
        };
        for codelet in ["spmv-f64", "stencil7-f32", &stencil] {
            assert!(kinds(&found(codelet), codelet) == 2, "{codelet}");
        }
        assert_eq!(
            kinds(&store.find_for("k40", "spmv-f64").unwrap(), "spmv-f64"),
            2
        );
        for codelet in [&stencil, "unheard-of"] {
            assert!(store.find_for("k40", codelet).unwrap() == own, "{codelet}");
        }
        assert!(found("unheard-of") == own);
        // Another one knows both kinds.
        let mut gpu = own.models[0].clone();
        gpu.kind = "gpu".into();
        own.models.push(gpu);
        store.save(&own).unwrap();
        assert!(found(&stencil) == own);
    }

    #[test]
    fn a_fingerprint_says_more_than_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModelStore::at(folder.path());
        let mut bundle = bundle();
        bundle.machine = "lab".into();
        bundle.fingerprint = Some("Some CPU x2".into());
        store.save(&bundle).unwrap();
        std::fs::write(folder.path().join("broken.json"), "{").unwrap();
        let found = |machine, fingerprint| {
            let wanted = ModelQuery {
                fingerprint,
                ..wanted(machine)
            };
            let search = store.for_machine(wanted);
            assert_eq!(search.broken.len(), 1, "a broken file hides no other");
            search.bundle.is_some()
        };
        assert!(found("renamed", Some("Some  CPU x2")));
        assert!(!found("lab", Some("Other CPU x2")));
        assert!(found("lab", None));
    }
}
