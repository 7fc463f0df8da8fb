//! Which ranks have the same machine, and who measures it.

use serde::{Deserialize, Serialize};

use crate::machine::MachineFile;

/// What a rank tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Introduced {
    pub host: String,
    pub fingerprint: String,
    /// The file that its user has of the machine.
    pub file: Option<Box<MachineFile>>,
}

/// Ranks whose machines have the same fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub fingerprint: String,
    /// Of one of them. Without one, [`Self::first`] measures.
    pub file: Option<Box<MachineFile>>,
    /// The first rank of them.
    pub first: usize,
}

/// The kinds of machines in the order of their first ranks, and each rank's kind. A file
/// that rank 0 knows comes before those of other ranks.
pub(super) fn kinds(
    ranks: &[Introduced],
    known: impl Fn(&str) -> Option<MachineFile>,
) -> (Vec<Kind>, Vec<usize>) {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut of_rank = Vec::new();
    for (first, rank) in ranks.iter().enumerate() {
        let same = |kind: &Kind| kind.fingerprint == rank.fingerprint;
        let place = kinds.iter().position(same).unwrap_or_else(|| {
            kinds.push(Kind {
                fingerprint: rank.fingerprint.clone(),
                file: known(&rank.fingerprint).map(Box::new),
                first,
            });
            kinds.len() - 1
        });
        let kind = &mut kinds[place];
        if kind.file.is_none() {
            kind.file.clone_from(&rank.file);
        }
        of_rank.push(place);
    }
    (kinds, of_rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineStore;

    fn file(name: &str) -> MachineFile {
        let store = MachineStore::at("/nonexistent");
        let mut file = store.find("k40").unwrap();
        file.name = name.to_owned();
        file
    }

    #[test]
    fn equal_machines_are_measured_once_and_files_are_used() {
        let rank = |fingerprint: &str, own: Option<&str>| Introduced {
            host: "host".to_owned(),
            fingerprint: fingerprint.to_owned(),
            file: own.map(|name| Box::new(file(name))),
        };
        let ranks = [
            rank("a", None),
            rank("b", None),
            rank("c", Some("of-2")),
            rank("b", Some("of-3")),
            rank("a", None),
            rank("c", Some("of-5")),
        ];
        let known = |fingerprint: &str| (fingerprint == "c").then(|| file("of-0"));
        let (kinds, of_rank) = kinds(&ranks, known);
        assert_eq!(of_rank, [0, 1, 2, 1, 0, 2]);
        let names: Vec<_> = kinds
            .iter()
            .map(|kind| {
                (
                    kind.first,
                    kind.file.as_ref().map(|file| file.name.as_str()),
                )
            })
            .collect();
        assert_eq!(names, [(0, None), (1, Some("of-3")), (2, Some("of-0"))]);
    }
}
