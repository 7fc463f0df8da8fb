use std::fs;

use super::*;
use crate::matrix::checksum::Checksum;
use crate::matrix::control::quietly;

const TEXT: &[u8] = b"some text; what it says is not read here";

fn digest_of(text: &[u8]) -> Digest {
    let mut checksum = Checksum::default();
    checksum.add(text);
    checksum.digest()
}

fn matrix() -> Csr {
    let values = vec![1.0, f64::NEG_INFINITY, -0.0];
    Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], values).unwrap()
}

/// A folder with a text file and its cache, and the text file's path.
fn kept() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("m.mtx");
    fs::write(&source, TEXT).unwrap();
    let matrix = matrix();
    quietly(|control| save(&source, digest_of(TEXT), &matrix, control)).unwrap();
    (folder, source)
}

fn found(source: &Path) -> CacheLookup {
    quietly(|control| load(source, None, control)).unwrap()
}

#[test]
fn a_cached_matrix_is_read_bit_for_bit() {
    let (folder, source) = kept();
    let CacheLookup::Matrix(found) = found(&source) else {
        panic!("not found");
    };
    assert_eq!(found, matrix());
    assert_eq!(found.values()[2].to_bits(), (-0.0f64).to_bits());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 2);
    assert!(path(&source).ends_with("m.mtx.pdawl"));
}

#[test]
fn a_changed_text_has_no_cache() {
    let (_folder, source) = kept();
    let mut text = TEXT.to_vec();
    text[3] ^= 1;
    for other in [&text[..], &text[1..], b""] {
        fs::write(&source, other).unwrap();
        assert!(matches!(found(&source), CacheLookup::Nothing));
    }
    fs::write(&source, TEXT).unwrap();
    assert!(matches!(found(&source), CacheLookup::Matrix(_)));
    fs::remove_file(path(&source)).unwrap();
    assert!(matches!(found(&source), CacheLookup::Nothing));
}

/// A change of any byte never results in another matrix.
#[test]
fn damage_of_any_byte_is_detected() {
    let (_folder, source) = kept();
    let place = path(&source);
    let whole = fs::read(&place).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        fs::write(&place, damaged).unwrap();
        assert!(
            !matches!(found(&source), CacheLookup::Matrix(_)),
            "byte {at}"
        );
    }
    for length in [0, 1, 79, 80, whole.len() - 1] {
        fs::write(&place, &whole[..length]).unwrap();
        assert!(
            matches!(found(&source), CacheLookup::Damaged(_)),
            "{length} bytes"
        );
    }
    fs::write(&place, [&whole[..], b"x"].concat()).unwrap();
    assert!(matches!(found(&source), CacheLookup::Damaged(_)));
}

#[test]
fn a_cache_of_another_version_is_ignored() {
    let (_folder, source) = kept();
    let place = path(&source);
    let mut other = fs::read(&place).unwrap();
    other[8] += 1;
    fs::write(&place, other).unwrap();
    assert!(matches!(found(&source), CacheLookup::Nothing));
}

#[test]
fn a_failed_write_and_too_little_memory_are_reported() {
    let (folder, source) = kept();
    let refused = quietly(|control| load(&source, Some(10), control));
    assert!(matches!(refused, Err(MatrixError::Memory { .. })));
    fs::remove_file(path(&source)).unwrap();
    fs::create_dir(path(&source)).unwrap();
    assert!(matches!(found(&source), CacheLookup::Damaged(_)));
    let matrix = matrix();
    let result = quietly(|control| save(&source, digest_of(TEXT), &matrix, control));
    assert!(matches!(result, Err(FileError::Io(_))));
    // No incomplete file is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_binary_file_is_read_without_a_text_and_refused_if_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.pdawl");
    let mut bytes = Vec::new();
    quietly(|control| write(&matrix(), &mut bytes, control)).unwrap();
    fs::write(&path, &bytes).unwrap();
    let read = || quietly(|control| read(&path, None, control));
    assert_eq!(read().unwrap(), matrix());
    assert!(is_binary(&path) && !is_binary(Path::new("m.mtx")));
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (bytes, why) in [
        (changed(0), "does not begin like"),
        (changed(8), "another version"),
        (changed(bytes.len() - 1), "checksum"),
        (bytes[..bytes.len() - 1].to_vec(), "bytes and should have"),
        (Vec::new(), ""),
    ] {
        fs::write(&path, &bytes).unwrap();
        let message = match read().unwrap_err() {
            MatrixError::Read { file, source, .. } => {
                assert_eq!(file, path);
                source.to_string()
            }
            other => panic!("{other}"),
        };
        assert!(message.contains(why), "{message}");
    }
    fs::remove_file(&path).unwrap();
    assert!(read().is_err());
}
