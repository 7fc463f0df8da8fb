use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

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
    for length in [0, 1, 8, 79, 80, whole.len() - 1] {
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
    assert!(matches!(found(&source), CacheLookup::Foreign(_)));
    let matrix = matrix();
    let result = quietly(|control| save(&source, digest_of(TEXT), &matrix, control));
    assert!(matches!(result, Err(FileError::Io(_))));
    // No incomplete file is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

fn saved(source: &Path) -> Result<(), String> {
    let matrix = matrix();
    let result = quietly(|control| save(source, digest_of(TEXT), &matrix, control));
    result.map_err(|error| format!("{error:?}"))
}

#[test]
fn a_damaged_or_old_cache_is_replaced() {
    let (_folder, source) = kept();
    let place = path(&source);
    let whole = fs::read(&place).unwrap();
    let mut old = whole.clone();
    old[8] += 1;
    for there in [&b""[..], &whole[..8], &whole[..50], &old] {
        fs::write(&place, there).unwrap();
        assert_eq!(saved(&source), Ok(()));
        assert_eq!(fs::read(&place).unwrap(), whole);
    }
}

#[test]
fn what_is_no_cache_is_neither_followed_nor_replaced() {
    let (folder, source) = kept();
    let place = path(&source);
    let cache = fs::read(&place).unwrap();
    let secret = folder.path().join("secret");
    let refused = |what: &str| {
        let lookup = found(&source);
        assert!(
            matches!(lookup, CacheLookup::Foreign(_)),
            "{what}: {lookup:?}"
        );
        assert!(saved(&source).is_err(), "{what}");
        fs::remove_file(&place).unwrap();
    };
    // Links: to a private file, to a right cache, and to no file.
    for contents in [Some(&b"private"[..]), Some(&cache), None] {
        fs::remove_file(&place).unwrap_or_default();
        match contents {
            Some(contents) => fs::write(&secret, contents).unwrap(),
            None => fs::remove_file(&secret).unwrap(),
        }
        symlink(&secret, &place).unwrap();
        refused("a link");
        assert_eq!(fs::read(&secret).ok().as_deref(), contents);
    }
    fs::write(&place, "notes of the user").unwrap();
    assert!(saved(&source).is_err());
    assert_eq!(fs::read(&place).unwrap(), b"notes of the user");
    refused("a text");
    let mut generated = Vec::new();
    quietly(|control| write(&matrix(), &mut generated, control)).unwrap();
    fs::write(&place, &generated).unwrap();
    refused("a generated matrix");
    assert!(
        Command::new("mkfifo")
            .arg(&place)
            .status()
            .unwrap()
            .success()
    );
    refused("a pipe");
    assert_eq!(saved(&source), Ok(()));
}

#[test]
fn a_cache_that_others_can_write_is_not_read() {
    let (_folder, source) = kept();
    let place = path(&source);
    let set = |mode: u32| fs::set_permissions(&place, PermissionsExt::from_mode(mode)).unwrap();
    for (mode, is_read) in [(0o666, false), (0o664, false), (0o644, true), (0o600, true)] {
        set(mode);
        let lookup = found(&source);
        let read = matches!(lookup, CacheLookup::Matrix(_));
        assert_eq!(read, is_read, "{mode:o}: {lookup:?}");
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: files of other users, which only the administrator can make");
        return;
    }
    chown(&place, Some(2002), None).unwrap();
    assert!(matches!(found(&source), CacheLookup::Foreign(_)));
    assert!(saved(&source).is_err());
    // The text's owner may as well have changed the text.
    chown(&source, Some(2002), None).unwrap();
    assert!(matches!(found(&source), CacheLookup::Matrix(_)));
    assert!(saved(&source).is_err());
}

#[test]
fn a_cache_has_at_most_the_mode_of_its_text() {
    for (mode, most) in [
        (0o600, 0o600),
        (0o640, 0o640),
        (0o664, 0o644),
        (0o400, 0o600),
    ] {
        let (_folder, source) = kept();
        fs::remove_file(path(&source)).unwrap();
        fs::set_permissions(&source, PermissionsExt::from_mode(mode)).unwrap();
        saved(&source).unwrap();
        let cache = fs::metadata(path(&source)).unwrap().permissions().mode() & 0o777;
        assert_eq!(cache & !most, 0, "{mode:o}: {cache:o}");
        assert!(matches!(found(&source), CacheLookup::Matrix(_)));
    }
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
