use crate::dataset::row::Column;
use crate::dataset::{FORMAT, Group, IDENTITY, UNITS, parse};

/// The columns that docs/datasets.md lists: name and unit.
fn documented() -> (String, Vec<(String, String)>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/datasets.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| {
            let (name, rest) = row.split_once("` | ")?;
            let (unit, _) = rest.split_once(" |")?;
            Some((name.to_owned(), unit.to_owned()))
        })
        .collect();
    (text, rows)
}

#[test]
fn every_documented_column_is_one() {
    let (text, rows) = documented();
    assert!(text.contains(FORMAT));
    let mut features = 0;
    for (name, unit) in rows.iter().filter(|(name, _)| name.contains('.')) {
        match Column::parse(name) {
            Ok(Column::Feature(feature)) => assert_eq!(feature.unit(), unit, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        features += 1;
    }
    assert!(features > 70, "{features}");
    for column in IDENTITY {
        assert!(rows.iter().any(|(name, _)| name == column), "{column}");
    }
}

#[test]
fn every_group_and_unit_is_documented() {
    let (text, _) = documented();
    for name in Group::ALL.map(Group::name).iter().chain(&UNITS) {
        assert!(text.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn the_documented_example_is_a_dataset() {
    let (text, _) = documented();
    let (_, example) = text.split_once("```text\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let dataset = parse(example.as_bytes(), "docs/datasets.md").unwrap();
    assert_eq!(dataset.samples.len(), 2);
    assert_eq!(dataset.provenance.pairs().len(), 3);
}
