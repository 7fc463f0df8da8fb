//! What the modules of a crate import: `use`, and paths that name another module. Code for
//! tests does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::tokens::{self, Kind, Token};

/// The names of a path from its crate on: `pdawl`, `cluster`, `wire`.
pub type ModulePath = Vec<String>;

/// That a module names something.
#[derive(Clone, Debug)]
pub struct Import {
    pub file: PathBuf,
    pub line: usize,
    pub from: ModulePath,
    /// The named thing, which is a module or in a module.
    pub to: ModulePath,
}

/// What a crate consists of.
#[derive(Debug, Default)]
pub struct Sources {
    /// All modules but those for tests.
    pub modules: Vec<ModulePath>,
    pub imports: Vec<Import>,
    /// What the names in the roots of crates stand for, where it is a crate or in another one.
    reexports: BTreeMap<ModulePath, ModulePath>,
}

impl Sources {
    /// Adds the modules of the crate `name` from the file of its root on. A name in `crates`
    /// begins the path of another crate.
    pub fn add(&mut self, name: &str, root: &Path, crates: &[&str]) {
        let folder = root.parent().expect("a file is in a folder");
        let module = vec![name.to_owned()];
        self.file(module, root, folder, crates);
    }

    /// The path where something is defined that a crate may only re-export.
    pub fn defined(&self, path: &ModulePath) -> ModulePath {
        let mut path = path.clone();
        loop {
            let named = path.get(..2).and_then(|name| self.reexports.get(name));
            let all = || self.reexports.get(&[path[0].clone(), "*".to_owned()][..]);
            path = match named {
                Some(to) => [to.as_slice(), &path[2..]].concat(),
                None => match all() {
                    Some(to) => [to.as_slice(), &path[1..]].concat(),
                    None => return path,
                },
            };
        }
    }

    /// Adds a file, whose submodules are in `folder`.
    fn file(&mut self, module: ModulePath, file: &Path, folder: &Path, crates: &[&str]) {
        let source = fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
        let tokens = without_tests(tokens::tokens(&source));
        self.module(
            module,
            &tokens,
            Place {
                file,
                folder,
                crates,
            },
        );
    }

    /// Adds a module: a file, or what braces in a file contain.
    fn module(&mut self, module: ModulePath, tokens: &[Token], place: Place) {
        self.modules.push(module.clone());
        let mut scope = Scope {
            module: &module,
            crates: place.crates,
            children: BTreeSet::new(),
            aliases: BTreeMap::new(),
        };
        let mut own = Vec::new();
        let mut path = None;
        let (mut at, mut depth) = (0, 0);
        while at < tokens.len() {
            let token = &tokens[at];
            let is = |ahead: usize, text: &str| tokens.get(at + ahead).is_some_and(|t| t.is(text));
            if token.is("{") {
                depth += 1;
            } else if token.is("}") {
                depth -= 1;
            } else if is(0, "path") && is(1, "=") {
                path = tokens.get(at + 2).map(|token| token.text.clone());
            } else if depth == 0 && token.is("mod") && (is(2, ";") || is(2, "{")) {
                let name = tokens[at + 1].text.clone();
                scope.children.insert(name.clone());
                let folder = place.folder.join(&name);
                let child = [module.as_slice(), &[name]].concat();
                let end = match is(2, "{") {
                    true => {
                        let end = closing(tokens, at + 2);
                        let place = Place {
                            folder: &folder,
                            ..place
                        };
                        self.module(child, &tokens[at + 3..end], place);
                        end
                    }
                    false => {
                        let (file, folder) = place.submodule(&folder, path.take());
                        self.file(child, &file, &folder, place.crates);
                        at + 2
                    }
                };
                at = end + 1;
                continue;
            }
            own.push(token.clone());
            at += 1;
        }
        let (uses, rest) = uses(&own);
        // A name that one `use` imports may begin another.
        for _ in 0..2 {
            for item in &uses {
                if let Some(to) = scope.resolve(&item.path) {
                    scope.aliases.insert(item.name.clone(), to);
                }
            }
        }
        if module.len() == 1 {
            let foreign = (scope.aliases.iter()).filter(|(_, to)| to[0] != module[0]);
            let foreign =
                foreign.map(|(name, to)| (vec![module[0].clone(), name.clone()], to.clone()));
            self.reexports.extend(foreign);
        }
        let uses = uses.into_iter().map(|item| (item.line, item.path));
        for (line, path) in uses.chain(paths(&rest)) {
            let Some(to) = scope.resolve(&path) else {
                continue;
            };
            self.imports.push(Import {
                file: place.file.to_owned(),
                line,
                from: module.clone(),
                to,
            });
        }
    }
}

/// Where a module is.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a Path,
    /// Of its submodules.
    folder: &'a Path,
    crates: &'a [&'a str],
}

impl Place<'_> {
    /// The file of a submodule and the folder of its own submodules.
    fn submodule(self, folder: &Path, path: Option<String>) -> (PathBuf, PathBuf) {
        if let Some(path) = path {
            let file = self.file.with_file_name(path);
            let folder = file.with_extension("");
            return (file, folder);
        }
        let file = folder.with_extension("rs");
        match file.exists() {
            true => (file, folder.to_owned()),
            false => (folder.join("mod.rs"), folder.to_owned()),
        }
    }
}

/// What names mean in a module.
struct Scope<'a> {
    module: &'a ModulePath,
    crates: &'a [&'a str],
    children: BTreeSet<String>,
    aliases: BTreeMap<String, ModulePath>,
}

