//! Tests of whole Matrix Market files: written files can be read, and errors name
//! their line.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::matrix::MatrixError;
use crate::matrix::control::quietly;
use crate::matrix::csr::Csr;
use crate::matrix::fixtures::{bits, matrices};

fn read_bytes(bytes: &[u8], memory: Option<u64>) -> Result<Csr, MatrixError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    quietly(|control| read(file.path(), memory, control)).map(|market| market.csr)
}

/// The error of a text, after the file's name.
fn error(text: &str) -> String {
    let error = read_bytes(text.as_bytes(), None).unwrap_err().to_string();
    error
        .split_once(", ")
        .map_or(error.clone(), |(_, rest)| rest.to_owned())
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn all_forms_of_a_file_have_the_same_matrix() {
    let general = "%%MatrixMarket matrix coordinate real general\n3 3 5\n\
                   3 3 9\n1 1 1\n2 1 4\n1 2 4\n3 3 -2\n";
    let symmetric = "%%MatrixMarket matrix coordinate integer symmetric\r\n% c\r\n\r\n3 3 3\r\n\
                     1 1 1\r\n2 1 4\r\n3 3 7\r\n";
    let upper = "%%matrixmarket MATRIX coordinate Real SYMMETRIC\n3 3 3\n1 1 1.0e0\n1 2 4\n3 3 7";
    let expected = Csr::new(
        3,
        3,
        vec![0, 2, 3, 4],
        vec![0, 1, 0, 2],
        vec![1.0, 4.0, 4.0, 7.0],
    );
    let expected = expected.unwrap();
    for text in [general, symmetric, upper] {
        assert_eq!(
            read_bytes(text.as_bytes(), None).unwrap(),
            expected,
            "{text}"
        );
        assert_eq!(
            read_bytes(&compressed(text.as_bytes()), None).unwrap(),
            expected
        );
    }
}

#[test]
fn the_mirrored_triangle_of_a_skew_symmetric_matrix_is_negated() {
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n";
    let matrix = read_bytes(text.as_bytes(), None).unwrap();
    assert_eq!(
        (matrix.column_of(), matrix.values()),
        (&[1, 0][..], &[-3.0, 3.0][..])
    );
}

#[test]
fn matrices_without_entries_or_rows_are_read() {
    for size in ["0 0 0", "0 5 0", "5 0 0", "4 4 0"] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{size}");
        assert_eq!(read_bytes(text.as_bytes(), None).unwrap().nonzeros(), 0);
    }
}

#[test]
fn errors_of_a_whole_file_name_their_line() {
    let file = |size: &str, entries: &str| {
        format!("%%MatrixMarket matrix coordinate real general\n% c\n{size}\n{entries}")
    };
    for (text, expected) in [
        (String::new(), "line 1: the file is empty"),
        (
            file("2 2 3", "1 1 1\n\n2 2 1\n"),
            "line 6: the file ends after 2 of the 3 entries that line 3",
        ),
        (
            file("2 2 1", "1 1 1\n\n2 2 1\n"),
            "line 6: an entry more than the 1 that line 3 declares",
        ),
        (file("2 2 0", "1 1 1"), "line 4: an entry more than the 0"),
        (
            file("2 2 2", "1 1 1\n1 3 1"),
            "line 5: column 3 is beyond the 2 columns that line 3",
        ),
        (
            file("9 9 4000000000", "1 1 1"),
            "line 3: 4000000000 entries are declared, and the 70 bytes",
        ),
        (
            file("9 9 18446744073709551615", "1 1 1"),
            "line 3: 18446744073709551615 entries are declared, and the 80 bytes",
        ),
        (
            file("4294967296 9 1", "1 1 1"),
            "line 3: 4294967296 rows are more than the 2147483647",
        ),
    ] {
        let found = error(&text);
        assert!(found.starts_with(expected), "{text}: {found}");
    }
    let both = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 3\n1 3\n";
    assert!(error(both).starts_with("line 5: an entry above the diagonal, and line 3 has one on"));
}

/// An error far behind the first block names its line, in any order in which threads
/// finish.
#[test]
fn lines_are_counted_across_blocks() {
    let count = 400_000;
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n9 9 {count}\n");
    for _ in 0..count {
        text.push_str("1 1 1.25\n");
    }
    let matrix = read_bytes(text.as_bytes(), None).unwrap();
    assert_eq!(matrix.values(), [1.25 * f64::from(count)]);
    let wrong = format!("{}oops\n{}", text, "later\n".repeat(10));
    assert!(error(&wrong).starts_with("line 400003: `oops` is no number of a row"));
    let more = format!("{text}% c\n1 1 1\n1 1 1\n");
    assert!(error(&more).starts_with("line 400004: an entry more"));
    let long = format!("{text}{}", " ".repeat(5 << 20));
    assert!(error(&long).starts_with("line 400003: the line is longer"));
}

