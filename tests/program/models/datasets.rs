//! Datasets that training and checking refuse: malformed files, and files of
//! another machine.

use std::fs;
use std::path::Path;

use pdawl_profiler::dataset::{self, Dataset, Provenance};

use super::{refuses, with_model};
use crate::synthetic_models::{machine, samples};

/// Writes a small dataset of synthetic runs, one of which takes 0.123456 seconds.
fn some_runs(path: &Path) {
    let machine = machine("k40");
    let mut samples = samples(&machine, |_| 1.0);
    samples.truncate(30);
    samples[3].seconds = 0.123456;
    let provenance = Provenance::default();
    dataset::write(
        path,
        &Dataset {
            provenance,
            samples,
        },
    )
    .unwrap();
}

#[test]
fn datasets_that_are_none_are_reported_by_line() {
    let home = with_model();
    let path = home.path("runs.csv");
    some_runs(&path);
    let whole = fs::read_to_string(&path).unwrap();
    let row = whole
        .lines()
        .find(|line| line.contains("0.123456"))
        .unwrap();
    for (changed, words) in [
        (whole[..whole.len() - 40].to_owned(), vec!["runs.csv, line"]),
        (
            whole.replace(row, &row.replace("0.123456", "-1")),
            vec!["line 6", "`seconds`", "`-1`"],
        ),
        (
            whole.replacen("samples/1", "samples/2", 1),
            vec!["newer", "pdawl-samples/2", "update pdawl"],
        ),
        (
            whole.replacen("# pdawl-samples/1", "# other/1", 1),
            vec!["line 1", "# pdawl-samples/1"],
        ),
        (
            whole.replace(row, &format!("{row}\n{row}")),
            vec!["line 7", "stands on line 6 already"],
        ),
        ("{}".to_owned(), vec!["line 1"]),
        (String::new(), vec!["is empty"]),
    ] {
        fs::write(&path, changed).unwrap();
        refuses(&home, "train --dataset runs.csv", &words);
        refuses(&home, "model check k40 --dataset runs.csv", &words);
    }
    refuses(
        &home,
        "train --dataset none.csv",
        &["none.csv", "cannot be read"],
    );
    some_runs(&path);
    refuses(
        &home,
        "train --dataset runs.csv --machine titan",
        &["a run of `k40`", "`titan`"],
    );
}
