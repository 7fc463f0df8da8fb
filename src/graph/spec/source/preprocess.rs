//! What a compiler reads: `#if` followed, plain macros replaced.

use std::collections::{BTreeMap, BTreeSet};

use super::condition;
use super::token::{JOINED, Token, is_name, tokens, without_comments};

/// A macro: its text, or that it takes arguments, and is left alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Macro {
    Plain(Vec<Token>),
    Function,
}

/// Known macros.
pub(super) type Macros = BTreeMap<String, Macro>;

/// Macros within macros, at most.
const DEEPEST: usize = 16;

/// Where an `#if` stands.
struct Branch {
    /// Whether its text counts.
    taken: bool,
    /// Whether one of its branches has counted.
    any: bool,
    /// Whether what is around it counts.
    around: bool,
}

/// What a compiler sees of a source.
#[derive(Default)]
pub(super) struct Seen {
    pub tokens: Vec<Token>,
    /// Of each token, the line that it comes from, counted from 1.
    pub lines: Vec<usize>,
}

/// The tokens that a compiler sees with these macros, which are its `-D`
/// options. Conditions that cannot be told count as true.
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
    // Only a bracket right behind the name makes it take arguments.
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