impl Scope<'_> {
    /// The path from its crate on. `None` of what belongs to no crate of ours.
    fn resolve(&self, path: &[String]) -> Option<ModulePath> {
        let first = path.first()?.as_str();
        let mut base: ModulePath = match first {
            "crate" => vec![self.module[0].clone()],
            "self" => self.module.clone(),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let base = &self.module[..self.module.len().checked_sub(ups)?];
                return Some([base, &path[ups..]].concat());
            }
            _ if self.children.contains(first) => {
                return Some([self.module.as_slice(), path].concat());
            }
            _ if self.aliases.contains_key(first) => self.aliases[first].clone(),
            _ if self.crates.contains(&first) => vec![first.to_owned()],
            _ => return None,
        };
        base.extend_from_slice(&path[1..]);
        Some(base)
    }
}

/// What one name of a `use` imports.
struct Use {
    line: usize,
    path: Vec<String>,
    /// What it is called here.
    name: String,
}

/// What is imported by `use`, and the tokens without that.
fn uses(tokens: &[Token]) -> (Vec<Use>, Vec<Token>) {
    let (mut uses, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        // `impl Trait + use<'a>` is no import.
        let generic = tokens.get(at + 1).is_some_and(|token| token.is("<"));
        if tokens[at].is("use") && !generic {
            let end = (at..tokens.len())
                .find(|&end| tokens[end].is(";"))
                .unwrap_or(tokens.len());
            let mut tree = &tokens[at + 1..end];
            use_tree(&[], &mut tree, &mut uses);
            at = end + 1;
        } else {
            rest.push(tokens[at].clone());
            at += 1;
        }
    }
    (uses, rest)
}

/// Reads a tree of paths below `prefix`: up to a comma or the end of its braces.
fn use_tree(prefix: &[String], tree: &mut &[Token], uses: &mut Vec<Use>) {
    let mut path = prefix.to_vec();
    let mut line = tree.first().map_or(0, |token| token.line);
    while let Some((token, rest)) = tree.split_first() {
        if token.is(",") || token.is("}") {
            break;
        }
        *tree = rest;
        if token.is("{") {
            while let Some((token, rest)) = tree.split_first() {
                match token.text.as_str() {
                    "}" => {
                        *tree = rest;
                        return;
                    }
                    "," => *tree = rest,
                    _ => use_tree(&path, tree, uses),
                }
            }
            return;
        }
        if token.is("as") {
            let Some((name, rest)) = tree.split_first() else {
                return;
            };
            *tree = rest;
            let name = name.text.clone();
            uses.push(Use { line, path, name });
            return;
        }
        if token.is("*") {
            let name = token.text.clone();
            uses.push(Use { line, path, name });
            return;
        }
        // `{self}` is the path before the braces.
        let of_prefix = token.is("self") && !path.is_empty();
        if token.kind == Kind::Word && !of_prefix {
            line = token.line;
            path.push(token.text.clone());
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    uses.push(Use { line, path, name });
}

/// The paths of two or more names, with their lines.
fn paths(tokens: &[Token]) -> Vec<(usize, Vec<String>)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // `pub(in path)` names a module that contains this one.
        if is(at, "(") && is(at + 1, "in") && at > 0 && is(at - 1, "pub") {
            at = closing(tokens, at);
            continue;
        }
        // What a method or a field is called is no path.
        let member = at > 0 && is(at - 1, ".") && !(at > 1 && is(at - 2, "."));
        let begins = tokens[at].kind == Kind::Word && is(at + 1, "::") && !member;
        if !begins {
            at += 1;
            continue;
        }
        let line = tokens[at].line;
        let mut path = vec![tokens[at].text.clone()];
        while is(at + 1, "::") && tokens.get(at + 2).is_some_and(|t| t.kind == Kind::Word) {
            path.push(tokens[at + 2].text.clone());
            at += 2;
        }
        // `Type::<T>::f` goes on after its arguments, with nothing that is a module.
        at += 2;
        paths.push((line, path));
    }
    paths
}

/// The tokens without items for tests.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let inner = tokens.get(at + 1).is_some_and(|token| token.is("!"));
        let bracket = at + 1 + usize::from(inner);
        let attribute = tokens[at].is("#") && tokens.get(bracket).is_some_and(|t| t.is("["));
        if !attribute {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let end = closing(&tokens, bracket);
        let words: Vec<&str> = tokens[bracket..end]
            .iter()
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text.as_str())
            .collect();
        let tests =
            words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not");
        if !tests {
            kept.extend_from_slice(&tokens[at..=end]);
            at = end + 1;
        } else if inner {
            // The file is for tests.
            return Vec::new();
        } else {
            at = item_end(&tokens, end + 1) + 1;
        }
    }
    kept
}

/// The last token of the item, field or variant that begins at `at`, perhaps with attributes.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    const ITEMS: [&str; 15] = [
        "pub",
        "fn",
        "mod",
        "use",
        "impl",
        "struct",
        "enum",
        "trait",
        "const",
        "static",
        "type",
        "unsafe",
        "extern",
        "let",
        "macro_rules",
    ];
    while tokens.get(at).is_some_and(|token| token.is("#")) {
        at = closing(tokens, at + 1) + 1;
    }
    let item = tokens
        .get(at)
        .is_some_and(|token| ITEMS.iter().any(|item| token.is(item)));
    let import = tokens.get(at).is_some_and(|token| token.is("use"));
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at,
            "," if !item => return at,
            // The item is the last of what contains it.
            "}" => return at - 1,
            "{" if !import => return closing(tokens, at),
            "(" | "[" | "{" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

/// The token that closes what the bracket at `open` opens, or the last one.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.kind == Kind::Mark {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len() - 1
}
