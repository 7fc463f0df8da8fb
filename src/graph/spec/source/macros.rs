//! Macros, and their replacement in a text.

use std::collections::{BTreeMap, BTreeSet};

use super::function::{close, parts};
use super::preprocess::Seen;
use super::token::{Token, is_name};

/// A macro.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Macro {
    /// Its text.
    Plain(Vec<Token>),
    /// Its parameters and its text.
    Function(Vec<Token>, Vec<Token>),
    /// One that joins tokens, makes strings or takes any number of arguments. It is not
    /// replaced.
    Opaque,
}

/// The macros that are defined.
pub(super) type Macros = BTreeMap<String, Macro>;

/// Most levels of macros within macros.
const DEEPEST: usize = 16;

/// Most tokens that macros may make: a few short ones can grow without bounds.
const MOST: usize = 4_000_000;

/// The macro that a directive defines.
pub(super) fn defined_as(directive: &str, rest: &[Token]) -> Option<(String, Macro)> {
    let (name, value) = rest.split_first()?;
    // A macro has arguments only if a bracket follows its name at once.
    let behind = directive
        .find(name.as_str())
        .map(|at| &directive[at + name.len()..]);
    let known = match behind.is_some_and(|text| text.starts_with('(')) {
        true => function(value),
        false if value.iter().any(|token| token == "##") => Macro::Opaque,
        false => Macro::Plain(value.to_vec()),
    };
    Some((name.clone(), known))
}

fn function(value: &[Token]) -> Macro {
    let Some(end) = close(value, 0) else {
        return Macro::Opaque;
    };
    let names: Vec<&[Token]> = parts(&value[1..end]);
    let text = &value[end + 1..];
    let plain = text.iter().all(|token| token != "#" && token != "##");
    let names: Option<Vec<Token>> = (names.iter())
        .map(|name| match name {
            [one] if is_name(one) => Some(one.clone()),
            _ => None,
        })
        .collect();
    match names {
        Some(names) if plain => Macro::Function(names, text.to_vec()),
        _ => Macro::Opaque,
    }
}

/// Adds tokens with their macros replaced.
pub(super) fn expanded(given: &[(Token, usize)], macros: &Macros, seen: &mut Seen) {
    let tokens: Vec<Token> = given.iter().map(|(token, _)| token.clone()).collect();
    let mut within = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let line = given[at].1;
        at = one(&tokens, at, macros, &mut within, seen);
        seen.lines.resize(seen.tokens.len(), line);
    }
}

/// Adds the token at `at`, or what its macro makes of it. Returns the index of what
/// follows.
fn one(
    tokens: &[Token],
    at: usize,
    macros: &Macros,
    within: &mut BTreeSet<String>,
    seen: &mut Seen,
) -> usize {
    let token = &tokens[at];
    let known = macros.get(token).filter(|_| is_name(token));
    let too_many = within.len() >= DEEPEST || seen.tokens.len() > MOST;
    let replaced = match known {
        None => None,
        Some(_) if within.contains(token) || too_many => None,
        Some(Macro::Plain(text)) => Some((text.clone(), at + 1)),
        Some(Macro::Function(names, text)) => {
            let mut whole = |given: &[Token]| {
                let mut made = Seen::default();
                let mut inner = 0;
                while inner < given.len() {
                    inner = one(given, inner, macros, within, &mut made);
                }
                seen.has_macros |= made.has_macros;
                made.tokens
            };
            called(tokens, at, names, text, &mut whole)
        }
        Some(Macro::Opaque) => None,
    };
    match replaced {
        Some((text, next)) => {
            within.insert(token.clone());
            let mut inner = 0;
            while inner < text.len() {
                inner = one(&text, inner, macros, within, seen);
            }
            within.remove(token);
            next
        }
        None => {
            // Within its own text, the name of a plain macro is what it stands for.
            let is_itself = within.contains(token) && matches!(known, Some(Macro::Plain(_)));
            seen.has_macros |= known.is_some() && !is_itself;
            seen.tokens.push(token.clone());
            at + 1
        }
    }
}

/// The text of a macro with the arguments of a call, in which macros are replaced by
/// `whole`, and the index of what follows.
fn called(
    tokens: &[Token],
    at: usize,
    names: &[Token],
    text: &[Token],
    whole: &mut dyn FnMut(&[Token]) -> Vec<Token>,
) -> Option<(Vec<Token>, usize)> {
    if tokens.get(at + 1)? != "(" {
        return None;
    }
    let end = close(tokens, at + 1)?;
    let given = parts(&tokens[at + 2..end]);
    if given.len() != names.len() {
        return None;
    }
    let given: Vec<Vec<Token>> = given.into_iter().map(whole).collect();
    let mut made = Vec::new();
    for token in text {
        match names.iter().position(|name| name == token) {
            Some(index) => made.extend_from_slice(&given[index]),
            None => made.push(token.clone()),
        }
    }
    Some((made, end + 1))
}
