//! Files that a source includes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::codelet::opencl_c::{Line, lines};

/// Files within files, at most: a file may include itself.
const DEPTH: usize = 32;

/// Bytes of a source with all that it includes, at most.
const MOST: usize = 16 << 20;

/// Files that are included, at most: a file may include another one twice, and so on.
const MOST_FILES: usize = 4096;

/// A source with the files that it includes in place of the directives; `None` if it includes
/// none.
///
/// Files are looked for in the folder of the file that names them, in the folders of the
/// options `-I`, and in the present one. Compilers differ in that order, so a name for
/// which there are files of unlike contents stays as it is, and so does one without a
/// file. `read` returns the contents of a file that exists.
pub fn with_included(
    text: &str,
    options: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<String> {
    let is_include = |line: &Line| directive(text, line).starts_with("include");
    if !lines(text).iter().any(is_include) {
        return None;
    }
    let mut reader = Reader {
        folders: folders(options),
        read,
        once: BTreeSet::new(),
        left: MOST_FILES,
        made: String::with_capacity(text.len()),
    };
    reader.add(text, None, 0);
    Some(reader.made)
}

/// The folders of `-I`, and the present one.
fn folders(options: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let folder = match word.strip_prefix("-I") {
            Some("") => words.next(),
            other => other,
        };
        folders.extend(folder.map(PathBuf::from));
    }
    folders.push(PathBuf::from("."));
    folders
}

struct Reader<'a> {
    folders: Vec<PathBuf>,
    read: &'a dyn Fn(&Path) -> Option<String>,
    /// Contents that ask to be included once, and have been.
    once: BTreeSet<String>,
    /// How many more files may be included.
    left: usize,
    made: String,
}

impl Reader<'_> {
    fn add(&mut self, text: &str, folder: Option<&Path>, depth: usize) {
        let mut from = 0;
        for line in lines(text) {
            let found = included(directive(text, &line));
            let found = found.filter(|_| depth < DEPTH && self.left > 0);
            let Some((contents, of)) = found.and_then(|name| self.find(name, folder)) else {
                continue;
            };
            let is_known = self.once.contains(&contents);
            if !is_known && self.made.len() + contents.len() > MOST {
                continue;
            }
            let (begin, end) = (line.directive.unwrap_or(from), line.end());
            self.made.push_str(&text[from..begin]);
            from = end;
            if is_known {
                continue;
            }
            if lines(&contents).iter().any(|line| is_once(&contents, line)) {
                self.once.insert(contents.clone());
            }
            self.left -= 1;
            self.add(&contents, of.as_deref(), depth + 1);
        }
        self.made.push_str(&text[from..]);
        self.made.push('\n');
    }

    /// The contents of the file with this name, and its folder.
    fn find(&self, name: &str, folder: Option<&Path>) -> Option<(String, Option<PathBuf>)> {
        let folders = folder
            .into_iter()
            .chain(self.folders.iter().map(PathBuf::as_path));
        let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in folders {
            let path = folder.join(name);
            if let Some(contents) = (self.read)(&path) {
                found.entry(contents).or_insert(path);
            }
        }
        match found.len() {
            1 => found
                .pop_first()
                .map(|(contents, path)| (contents, path.parent().map(Path::to_owned))),
            _ => None,
        }
    }
}

/// The text of a directive behind its sign; empty if a line is none.
fn directive<'a>(text: &'a str, line: &Line) -> &'a str {
    match (line.directive, line.tokens.first()) {
        (Some(_), Some(first)) => &text[first.at.start..line.end()],
        _ => "",
    }
}

/// The name in an `#include`.
fn included(directive: &str) -> Option<&str> {
    let name = directive.strip_prefix("include")?.trim();
    let quoted = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    quoted.or_else(|| name.strip_prefix('<')?.strip_suffix('>'))
}

fn is_once(text: &str, line: &Line) -> bool {
    directive(text, line)
        .split_whitespace()
        .eq(["pragma", "once"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::spec::source::token::tokens;

    fn read(text: &str, files: &[(&str, &str)]) -> String {
        let found = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, contents)| (*contents).to_owned())
        };
        with_included(text, "-DA=1 -Iinc -I more", &found).expect("it includes files")
    }

    #[test]
    fn files_stand_where_they_are_included() {
        let files = [
            ("inc/a.h", "int a; // of a\n#include \"b.h\"\n"),
            ("inc/b.h", "int b;"),
            ("more/c.h", "/* of c */ int c;"),
            ("./d.h", "int d;"),
        ];
        let made = read(
            "first\n#include \"a.h\" // here\n # include <c.h>\n#include \"d.h\"\nlast",
            &files,
        );
        assert_eq!(
            tokens(&made).join(" "),
            "first int a ; int b ; int c ; int d ; last"
        );
        assert_eq!(with_included("int a; // include", "", &|_| None), None);
    }

    #[test]
    fn what_is_not_certain_stays() {
        let files = [
            ("inc/a.h", "one"),
            ("more/a.h", "another"),
            ("inc/b.h", "same"),
            ("./b.h", "same"),
        ];
        let made = read(
            "#include \"a.h\"\n#include \"b.h\"\n#include \"none.h\"\n#include NAME\n",
            &files,
        );
        assert_eq!(made.matches("#include").count(), 3);
        assert!(made.contains("\"a.h\"") && made.contains("same") && made.contains("\"none.h\""));
        // In a comment and in a string there are no directives.
        let plain = read(
            "/*\n#include \"b.h\"\n*/\nx = \"\\\n#include\";\n#include \"no.h\"\n",
            &files,
        );
        assert!(!plain.contains("same"));
    }

    #[test]
    fn files_that_include_themselves_end() {
        let made = read(
            "#include \"a.h\"\n",
            &[("inc/a.h", "a\n#include \"a.h\"\n")],
        );
        assert_eq!(made.matches("#include").count(), 1);
        let twice = |name: &str| format!("#include \"{name}\"\n").repeat(2);
        let names: Vec<String> = (0..30).map(|i| format!("inc/{i}.h")).collect();
        let texts: Vec<String> = (1..30).map(|i| twice(&format!("{i}.h"))).collect();
        let files = names
            .iter()
            .zip(texts.iter().map(String::as_str).chain([""]));
        let files: Vec<(&str, &str)> = files.map(|(name, text)| (&**name, text)).collect();
        assert!(read(&twice("0.h"), &files).len() < 1 << 20);
        let once = [("inc/a.h", "# pragma once\na\n#include \"a.h\"\n")];
        let made = read("#include \"a.h\"\n#include \"a.h\"\n", &once);
        assert_eq!(
            made.split_whitespace().filter(|word| *word == "a").count(),
            1
        );
    }
}
