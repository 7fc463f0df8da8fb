use std::fs;

use proptest::prelude::*;

use super::*;
use crate::matrix::control::quietly;
use crate::matrix::fixtures::{bits, matrices};

fn origin(text: &str) -> Result<Origin, String> {
    text.parse().map_err(|error: MatrixError| error.to_string())
}

#[test]
fn sources_are_parsed_and_formatted_as_given() {
    for text in [
        "banded:1000,3",
        "uniform:7,7",
        "rmat:20,16",
        "like:circuit5M",
        "like:kmer_U1a@0.001",
        "a/b.mtx.gz",
        "./like:eu-2005",
    ] {
        assert_eq!(origin(text).unwrap().to_string(), text);
    }
    assert_eq!(origin("banded: 10 , 3").unwrap().to_string(), "banded:10,3");
    assert_eq!(
        origin("like:FULLCHIP@1").unwrap().to_string(),
        "like:FullChip"
    );
    assert!(matches!(origin("c:\\m.mtx"), Ok(Origin::File(_))));
}

#[test]
fn names_distinguish_look_alikes_from_files() {
    let name = |text: &str| text.parse::<MatrixSource>().unwrap().name();
    assert_eq!(name("a/memplus.mtx.gz"), "memplus");
    assert_eq!(name("memplus.mtx"), "memplus");
    assert_eq!(name("m.txt"), "m.txt");
    assert_eq!(name("rmat:3,4"), "rmat:3,4");
    assert_eq!(name("like:circuit5m"), "look-alike of circuit5M");
    assert_eq!(name("like:in-2004@0.25"), "look-alike of in-2004 at 0.25");
}

#[test]
fn the_name_of_a_file_need_not_be_utf_8() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder
        .path()
        .join(OsString::from_vec(b"m\xff.mtx".to_vec()));
    fs::write(
        &path,
        "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n",
    )
    .unwrap();
    let source = MatrixSource::try_from(path.into_os_string()).unwrap();
    for _ in 0..2 {
        let loaded = quietly(|control| source.load(control)).unwrap();
        assert_eq!(loaded.csr.values(), [5.0]);
        assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let banded = MatrixSource::try_from(OsString::from("banded:10,3")).unwrap();
    assert!(matches!(banded.origin, Origin::Banded { .. }));
}

#[test]
fn invalid_sources_are_refused_with_a_remedy() {
    for (text, part) in [
        ("", "is empty; give a Matrix Market file"),
        (
            "like:",
            "known are circuit5M, eu-2005, in-2004, FullChip, kmer_U1a",
        ),
        ("like:circuit6M", "no look-alike of `circuit6M`"),
        ("like:circuit5M@0", "`0` is no scale"),
        ("like:circuit5M@-1", "`-1` is no scale"),
        ("like:circuit5M@big", "`big` is no scale"),
        ("like:circuit5M@inf", "`inf` is no scale"),
        ("like:circuit5M@1e-9", "0 rows are too few"),
        ("like:kmer_U1a@100", "1 to 2147483647 rows"),
        ("banded:10", "write banded:ROWS,HALF_BANDWIDTH"),
        ("banded:0,1", "1 to 2147483647 rows, not 0"),
        ("banded:-1,1", "two whole numbers"),
        ("banded:2147483648,1", "not 2147483648"),
        ("uniform:10,11", "cannot have 11 entries"),
        ("uniform:10,5,3", "two whole numbers"),
        ("rmat:31,16", "the scale is 31, and at most 30"),
        ("rmat:20", "write rmat:SCALE,PER_ROW"),
    ] {
        let message = origin(text).unwrap_err();
        assert!(message.contains(part), "{text}: {message}");
    }
}

/// A generator makes the same matrix each time, and another one for another seed.
#[test]
fn generators_are_reproducible() {
    for text in [
        "banded:500,3",
        "uniform:500,9",
        "rmat:9,8",
        "like:eu-2005@0.002",
    ] {
        let of = |seed| {
            let source = MatrixSource {
                seed,
                ..text.parse().unwrap()
            };
            quietly(|control| source.load(control)).unwrap().csr
        };
        assert_eq!(of(1), of(1), "{text}");
        assert_ne!(of(1), of(2), "{text}");
    }
}

const TEXT: &str = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5\n2 1 -2\n";

#[test]
fn a_file_is_cached_unless_caching_is_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    fs::write(&path, TEXT).unwrap();
    let source: MatrixSource = path.to_str().unwrap().parse().unwrap();
    let load = |source: &MatrixSource| quietly(|control| source.load(control)).unwrap();
    let without = MatrixSource {
        cache: false,
        ..source.clone()
    };
    let first = load(&without);
    assert!(!cache::path(&path).exists());
    assert_eq!(load(&source), first);
    assert!(cache::path(&path).exists());
    assert_eq!(load(&source), first);

    // A different matrix in the cache shows that `load` reads the cache.
    let marked = Csr::new(2, 2, vec![0, 0, 1], vec![1], vec![7.0]).unwrap();
    let digest = quietly(|control| market::read(&path, None, control))
        .unwrap()
        .digest;
    quietly(|control| cache::save(&path, digest, &marked, control)).unwrap();
    assert_eq!(load(&source).csr, marked);
    assert_eq!(load(&without), first);

    // The cache is not used for a changed text.
    fs::write(&path, TEXT.replace("1.5", "2.5")).unwrap();
    assert_eq!(load(&source).csr.values(), [2.5, -2.0]);
    assert_eq!(load(&source).notes, Vec::<String>::new());
}

#[test]
fn what_is_no_cache_is_reported_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    fs::write(&path, TEXT).unwrap();
    fs::write(
        cache::path(&path),
        "something else, but long enough to be a header of a cache, were it one at all",
    )
    .unwrap();
    let source: MatrixSource = path.to_str().unwrap().parse().unwrap();
    let loaded = quietly(|control| source.load(control)).unwrap();
    assert!(
        loaded.notes[0].contains("m.mtx.pdawl is not used as a cache"),
        "{:?}",
        loaded.notes
    );
    // It is no cache, so it stays.
    assert_eq!(
        quietly(|control| source.load(control)).unwrap().notes,
        loaded.notes
    );

    fs::remove_file(cache::path(&path)).unwrap();
    fs::create_dir_all(cache::path(&path).join("in the way")).unwrap();
    let loaded = quietly(|control| source.load(control)).unwrap();
    assert_eq!(loaded.csr.nonzeros(), 2);
    assert!(
        loaded.notes.iter().any(|note| note.contains("--no-cache")),
        "{:?}",
        loaded.notes
    );
}

proptest! {
    #[test]
    fn the_cache_gives_the_same_as_the_file(matrix in matrices()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.mtx");
        let mut text = Vec::new();
        quietly(|control| market::write(&matrix, &[], false, &mut text, control)).unwrap();
        fs::write(&path, &text).unwrap();
        let source: MatrixSource = path.to_str().unwrap().parse().unwrap();
        let of_text = quietly(|control| source.load(control)).unwrap();
        let found = quietly(|control| cache::load(&path, None, control)).unwrap();
        let CacheLookup::Matrix(of_cache) = found else {
            panic!("{found:?}");
        };
        prop_assert_eq!(bits(&of_cache), bits(&of_text.csr));
        prop_assert_eq!(&of_cache, &of_text.csr);
        prop_assert_eq!(of_cache, matrix);
    }
}
