//! The preprocessor: `#if` is evaluated, macros are replaced.

use std::collections::BTreeMap;

use super::condition;
use super::macros::{Macro, Macros, Room, defined_as, expanded};
use super::token::{JOINED, Strings, Token, tokens, without_comments};

/// The state of an `#if`.
struct Branch {
    /// Whether its present branch is compiled.
    taken: bool,
    /// Whether one of its branches has been compiled.
    any: bool,
    /// Whether the text around it is compiled.
    around: bool,
}

/// A source after the preprocessor.
#[derive(Default)]
pub(super) struct Seen {
    pub tokens: Vec<Token>,
    /// By token: its line, counted from 1.
    pub lines: Vec<usize>,
    /// Whether the name of a macro that could not be replaced is among the tokens.
    pub has_macros: bool,
    /// Whether files are included, which are not read.
    pub includes: bool,
    /// What may still be added in place of names.
    pub room: Room,
}

/// The tokens of a source with these macros (of `-D`). Conditions that cannot be
/// evaluated count as true.
pub(super) fn preprocess(text: &str, given: &BTreeMap<String, String>) -> Seen {
    let mut macros: Macros = (given.iter())
        .map(|(name, value)| (name.clone(), Macro::Plain(tokens(value))))
        .collect();
    let mut branches: Vec<Branch> = Vec::new();
    let mut seen = Seen::default();
    // The tokens since the last directive, with their lines. A macro's arguments may
    // extend over several lines.
    let mut since: Vec<(Token, usize)> = Vec::new();
    let mut number = 1;
    for line in without_comments(text, Strings::Emptied).split('\n') {
        let here = number;
        number += 1 + line.matches(JOINED).count();
        let taken = branches.last().is_none_or(|branch| branch.taken);
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            if taken {
                since.extend(tokens(line).into_iter().map(|token| (token, here)));
            }
            continue;
        };
        expanded(&std::mem::take(&mut since), &macros, &mut seen);
        let words = tokens(directive);
        let rest = words.get(1..).unwrap_or_default();
        let holds = || condition::holds(rest, &macros).unwrap_or(true);
        let defined = || rest.first().is_some_and(|name| macros.contains_key(name));
        match words.first().map(String::as_str) {
            Some("if") => branches.push(Branch::open(taken, taken && holds())),
            Some("ifdef") => branches.push(Branch::open(taken, defined())),
            Some("ifndef") => branches.push(Branch::open(taken, !defined())),
            Some("elif") => {
                let holds = holds();
                if let Some(branch) = branches.last_mut() {
                    branch.turn(holds);
                }
            }
            Some("else") => {
                if let Some(branch) = branches.last_mut() {
                    branch.turn(true);
                }
            }
            Some("endif") => {
                branches.pop();
            }
            Some("include") if taken => seen.includes = true,
            Some("define") if taken => macros.extend(defined_as(directive, rest)),
            Some("undef") if taken => {
                if let Some(name) = rest.first() {
                    macros.remove(name);
                }
            }
            _ => {}
        }
    }
    expanded(&since, &macros, &mut seen);
    seen
}

impl Branch {
    fn open(around: bool, holds: bool) -> Self {
        let taken = around && holds;
        Self {
            taken,
            any: taken,
            around,
        }
    }

    fn turn(&mut self, holds: bool) {
        self.taken = self.around && !self.any && holds;
        self.any |= self.taken;
    }
}
