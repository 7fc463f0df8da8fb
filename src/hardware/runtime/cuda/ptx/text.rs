//! Finds kernels and special registers in the text of PTX.

use crate::codelet::opencl_c::{Kind, lines};

/// A part of PTX.
pub(super) enum Piece<'a> {
    /// What lies between kernels.
    Other(&'a str),
    Kernel(Source<'a>),
}

/// A kernel's text.
pub(super) struct Source<'a> {
    pub name: &'a str,
    /// From its linkage to its name: `.visible .entry `.
    pub before: &'a str,
    /// Declarations.
    pub parameters: Vec<&'a str>,
    /// Between parameters and body.
    pub directives: &'a str,
    /// With its braces.
    pub body: &'a str,
}

/// Divides PTX.
///
/// # Errors
/// When parentheses or braces do not match.
pub(super) fn pieces(ptx: &str) -> Result<Vec<Piece<'_>>, String> {
    let code = without_comments(ptx);
    let mut pieces = Vec::new();
    let mut from = 0;
    while let Some(entry) = find_word(&code, ".entry", from) {
        let before = linkage(&code, from, entry);
        pieces.push(Piece::Other(&ptx[from..before]));
        let (kernel, end) = source(ptx, &code, before, entry + ".entry".len())
            .ok_or("a kernel of it has no end")?;
        pieces.push(Piece::Kernel(kernel));
        from = end;
    }
    pieces.push(Piece::Other(&ptx[from..]));
    Ok(pieces)
}

/// Reads a kernel whose name begins behind `after`; and where it ends.
fn source<'a>(
    ptx: &'a str,
    code: &str,
    before: usize,
    after: usize,
) -> Option<(Source<'a>, usize)> {
    let name_at = after + code[after..].find(|c: char| !c.is_whitespace())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let name_end = name_at + code[name_at..].find(|c: char| !is_name(c))?;
    let open = code[name_end..].find('{')? + name_end;
    let (parameters, directives) = match code[name_end..open].find('(') {
        None => (Vec::new(), name_end..open),
        Some(at) => {
            let begin = name_end + at;
            let end = closing(code, begin, ['(', ')'])?;
            let mut parameters = Vec::new();
            let mut at = begin + 1;
            for part in code[begin + 1..end].split(',') {
                if !part.trim().is_empty() {
                    parameters.push(&ptx[at..at + part.len()]);
                }
                at += part.len() + 1;
            }
            (parameters, end + 1..open)
        }
    };
    let end = closing(code, open, ['{', '}'])? + 1;
    let source = Source {
        name: &ptx[name_at..name_end],
        before: &ptx[before..name_at],
        parameters,
        directives: &ptx[directives],
        body: &ptx[open..end],
    };
    Some((source, end))
}

/// Where the linkage of a kernel begins.
fn linkage(code: &str, from: usize, entry: usize) -> usize {
    let head = code[from..entry].trim_end();
    let words = [".visible", ".weak"];
    let linkage = words.iter().find_map(|word| head.strip_suffix(word));
    linkage.map_or(entry, |rest| from + rest.len())
}

/// Where the parenthesis or brace at `open` is closed.
fn closing(code: &str, open: usize, [opens, closes]: [char; 2]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in code[open..].char_indices() {
        if c == opens {
            depth += 1;
        } else if c == closes {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(open + at);
            }
        }
    }
    None
}

/// The text with a blank for each byte of its comments and strings, which are as in C.
fn without_comments(ptx: &str) -> String {
    let mut code = " ".repeat(ptx.len());
    for token in lines(ptx).iter().flat_map(|line| &line.tokens) {
        if token.kind != Kind::Quoted && token.word.is_ascii() {
            code.replace_range(token.at.clone(), token.word);
        }
    }
    code
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// Where a word begins that is no part of another one.
fn find_word(text: &str, word: &str, from: usize) -> Option<usize> {
    let found = text[from..].match_indices(word).map(|(at, _)| from + at);
    let mut found = found.filter(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    });
    found.next()
}

/// Whether a text has a name.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    find_word(text, name, 0).is_some()
}

/// The numbers of the special registers that a text reads, each as often as it does.
pub(super) fn registers(text: &str) -> impl Iterator<Item = u32> + '_ {
    let found = text.split("%envreg").skip(1);
    found.filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    })
}

/// The text with registers of ours in place of the special ones.
pub(super) fn rename_registers(text: &str) -> String {
    text.replace("%envreg", "%pdawl")
}

/// The group size that a kernel's directives require.
pub(super) fn required_group(directives: &str) -> Option<[u32; 3]> {
    let (_, sizes) = directives.split_once(".reqntid")?;
    let end = sizes.find(['.', '{']).unwrap_or(sizes.len());
    let mut group = [1; 3];
    for (axis, size) in sizes[..end].split(',').enumerate() {
        *group.get_mut(axis)? = size.trim().parse().ok()?;
    }
    Some(group)
}
