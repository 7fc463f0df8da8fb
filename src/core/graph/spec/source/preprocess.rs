//! The preprocessor: `#if` is evaluated, macros are replaced.

use std::collections::{BTreeMap, BTreeSet};

use super::condition;
use super::macros::{Macro, Macros, Room, defined_as, expanded};
use super::predefined::is_compilers;
use super::token::{Token, tokens, word};
use crate::codelet::opencl_c::{Line, lines};

/// What asks in a condition whether a macro is defined.
const DEFINED: &str = "defined";

/// Most levels of macros that ask so, and most tokens of a condition with them.
const LEVELS: usize = 16;
const LONGEST: usize = 10_000;

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
    /// Whether a condition could not be evaluated, or asks for a macro of the compiler that
    /// nobody knows.
    pub uncertain: bool,
    /// What may still be added in place of names.
    pub room: Room,
}

/// The tokens of a source with these macros (of `-D` and of the compiler). Conditions that
/// cannot be evaluated count as true.
pub(super) fn preprocess(text: &str, given: &BTreeMap<String, String>) -> Seen {
    let mut macros: Macros = (given.iter())
        .map(|(name, value)| (name.clone(), Macro::Plain(tokens(value))))
        .collect();
    let mut branches: Vec<Branch> = Vec::new();
    let mut seen = Seen::default();
    // The tokens since the last directive, with their lines. A macro's arguments may
    // extend over several lines.
    let mut since: Vec<(Token, usize)> = Vec::new();
    let lines = lines(text);
    let own = defined_in(&lines);
    for line in &lines {
        let taken = branches.last().is_none_or(|branch| branch.taken);
        let words = line.tokens.iter().map(|token| (word(token), token.line));
        if line.directive.is_none() {
            if taken {
                since.extend(words);
            }
            continue;
        }
        expanded(&std::mem::take(&mut since), &macros, &mut seen);
        let words: Vec<Token> = words.map(|(word, _)| word).collect();
        let rest = words.get(1..).unwrap_or_default();
        let defined = || rest.first().is_some_and(|name| macros.contains_key(name));
        let first = words.first().map(String::as_str);
        let asks = match first {
            Some("if" | "ifdef" | "ifndef") => taken,
            Some("elif") => branches.last().is_some_and(Branch::is_open),
            _ => false,
        };
        let unknown =
            |name: &Token| is_compilers(name) && !macros.contains_key(name) && !own.contains(name);
        seen.uncertain |= asks && rest.iter().any(unknown);
        match first {
            Some("if") => {
                let holds = asks && holds(rest, &macros, &mut seen);
                branches.push(Branch::open(taken, holds));
            }
            Some("ifdef") => branches.push(Branch::open(taken, defined())),
            Some("ifndef") => branches.push(Branch::open(taken, !defined())),
            Some("elif") => {
                let holds = asks && holds(rest, &macros, &mut seen);
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
            Some("define") if taken => macros.extend(defined_as(&line.tokens, rest)),
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

/// The names of the macros that a text defines.
fn defined_in(lines: &[Line]) -> BTreeSet<Token> {
    let directives = lines.iter().filter(|line| line.directive.is_some());
    let defines = directives.filter_map(|line| match &line.tokens[..] {
        [define, name, ..] if define.word == "define" => Some(word(name)),
        _ => None,
    });
    defines.collect()
}

/// Whether a condition holds, as far as is known.
fn holds(condition: &[Token], macros: &Macros, seen: &mut Seen) -> bool {
    let holds =
        replaced(condition, macros, seen).and_then(|tokens| condition::holds(&tokens, macros));
    seen.uncertain |= holds.is_none();
    holds.unwrap_or(true)
}

/// A condition with its macros replaced; `None` if one cannot be.
fn replaced(condition: &[Token], macros: &Macros, seen: &mut Seen) -> Option<Vec<Token>> {
    let asks = |token: &Token| match macros.get(token) {
        Some(Macro::Plain(text)) => Some(text).filter(|text| text.iter().any(|t| t == DEFINED)),
        _ => None,
    };
    // What asks for a name is answered before names are replaced, also within macros.
    let mut plain = answered(condition, macros)?;
    for _ in 0..LEVELS {
        if !plain.iter().any(|token| asks(token).is_some()) {
            break;
        }
        let tokens = plain.iter().flat_map(|token| match asks(token) {
            Some(text) => text.clone(),
            None => vec![token.clone()],
        });
        plain = answered(&tokens.take(LONGEST).collect::<Vec<_>>(), macros)?;
    }
    let plain: Vec<(Token, usize)> = plain.into_iter().map(|token| (token, 0)).collect();
    let (from, had) = (seen.tokens.len(), std::mem::take(&mut seen.has_macros));
    expanded(&plain, macros, seen);
    seen.lines.truncate(from);
    let made = seen.tokens.split_off(from);
    let whole = !std::mem::replace(&mut seen.has_macros, had);
    whole.then_some(made)
}

/// A condition whose questions for names have answers.
fn answered(condition: &[Token], macros: &Macros) -> Option<Vec<Token>> {
    let mut answered = Vec::new();
    let mut at = 0;
    while let Some(token) = condition.get(at) {
        at += 1;
        if token != DEFINED {
            answered.push(token.clone());
            continue;
        }
        let bracket = usize::from(condition.get(at).is_some_and(|sign| sign == "("));
        let name = condition.get(at + bracket)?;
        answered.push(u8::from(macros.contains_key(name)).to_string());
        at += 1 + 2 * bracket;
    }
    Some(answered)
}

impl Branch {
    /// Whether its next condition is asked.
    fn is_open(&self) -> bool {
        self.around && !self.any
    }

    fn open(around: bool, holds: bool) -> Self {
        let taken = around && holds;
        Self {
            taken,
            any: taken,
            around,
        }
    }

    fn turn(&mut self, holds: bool) {
        self.taken = self.is_open() && holds;
        self.any |= self.taken;
    }
}
