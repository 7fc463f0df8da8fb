//! A table of parts, each of which may use only the parts below it, and what the sources do
//! that it does not allow.

use std::fmt::Write as _;

use crate::imports::{ModulePath, Sources};

/// A part: a module with all that is in it, but what is a part itself.
#[derive(Clone, Debug)]
pub struct ArchitecturePart {
    /// As the table has it, without the slash at its end: `cluster/wire`.
    pub name: String,
    /// Its position in the table. A row may have several parts, in their order.
    pub rank: usize,
}

/// The parts in the first column of the table whose first column is called `heading`.
pub fn parts(markdown: &str, heading: &str) -> Vec<ArchitecturePart> {
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim().trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = markdown
        .lines()
        .skip_while(|line| !line.starts_with('|') || cells(line)[0] != heading)
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut parts = Vec::new();
    for line in rows {
        // Every second piece is between backticks.
        for name in cells(line)[0].split('`').skip(1).step_by(2) {
            let name = name
                .trim_end_matches('/')
                .trim_end_matches(".rs")
                .to_owned();
            parts.push(ArchitecturePart {
                name,
                rank: parts.len(),
            });
        }
    }
    assert!(!parts.is_empty(), "there is no table of {heading}s");
    parts
}

/// What the sources do that the table does not allow, a line each. `module` tells the path of
/// the module that is a part, or `None` if the part is no Rust code; `folder` is what the paths
/// of files begin with, which is not shown.
pub fn violations(
    parts: &[ArchitecturePart],
    sources: &Sources,
    module: impl Fn(&ArchitecturePart) -> Option<ModulePath>,
    folder: &std::path::Path,
) -> String {
    let modules: Vec<(ModulePath, &ArchitecturePart)> = parts
        .iter()
        .filter_map(|part| Some((module(part)?, part)))
        .collect();
    let part_of = |path: &ModulePath| {
        let holds = modules
            .iter()
            .filter(|(module, _)| path.starts_with(module));
        holds
            .max_by_key(|(module, _)| module.len())
            .map(|(_, part)| *part)
    };
    let mut lines = String::new();
    for (module, part) in &modules {
        if !sources.modules.iter().any(|path| path.starts_with(module)) {
            let _ = writeln!(lines, "{}: the table has it, the sources do not", part.name);
        }
    }
    for path in &sources.modules {
        // The root of a crate only names modules.
        if path.len() == 2
            && !sources
                .modules
                .iter()
                .any(|below| below.starts_with(path) && part_of(below).is_some())
        {
            let _ = writeln!(lines, "{}: no row of the table names it", path.join("::"));
        }
    }
    let mut found: Vec<String> = Vec::new();
    for import in &sources.imports {
        let Some(from) = part_of(&import.from) else {
            continue;
        };
        let file = import.file.strip_prefix(folder).unwrap_or(&import.file);
        let place = format!("{}:{}", file.display(), import.line);
        let defined = sources.defined(&import.to);
        let to = defined.join("::");
        let line = match part_of(&defined) {
            Some(part) if part.rank >= from.rank => continue,
            Some(part) => format!("{place}: {} -> {} ({to})", from.name, part.name),
            None => format!("{place}: {} -> no part ({to})", from.name),
        };
        if !found.contains(&line) {
            let _ = writeln!(lines, "{line}");
            found.push(line);
        }
    }
    lines
}
