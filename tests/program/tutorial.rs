//! The pages of `docs/tutorial`, followed in an empty folder.
//!
//! A block whose first line names a file (` ```c circles.c `) is that file. In a block of
//! ` ```console `, each line that begins with `$ ` is a command, and the others are its output,
//! which differs from machine to machine. Every command must succeed, and every file that a
//! page names must be there at its end. Page 2's program in Rust is a documentation test of
//! the library.
//!
//! Like those of `exec`, the tests need PoCL, a C compiler and OpenCL's headers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::command::Home;
use crate::exec::LAYER;

/// The endings of files that readers make.
const ENDINGS: [&str; 6] = ["bin", "c", "cl", "json", "npy", "svg"];
/// Bytes of a page at most.
const LONGEST: usize = 6 * 1024;

/// What a page has its reader do.
#[derive(Default)]
struct Page {
    /// Names and contents.
    files: Vec<(String, String)>,
    /// A command a line.
    script: String,
    /// The files that it names.
    named: BTreeSet<String>,
}

impl Page {
    fn of(text: &str) -> Self {
        let mut page = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(kind) = line.strip_prefix("```") else {
                continue;
            };
            let block = lines.by_ref().take_while(|line| *line != "```");
            match kind.split_once(' ') {
                Some((_, file)) => {
                    let text = block.map(|line| line.to_owned() + "\n").collect();
                    page.files.push((file.to_owned(), text));
                }
                None if kind == "console" => {
                    let commands = block.filter_map(|line| line.strip_prefix("$ "));
                    page.script.extend(commands.flat_map(|line| [line, "\n"]));
                }
                None => block.for_each(drop),
            }
        }
        let is_of_name = |c: char| c.is_alphanumeric() || "._-/".contains(c);
        let words = text.split(|c| !is_of_name(c));
        let names = words.filter(|word| {
            let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
            !word.contains('/') && ENDINGS.contains(&ending)
        });
        page.named = names.map(str::to_owned).collect();
        page
    }
}

/// Follows a page.
fn follow(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial");
    let text = fs::read_to_string(path.join(name)).unwrap();
    assert!(text.len() <= LONGEST, "{name} has {} bytes", text.len());
    let page = Page::of(&text);
    assert!(!page.script.is_empty() && !page.named.is_empty(), "{name}");
    let home = Home::new();
    for (name, text) in &page.files {
        fs::write(home.path(name), text).unwrap();
    }
    let mut shell = home.shell(&page.script);
    shell.env_remove("OPENCL_LAYERS").assert().success();
    for name in &page.named {
        assert!(home.path(name).is_file(), "no {name}");
    }
}

#[test]
fn a_stencil() {
    follow("1-stencil.md");
}

#[test]
fn a_kernel_of_ones_own() {
    follow("2-kernel.md");
}

#[test]
fn matrices_larger_than_the_gpu() {
    follow("3-large-matrices.md");
}

#[test]
fn an_opencl_program_on_two_devices() {
    LazyLock::force(&LAYER);
    follow("4-opencl-program.md");
}
