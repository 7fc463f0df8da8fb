//! `pdawl matrix`: valid and malformed Matrix Market files, caches, and
//! generators.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use flate2::Compression;
use flate2::write::GzEncoder;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};
use serde_json::Value;

/// A temporary folder with files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        fs::write(folder.path(name), contents).unwrap();
        folder
    }

    /// Names of the files in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// A command `pdawl matrix` with these arguments, in this folder.
    fn matrix(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("pdawl").unwrap();
        command.arg("matrix").args(line.split_whitespace());
        command.current_dir(self.0.path());
        command.timeout(Duration::from_secs(120));
        command
    }

    fn json(&self, line: &str) -> Value {
        let mut command = self.matrix(&format!("{line} --format json"));
        let output = command.assert().success().stderr("").get_output().clone();
        serde_json::from_slice(&output.stdout).expect("JSON on standard output")
    }

    /// The report without the fields that differ from run to run.
    fn figures(&self, line: &str) -> Value {
        let mut report = self.json(line);
        report["load_seconds"] = Value::Null;
        report
    }
}

fn compressed(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn general(size: &str, entries: &str) -> String {
    format!("%%MatrixMarket matrix coordinate real general\n{size}\n{entries}")
}

#[test]
fn every_help_holds_an_example() {
    for line in ["", "stats", "generate"] {
        let help = contains("Example").and(contains("  pdawl matrix "));
        let folder = Folder::new();
        folder
            .matrix(&format!("{line} --help"))
            .assert()
            .success()
            .stdout(help);
    }
}

/// Blank lines, comments, CRLF line ends and compression do not change a matrix.
#[test]
fn the_same_matrix_has_the_same_figures() {
    let plain = "%%MatrixMarket matrix coordinate integer symmetric\n\
                 4 4 4\n1 1 2\n3 1 -1\n4 1 5\n4 3 6\n";
    let odd = format!(
        "{}\n\n  \n% the end",
        plain.replace("\n1 1", "\n%\n\n 1\t1 ")
    );
    let expected = Folder::with("m.mtx", plain).figures("stats m.mtx");
    assert_eq!(expected["schema"], "pdawl-matrix/1");
    assert_eq!(
        (&expected["name"], &expected["origin"]),
        (&"m".into(), &"file".into())
    );
    assert_eq!(expected["nonzeros"], 7);
    assert_eq!(expected["row_length"]["mean"], 1.75);
    assert_eq!(expected["row_length"]["most"], 3);
    assert_eq!(
        (&expected["empty_rows"], &expected["bandwidth"]),
        (&1.into(), &3.into())
    );
    for text in [
        odd.clone(),
        plain.replace('\n', "\r\n"),
        odd.replace('\n', "\r\n"),
    ] {
        assert_eq!(
            Folder::with("m.mtx", &text).figures("stats m.mtx"),
            expected,
            "{text:?}"
        );
        let folder = Folder::with("m.mtx.gz", compressed(&text));
        let mut figures = folder.figures("stats m.mtx.gz");
        figures["source"] = "m.mtx".into();
        assert_eq!(figures, expected);
    }
}

#[test]
fn values_may_be_nan_or_infinite() {
    let text = general("2 2 3", "1 1 nan\n1 2 -inf\n2 2 1e400\n");
    let report = Folder::with("m.mtx", text).json("stats m.mtx");
    assert_eq!(report["nonzeros"], 3);
}

#[test]
fn malformed_files_are_reported_with_line_and_remedy() {
    let banner = |rest: &str| format!("%%MatrixMarket matrix {rest}\n2 2 1\n1 1 1\n");
    for (text, line, part, remedy) in [
        (
            String::new(),
            1,
            "the file is empty",
            "begins with %%MatrixMarket",
        ),
        (
            "1 1 1\n".into(),
            1,
            "no Matrix Market file",
            "scipy.io.mmwrite",
        ),
        (
            banner("array real general"),
            1,
            "dense",
            "coordinate format",
        ),
        (
            banner("coordinate complex general"),
            1,
            "complex",
            "the real or the imaginary part",
        ),
        (
            banner("coordinate real hermitian"),
            1,
            "hermitian",
            "the real or the imaginary part",
        ),
        (
            banner("coordinate quaternion general"),
            1,
            "`quaternion`",
            "known are: real",
        ),
        (
            general("2 2", ""),
            2,
            "`2 2` is no size line",
            "ROWS COLUMNS ENTRIES",
        ),
        (
            general("2 2 2", "1 1 1\n"),
            3,
            "after 1 of the 2 entries",
            "fetch or write it again",
        ),
        (
            general("2 2 1", "1 1 1\n2 2 2\n"),
            4,
            "more than the 1",
            "correct the size line",
        ),
        (
            general("2 2 1", "0 1 1\n"),
            3,
            "row 0",
            "add 1 to the indices",
        ),
        (
            general("2 2 1", "1 0 1\n"),
            3,
            "column 0",
            "add 1 to the indices",
        ),
        (
            general("2 2 1", "3 1 1\n"),
            3,
            "row 3 is beyond the 2",
            "correct the entry",
        ),
        (general("2 2 1", "1 -1 1\n"), 3, "`-1`", "an entry is a row"),
        (
            general("2 2 1", "1 1 one\n"),
            3,
            "`one` is no number",
            "write the value as",
        ),
        (
            general("2 2 1", "1 1\n"),
            3,
            "the value is missing",
            "an entry is a row",
        ),
        (general("2 2 1", "1 1 1 1\n"), 3, "`1` follows", "remove it"),
        (
            general("2147483648 2 1", "1 1 1\n"),
            2,
            "2147483648 rows",
            "divide the matrix",
        ),
        (
            general("2 4294967296 1", "1 1 1\n"),
            2,
            "4294967296 columns",
            "divide the matrix",
        ),
        (
            general("2 2 4294967296", "1 1 1\n"),
            2,
            "4294967296 entries",
            "fetch or write it",
        ),
        (
            general("9 9 99999999999999999999", "1 1 1\n"),
            2,
            "is no size line",
            "below 2^64",
        ),
    ] {
        let at = format!("m.mtx, line {line}: ");
        let expected = contains(at).and(contains(part)).and(contains(remedy));
        let silent = contains("panicked").not();
        let folder = Folder::with("m.mtx", &text);
        folder
            .matrix("stats m.mtx")
            .assert()
            .code(1)
            .stdout("")
            .stderr(expected.and(silent));
        // A file that cannot be read leaves no cache.
        assert_eq!(folder.names(), ["m.mtx"], "{text}");

        // The same holds for a compressed file, except that its length does not
        // limit the number of entries.
        if !part.contains("4294967296 entries") {
            let expected = contains(format!("m.mtx.gz, line {line}: ")).and(contains(part));
            let folder = Folder::with("m.mtx.gz", compressed(&text));
            folder
                .matrix("stats m.mtx.gz")
                .assert()
                .code(1)
                .stderr(expected);
        }
    }
}

#[test]
fn truncated_or_damaged_compressed_files_are_reported() {
    let lines: String = (1..=3000).map(|i| format!("{i} {i} {}\n", i * i)).collect();
    let whole = compressed(general("3000 3000 3000", &lines));
    let folder = Folder::with("m.mtx.gz", &whole[..whole.len() / 2]);
    let expected =
        contains("m.mtx.gz: the compressed data or the archive ends too early, after line ");
    folder
        .matrix("stats m.mtx.gz")
        .assert()
        .code(1)
        .stderr(expected.and(contains("fetch or make")));
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0xff;
    let folder = Folder::with("m.mtx.gz", damaged);
    folder
        .matrix("stats m.mtx.gz")
        .assert()
        .code(1)
        .stderr(contains("m.mtx.gz"));
}

#[test]
fn what_is_no_file_is_reported() {
    let folder = Folder::new();
    let expected = contains("none.mtx: cannot be read").and(contains("give the path"));
    folder
        .matrix("stats none.mtx")
        .assert()
        .code(1)
        .stderr(expected);
    folder
        .matrix("stats .")
        .assert()
        .code(1)
        .stderr(contains("give a file in it"));
}

#[test]
fn a_matrix_without_room_is_refused_before_it_is_read() {
    // A sparse file of 3 GB, as 400 million entries would need.
    let folder = Folder::with("m.mtx", general("1000 1000 400000000", "1 1 1\n"));
    let file = fs::OpenOptions::new()
        .write(true)
        .open(folder.path("m.mtx"))
        .unwrap();
    file.set_len(3_000_000_000).unwrap();
    let expected = contains("m.mtx: reading 400000000 entries of 1000 rows needs 10.4 GiB")
        .and(contains("and 2.00 GiB of memory are available"));
    folder
        .matrix("stats m.mtx --host-memory 2GiB")
        .assert()
        .code(1)
        .stderr(expected);
    let expected = contains("look-alike of kmer_U1a needs 2.06 GiB").and(contains("1.00 GiB"));
    folder
        .matrix("stats like:kmer_U1a --host-memory 1GiB")
        .assert()
        .code(1)
        .stderr(expected);
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    for (line, part) in [
        ("stats", "<MATRIX>"),
        ("stats like:circuit6M", "known are circuit5M, eu-2005"),
        ("stats like:circuit5M@-1", "a number above 0"),
        ("stats banded:10", "banded:ROWS,HALF_BANDWIDTH"),
        ("stats rmat:40,4", "at most 30"),
        ("stats m.mtx --host-memory much", "this is not a size"),
        ("generate rmat:3,4", "<OUT>"),
        ("generate m.mtx out.mtx", "is the path of a file"),
    ] {
        let folder = Folder::new();
        let expected = contains(part).and(contains("panicked").not());
        folder
            .matrix(line)
            .assert()
            .code(2)
            .stdout("")
            .stderr(expected);
        assert!(folder.names().is_empty(), "{line}");
    }
}

#[test]
fn a_cache_is_kept_used_and_renewed() {
    let folder = Folder::with("m.mtx", general("2 2 1", "1 1 1\n"));
    let first = folder.figures("stats m.mtx --no-cache");
    assert_eq!(folder.names(), ["m.mtx"]);
    assert_eq!(folder.figures("stats m.mtx"), first);
    assert_eq!(folder.names(), ["m.mtx", "m.mtx.pdawl"]);
    assert_eq!(folder.figures("stats m.mtx"), first);

    fs::write(folder.path("m.mtx"), general("2 2 2", "1 1 1\n2 1 1\n")).unwrap();
    assert_eq!(folder.json("stats m.mtx")["nonzeros"], 2);

    // A damaged cache is reported in a note and replaced.
    let cache = folder.path("m.mtx.pdawl");
    let mut bytes = fs::read(&cache).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&cache, &bytes).unwrap();
    let report = folder.json("stats m.mtx");
    assert_eq!(report["nonzeros"], 2);
    let note = report["notes"][0].as_str().unwrap();
    assert!(
        note.contains("m.mtx.pdawl is not usable as a cache"),
        "{note}"
    );
    assert_eq!(
        folder.json("stats m.mtx")["notes"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn where_no_cache_can_be_kept_the_matrix_is_read_all_the_same() {
    let folder = Folder::with("m.mtx", general("2 2 1", "1 1 1\n"));
    fs::create_dir(folder.path("m.mtx.pdawl")).unwrap();
    let note = contains("m.mtx.pdawl is not used as a cache").and(contains("--no-cache"));
    folder
        .matrix("stats m.mtx")
        .assert()
        .success()
        .stdout(contains("Nonzeros    1").and(note));
    assert_eq!(folder.names(), ["m.mtx", "m.mtx.pdawl"]);
}

#[test]
fn a_pipe_is_read_and_leaves_no_cache() {
    let folder = Folder::new();
    let mut command = folder.matrix("stats /dev/stdin");
    command.write_stdin(compressed(general("2 2 1", "1 1 1\n")));
    command
        .assert()
        .success()
        .stdout(starts_with("stdin: 2 x 2"));
    assert!(folder.names().is_empty());

    let folder = Folder::with("m.mtx", general("2 2 1", "1 1 1\n"));
    let mut command = folder.matrix("stats /dev/stdin");
    command.pipe_stdin(folder.path("m.mtx")).unwrap();
    command
        .assert()
        .success()
        .stdout(starts_with("stdin: 2 x 2"));
    assert!(!std::path::Path::new("/dev/stdin.pdawl").exists());
}

#[test]
fn what_is_generated_is_written_and_read_again() {
    let folder = Folder::new();
    for (spec, file) in [
        ("banded:1000,3", "band.mtx"),
        ("uniform:1000,7", "uniform.mtx.gz"),
        ("rmat:10,8", "power.mtx"),
        ("like:FullChip@0.001", "chip.mtx.gz"),
    ] {
        let made = folder.json(&format!("generate {spec} {file} --seed 3"));
        let bytes = fs::read(folder.path(file)).unwrap();
        assert_eq!(made["written"]["bytes"], bytes.len());
        assert_eq!(bytes.starts_with(b"%%"), file.ends_with(".mtx"));
        let read = folder.json(&format!("stats {file}"));
        for figure in [
            "rows",
            "columns",
            "nonzeros",
            "row_length",
            "bandwidth",
            "histogram",
        ] {
            assert_eq!(made[figure], read[figure], "{spec}: {figure}");
        }
        // The same seed generates the same file, another seed another file.
        let again = folder.json(&format!("generate {spec} again-{file} --seed 3"));
        assert_eq!(
            fs::read(folder.path(&format!("again-{file}"))).unwrap(),
            bytes
        );
        assert_eq!(again["seed"], 3);
        folder.json(&format!("generate {spec} again-{file} --seed 4"));
        assert_ne!(
            fs::read(folder.path(&format!("again-{file}"))).unwrap(),
            bytes
        );
    }
    let text = fs::read_to_string(folder.path("band.mtx")).unwrap();
    let comment = "% banded:1000,3: banded:1000,3, seed 3";
    assert_eq!(text.lines().nth(1), Some(comment));
}

#[test]
fn a_look_alike_is_called_so_everywhere() {
    let folder = Folder::new();
    let line = "generate like:eu-2005@0.001 web.mtx";
    let name = "look-alike of eu-2005 at 0.001";
    folder
        .matrix(line)
        .assert()
        .success()
        .stdout(starts_with(name));
    assert!(
        fs::read_to_string(folder.path("web.mtx"))
            .unwrap()
            .contains(name)
    );
    let report = folder.json("stats like:eu-2005@0.001");
    assert_eq!(
        (&report["name"], &report["origin"]),
        (&name.into(), &"look-alike".into())
    );
    assert_eq!(report["rows"], 863);
}

#[test]
fn an_interrupted_file_is_not_there() {
    let folder = Folder::new();
    let mut child = Process::new(assert_cmd::cargo::cargo_bin("pdawl"))
        .args(["matrix", "generate", "like:circuit5M", "out.mtx.gz"])
        .current_dir(folder.0.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The temporary file appears after the signal handler is installed.
    let begun = Instant::now();
    while folder.names().is_empty() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}
