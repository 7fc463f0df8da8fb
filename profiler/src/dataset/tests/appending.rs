use std::fs;
use std::path::PathBuf;

use super::*;
use crate::dataset::{Appender, DatasetError, key, read};
use crate::file_error::FileError;

struct Place {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    Place { folder, path }
}

impl Place {
    fn open(&self) -> Appender {
        Appender::open(&self.path, &provenance()).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }

    fn files(&self) -> usize {
        self.folder.path().read_dir().unwrap().count()
    }
}

#[test]
fn a_file_appears_with_the_first_run_and_is_whole_after_each() {
    let place = place();
    let mut appender = place.open();
    assert_eq!(place.files(), 0);
    for repeat in 0..3 {
        appender.append(&sample("a", repeat)).unwrap();
        let dataset = read(&place.path).unwrap();
        assert_eq!(dataset.samples.len(), repeat as usize + 1);
        assert_eq!(dataset.provenance, provenance());
        assert_eq!(dataset.samples, appender.samples());
    }
    assert_eq!(place.files(), 1);
}

#[test]
fn what_was_measured_is_kept_and_known() {
    let place = place();
    write(&place.path, &dataset()).unwrap();
    let before = place.text();
    let mut appender = place.open();
    assert!(appender.contains(&key(&dataset().samples[1])));
    assert!(!appender.contains(&key(&sample("b", 0))));
    let twice = appender.append(&sample("4096, chunk 64", 1)).unwrap_err();
    assert!(twice.to_string().contains("stands on line 6 already"));
    assert_eq!(place.text(), before);
    appender.append(&sample("b", 0)).unwrap();
    assert!(place.text().starts_with(&before));
    let twice = appender.append(&sample("b", 0)).unwrap_err();
    assert!(twice.to_string().contains("stands on line 7 already"));
}

#[test]
fn a_row_that_was_cut_off_is_dropped_and_said() {
    let place = place();
    write(&place.path, &dataset()).unwrap();
    let whole = place.text();
    let second_last = whole.trim_end().rfind('\n').unwrap() + 1;
    for cut in [second_last + 1, second_last + 20, whole.len() - 1] {
        fs::write(&place.path, &whole[..cut]).unwrap();
        let mut appender = place.open();
        assert_eq!(appender.samples().len(), 1);
        assert_eq!(appender.notes().len(), 1);
        assert!(appender.notes()[0].contains("runs.csv, line 6: was cut off"));
        appender.append(&dataset().samples[1]).unwrap();
        assert_eq!(place.text(), whole);
    }
}

#[test]
fn new_figures_rewrite_the_file_once() {
    let place = place();
    let mut appender = place.open();
    appender.append(&sample("a", 0)).unwrap();
    let before = place.text();
    let mut more = sample("a", 1);
    more.features.insert("known.queues_count".into(), 3.0);
    appender.append(&more).unwrap();
    let rewritten = place.text();
    assert!(!rewritten.starts_with(&before));
    appender.append(&sample("a", 2)).unwrap();
    assert!(place.text().starts_with(&rewritten));
    let dataset = read(&place.path).unwrap();
    assert_eq!(dataset.samples, [sample("a", 0), more, sample("a", 2)]);
    assert_eq!(dataset.provenance, provenance());
    assert_eq!(place.files(), 1);
}

#[test]
fn a_continued_profile_says_where_its_rows_come_from() {
    let place = place();
    place.open().append(&sample("a", 0)).unwrap();
    let before = place.text();
    let mut later = provenance();
    later.add("date", "2026-11-21");
    let mut appender = Appender::open(&place.path, &later).unwrap();
    assert_eq!(place.text(), before);
    appender.append(&sample("a", 1)).unwrap();
    assert_eq!(read(&place.path).unwrap().provenance, later);
    let twice = appender.append(&sample("a", 1)).unwrap_err();
    assert!(twice.to_string().contains("line 7 already"), "{twice}");
}

#[test]
fn a_file_in_another_order_of_columns_keeps_it() {
    let place = place();
    write(&place.path, &dataset()).unwrap();
    let turned = |line: &str| match line.split_once(',') {
        Some((first, rest)) if !line.starts_with('#') => format!("{rest},{first}\n"),
        _ => format!("{line}\n"),
    };
    let text: String = place.text().lines().map(turned).collect();
    fs::write(&place.path, &text).unwrap();
    place.open().append(&sample("b", 0)).unwrap();
    assert!(place.text().starts_with(&text));
    assert_eq!(read(&place.path).unwrap().samples[2], sample("b", 0));
}

#[test]
fn what_is_no_dataset_is_not_touched() {
    let place = place();
    for text in [
        "precious",
        "precious\nlines",
        "# pdawl-samples/1\nhalf",
        "# pdawl-samples/2\n",
    ] {
        fs::write(&place.path, text).unwrap();
        let error = Appender::open(&place.path, &provenance()).unwrap_err();
        assert!(error.to_string().contains("runs.csv"), "{error}");
        assert_eq!(place.text(), text);
    }
    // An empty file, as `mktemp` makes one, has nothing to lose.
    fs::write(&place.path, "").unwrap();
    place.open().append(&sample("a", 0)).unwrap();
    assert_eq!(read(&place.path).unwrap().samples.len(), 1);
}

#[test]
fn runs_that_cannot_be_are_refused_and_leave_the_file_as_it_is() {
    let place = place();
    let mut appender = place.open();
    appender.append(&sample("a", 0)).unwrap();
    let before = place.text();
    let mut wrong = sample("a", 1);
    wrong.seconds = f64::INFINITY;
    assert!(appender.append(&wrong).is_err());
    let mut simulated = sample("a", 1);
    simulated.simulated = true;
    assert!(appender.append(&simulated).is_err());
    assert_eq!(place.text(), before);
    appender.append(&sample("a", 1)).unwrap();
}

#[test]
fn one_program_at_a_time_writes_a_file() {
    let place = place();
    let mut first = place.open();
    first.append(&sample("a", 0)).unwrap();
    let second = Appender::open(&place.path, &provenance());
    assert!(matches!(second, Err(DatasetError::Busy { .. })));
    drop(first);
    assert_eq!(place.open().samples().len(), 1);
}

#[test]
fn a_place_that_cannot_be_written_is_known_before_the_work() {
    let place = place();
    let missing = place.folder.path().join("none/runs.csv");
    assert!(matches!(
        Appender::open(&missing, &provenance()),
        Err(DatasetError::File(FileError::Write { .. }))
    ));
    assert!(Appender::open(place.folder.path(), &provenance()).is_err());
}
