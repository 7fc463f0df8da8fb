//! Tests of the forms in which Matrix Market files come: compressed, and in archives.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::matrix::MatrixError;
use crate::matrix::control::quietly;

const TEXT: &str = "%%MatrixMarket matrix coordinate real general\n% caf\u{e9}\n3 3 2\n\
                    1 2 4.5\n3 3 -2\n";

fn read_bytes(bytes: &[u8]) -> Result<Market, MatrixError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    read_path(file.path())
}

fn read_path(path: &Path) -> Result<Market, MatrixError> {
    quietly(|control| read(path, None, control))
}

#[track_caller]
fn is_read(bytes: &[u8], what: &str) {
    let market = read_bytes(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(market.csr.values(), [4.5, -2.0], "{what}");
    assert_eq!(market.csr.column_of(), [1, 2], "{what}");
    assert_eq!(market.digest.bytes, bytes.len() as u64, "{what}");
}

#[track_caller]
fn is_refused(bytes: &[u8], part: &str) {
    let error = read_bytes(bytes).map(|market| market.csr.nonzeros());
    let error = error.unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive of files, as GNU's tar and SuiteSparse make it.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ::tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let mark = if mark { "\u{feff}" } else { "" };
    let units = format!("{mark}{text}");
    let units = units.encode_utf16();
    let bytes = |unit: u16| {
        if big {
            unit.to_be_bytes()
        } else {
            unit.to_le_bytes()
        }
    };
    units.flat_map(bytes).collect()
}

#[test]
fn compressed_files_are_read() {
    let (first, second) = TEXT.as_bytes().split_at(60);
    is_read(&gzip(TEXT.as_bytes()), "gzip");
    is_read(&[gzip(first), gzip(second)].concat(), "two gzip members");
    is_read(&gzip(&gzip(TEXT.as_bytes())), "gzip within gzip");
    let padded = [gzip(TEXT.as_bytes()), vec![0; 100_000]].concat();
    is_read(&padded, "padding with zeros");
}

#[test]
fn bytes_after_compressed_data_are_reported() {
    let packed = gzip(TEXT.as_bytes());
    for more in [
        &b"what follows"[..],
        b"\x1fwhat follows",
        b"\0\0\0x",
        b"\0\x1f\x8b",
    ] {
        let error = "bytes that are no gzip data follow the gzip data";
        is_refused(&[&packed[..], more].concat(), error);
    }
    is_refused(&packed[..packed.len() - 3], "ends too early");
}

#[test]
fn the_matrix_of_an_archive_is_read() {
    let text = TEXT.as_bytes();
    let other: &[u8] = b"%%MatrixMarket matrix array real general\n1 1\n7\n";
    let collection = tar(&[
        ("add32/add32_b.mtx", other),
        ("add32/README.txt", b"of the collection"),
        ("add32/add32.mtx", text),
        ("add32/add32_x.mtx", other),
    ]);
    is_read(&collection, "plain");
    is_read(&gzip(&collection), "compressed");
    let only = [("m.mtx", text), ("._m.mtx", other), ("notes", other)];
    is_read(&tar(&only), "the only one");
    let long = format!("{0}/{0}.mtx", "long".repeat(50));
    is_read(
        &gzip(&tar(&[("x/y.mtx", other), (&long, text)])),
        "long name",
    );

    is_refused(
        &tar(&[("a.mtx", text), ("x/b.mtx", text)]),
        "a.mtx, x/b.mtx",
    );
    is_refused(&tar(&[("notes", text)]), "without a file whose name ends");
    is_refused(&collection[..1600], "ends too early");
    let cut = gzip(&collection);
    is_refused(&cut[..cut.len() / 2], "ends too early");
}

#[test]
fn a_byte_order_mark_is_read_and_other_encodings_are_named() {
    let marked = [b"\xef\xbb\xbf", TEXT.as_bytes()].concat();
    is_read(&marked, "byte order mark");
    is_read(&gzip(&marked), "byte order mark, compressed");
    for big in [false, true] {
        for mark in [false, true] {
            is_refused(&utf16(TEXT, mark, big), "iconv -t UTF-8");
        }
    }
    let utf32: Vec<u8> = TEXT
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    is_refused(&utf32, "iconv");
}

#[test]
fn other_formats_are_named() {
    for (begin, part) in [
        (&b"\xfd7zXZ\0\0"[..], "xz -d"),
        (b"\x28\xb5\x2f\xfdabc", "zstd -d"),
        (b"BZh91AY", "bzip2 -d"),
        (b"PK\x03\x04abc", "unzip"),
        (b"\x89HDF\r\n", "scipy.io.mmwrite"),
        (b"MATLAB 5.0 MAT-file", "a file of MATLAB"),
        (b"\x93NUMPY\x01\0", "NPY"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "git lfs pull",
        ),
        (
            b"<!DOCTYPE html>\n<html><body>404</body></html>",
            "an HTML or XML page",
        ),
        (
            b"\xef\xbb\xbf\r\n  <html lang=\"en\">",
            "an HTML or XML page",
        ),
        (
            b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
            "HTML or XML",
        ),
        (b"{\"message\": \"Not Found\"}", "a JSON text"),
    ] {
        is_refused(begin, part);
        is_refused(&gzip(begin), part);
    }
}
