//! The files that the project's pages name, in links and between backticks.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The pages, and folders of pages.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs"];

/// How words end that name files or folders.
const ENDS: [&str; 11] = [
    "/", ".rs", ".c", ".h", ".cl", ".md", ".json", ".toml", ".py", ".sh", ".ipynb",
];

/// The files that pages name and that do not exist, a line each.
pub fn missing(root: &Path) -> String {
    let mut files = BTreeSet::new();
    add(root, root, &mut files);
    let mut lines = String::new();
    let is_page =
        |file: &&String| file.ends_with(".md") && PAGES.iter().any(|page| file.starts_with(page));
    for page in files.iter().filter(is_page) {
        let text = fs::read_to_string(root.join(page)).expect("a page can be read");
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for link in links(&text) {
            if !files.contains(&normal(&folder.join(link))) {
                let _ = writeln!(lines, "{page}: {link}");
            }
        }
        for name in names(&text) {
            // ARCHITECTURE.md names files within the part of which it speaks.
            let name = name.trim_end_matches('/');
            let ending = format!("/{name}");
            if !(files.iter()).any(|file| file == name || file.ends_with(&ending)) {
                let _ = writeln!(lines, "{page}: `{name}`");
            }
        }
    }
    lines
}

/// Adds the files and folders below a folder, by their paths from the root.
fn add(root: &Path, folder: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder)
        .expect("a folder can be read")
        .flatten()
    {
        let path = entry.path();
        let name = path.strip_prefix(root).expect("it is below the root");
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if hidden || name.ends_with("target") {
            continue;
        }
        files.insert(name.to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add(root, &path, files);
        }
    }
}

/// A path without `..`.
fn normal(path: &Path) -> String {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                made.pop();
            }
            Component::CurDir => {}
            part => made.push(part),
        }
    }
    made.to_string_lossy().into_owned()
}

/// The files that links of a page lead to.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
    targets
        .filter(|target| !target.is_empty() && !target.contains(':') && !target.contains(' '))
        .collect()
}

/// The words between backticks that name files of the project.
fn names(text: &str) -> Vec<&str> {
    // Blocks of code name what a user has.
    let plain = text.split("```").step_by(2);
    let quoted = plain.flat_map(|text| text.split('`').skip(1).step_by(2));
    let is_name = |word: &&str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
        let placeholder = word.chars().any(|c| c.is_ascii_uppercase());
        word.contains('/')
            && word.chars().all(letters)
            && !placeholder
            && !word.starts_with(['/', '.', '~'])
            && ENDS.iter().any(|end| word.ends_with(end))
    };
    quoted
        .flat_map(str::split_whitespace)
        .filter(is_name)
        .collect()
}

#[test]
fn links_and_names_are_found() {
    let text = "A [page](docs/a.md#part), [one](https://x.org/b.md); `src/lib.rs`, `DIR/c.rs`,\n\
                `./d.rs`, `residency/`.\n```\n`no/e.rs`\n```\n`cargo run f/g.cl`";
    assert_eq!(links(text), ["docs/a.md"]);
    assert_eq!(names(text), ["src/lib.rs", "residency/", "f/g.cl"]);
}
