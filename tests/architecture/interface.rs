//! The library's interface is a list of names, which stays short enough to be known.

use crate::tokens::{self, Kind};

/// As many names as a reader can keep apart.
const MOST: usize = 400;

/// The names that a source re-exports, with the modules that have them.
///
/// # Errors
/// Of other crates than the interface's, and a glob, as it hides how many there are.
fn exported(source: &str) -> Result<Vec<String>, String> {
    let tokens = tokens::tokens(source);
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_use = token.kind == Kind::Word && token.text == "use";
        if !is_use || at == 0 || tokens[at - 1].text != "pub" {
            continue;
        }
        let path = tokens[at + 1..]
            .iter()
            .take_while(|token| token.text != ";");
        let path: Vec<_> = path.collect();
        let is_own = path[0].is("session") || path[0].is("pdawl_api");
        if !is_own {
            return Err(format!("line {}: of {}", token.line, path[0].text));
        }
        if path.iter().any(|token| token.text == "*") {
            return Err(format!("line {}: a glob", token.line));
        }
        for (place, part) in path.iter().enumerate() {
            let next = path.get(place + 1).map_or(",", |next| &next.text);
            if part.kind == Kind::Word && matches!(next, "," | "}") {
                names.push(part.text.clone());
            }
        }
    }
    Ok(names)
}

#[test]
fn the_interface_is_a_list_of_few_names() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
    let source = std::fs::read_to_string(root).expect("the library's root");
    let names = exported(&source).unwrap_or_else(|why| panic!("src/lib.rs, {why}"));
    assert!(names.contains(&"Session".to_owned()), "{names:?}");
    assert!(names.len() <= MOST, "{} names", names.len());
}

#[test]
fn names_are_counted_in_any_form() {
    for (source, names) in [
        ("pub use pdawl_api::b::C;", Ok(vec!["C"])),
        (
            "pub use pdawl_api::{B, c::{D, E}, f::G as H};",
            Ok(vec!["B", "D", "E", "H"]),
        ),
        ("mod a { pub use session::{C,}; } use d::E;", Ok(vec!["C"])),
        ("pub use pdawl_api::b::*;", Err("line 1: a glob".to_owned())),
        ("pub use a::B;", Err("line 1: of a".to_owned())),
    ] {
        let names = names.map(|names| names.into_iter().map(str::to_owned).collect());
        assert_eq!(exported(source), names, "{source}");
    }
}
