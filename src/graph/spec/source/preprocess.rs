//! The preprocessor: `#if` is evaluated, plain macros are replaced.

use std::collections::{BTreeMap, BTreeSet};

use super::condition;
use super::token::{JOINED, Token, is_name, tokens, without_comments};

/// A macro: its text, or that it has arguments, and is not replaced.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Macro {
    Plain(Vec<Token>),
    Function,
}

/// The macros that are defined.
pub(super) type Macros = BTreeMap<String, Macro>;

/// Most levels of macros within macros.
const DEEPEST: usize = 16;

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
}

/// The tokens of a source with these macros (of `-D`). Conditions that cannot be
/// evaluated count as true.
pub(super) fn preprocess(text: &str, given: &BTreeMap<String, String>) -> Seen {
    let mut macros: Macros = (given.iter())
        .map(|(name, value)| (name.clone(), Macro::Plain(tokens(value))))
        .collect();
    let mut branches: Vec<Branch> = Vec::new();
    let mut seen = Seen::default();
    let mut number = 1;
    for line in without_comments(text).split('\n') {
        let here = number;
        number += 1 + line.matches(JOINED).count();
        let taken = branches.last().is_none_or(|branch| branch.taken);
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            if taken {
                let (line, all) = (tokens(line), &mut seen.tokens);
                expand(&line, &macros, &mut BTreeSet::new(), 0, all);
                seen.lines.resize(all.len(), here);
            }
            continue;
        };
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
            Some("define") if taken => define(directive, rest, &mut macros),
            Some("undef") if taken => {
                if let Some(name) = rest.first() {
                    macros.remove(name);
                }
            }
            _ => {}
        }
    }
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

fn define(directive: &str, rest: &[Token], macros: &mut Macros) {
    let Some((name, value)) = rest.split_first() else {
        return;
    };
    // A macro has arguments only if a bracket follows its name at once.
    let behind = directive
        .find(name.as_str())
        .map(|at| &directive[at + name.len()..]);
    let known = match behind.is_some_and(|text| text.starts_with('(')) {
        true => Macro::Function,
        false => Macro::Plain(value.to_vec()),
    };
    macros.insert(name.clone(), known);
}

fn expand(
    line: &[Token],
    macros: &Macros,
    within: &mut BTreeSet<String>,
    depth: usize,
    all: &mut Vec<Token>,
) {
    for token in line {
        match macros.get(token) {
            Some(Macro::Plain(text))
                if is_name(token) && depth < DEEPEST && within.insert(token.clone()) =>
            {
                expand(text, macros, within, depth + 1, all);
                within.remove(token);
            }
            _ => all.push(token.clone()),
        }
    }
}