#[test]
fn a_truncated_compressed_file_is_reported_as_truncated() {
    let mut text = "%%MatrixMarket matrix coordinate real general\n9 9 2000\n".to_owned();
    for i in 0..2000 {
        text.push_str(&format!("1 {} {}\n", i % 9 + 1, i * i));
    }
    let whole = compressed(text.as_bytes());
    assert!(read_bytes(&whole, None).is_ok());
    let error = read_bytes(&whole[..whole.len() / 2], None).unwrap_err();
    assert!(
        matches!(error, MatrixError::Truncated { lines, .. } if lines > 100),
        "{error}"
    );
    let error = read_bytes(&whole[..10], None).unwrap_err();
    assert!(
        matches!(error, MatrixError::Truncated { lines: 0, .. }),
        "{error}"
    );
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0xff;
    assert!(read_bytes(&damaged, None).is_err());
}

#[test]
fn a_matrix_that_needs_too_much_memory_is_refused_before_it_is_read() {
    let text = "%%MatrixMarket matrix coordinate real general\n9 9 1\nthis is not read\n";
    let error = read_bytes(text.as_bytes(), Some(187))
        .unwrap_err()
        .to_string();
    // 16 bytes of the entry as read and 12 in the matrix. Each row also has its start
    // and the position of its next entry.
    assert!(
        error.contains("reading 1 entries of 9 rows needs 188 B"),
        "{error}"
    );
    assert!(error.contains("187 B of memory are available"), "{error}");
}

#[test]
fn a_path_that_is_not_a_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let of = |path: &std::path::Path| quietly(|control| read(path, None, control)).unwrap_err();
    let missing = of(&folder.path().join("none.mtx")).to_string();
    assert!(
        missing.contains("give the path of a Matrix Market file"),
        "{missing}"
    );
    assert!(of(folder.path()).to_string().contains("give a file in it"));
}

proptest! {
    #[test]
    fn a_written_matrix_is_read_unchanged(matrix in matrices(), packed: bool) {
        let mut file = Vec::new();
        let comments = ["two\nlines".to_owned()];
        quietly(|control| write(&matrix, &comments, packed, &mut file, control)).unwrap();
        prop_assert_eq!(file.starts_with(b"%%MatrixMarket"), !packed);
        let read = read_bytes(&file, None).unwrap();
        prop_assert_eq!(bits(&read), bits(&matrix));
        prop_assert_eq!(read, matrix);
    }

    /// No contents make it panic or hang.
    #[test]
    fn random_contents_are_refused_or_read(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        banner: bool,
        size in "[0-9 ]{0,9}",
        lines in "[0-9 .e%\n-]{0,60}",
    ) {
        let head = format!("%%MatrixMarket matrix coordinate real general\n{size}\n{lines}");
        let mut file = if banner { head.into_bytes() } else { Vec::new() };
        file.extend(bytes);
        let _ = read_bytes(&file, Some(1 << 24));
    }
}

#[test]
fn a_matrix_longer_than_the_buffer_is_written_completely() {
    let matrix = quietly(|c| crate::matrix::generate::uniform(30_011, 5, 1, None, c)).unwrap();
    for packed in [false, true] {
        let mut file = Vec::new();
        quietly(|control| write(&matrix, &[], packed, &mut file, control)).unwrap();
        assert_eq!(read_bytes(&file, None).unwrap(), matrix);
    }
}

#[test]
fn changed_files_are_read_or_refused() {
    let general =
        b"%%MatrixMarket matrix coordinate real general\n% c\n3 4 3\n1 1 1.5\n3 4 -2e3\n2 2 nan\n";
    let symmetric = b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 7\n3 3 -9\n";
    let pattern = b"%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n";
    let zip = compressed(general);
    let words = [
        "skew-symmetric",
        "pattern",
        "unsigned-integer",
        "%",
        "\n",
        " ",
        "\u{feff}",
    ];
    crate::changed::changed(&[general, symmetric, pattern, &zip], &words, |bytes| {
        if let Ok(csr) = read_bytes(bytes, Some(1 << 24)) {
            assert!(csr.column_of().iter().all(|column| *column < csr.columns()));
        }
    });
}
