//! Checks that all brackets close; otherwise the source is truncated or a character
//! is missing. Tells for each token of a body what is around it, in one pass: texts that
//! programs write have very long bodies.

use thiserror::Error;

use super::preprocess::Seen;
use super::{Token, is_name};

/// A bracket that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("`{bracket}` is never closed; every bracket must be closed in the source itself")]
pub struct Unclosed {
    pub bracket: char,
    /// The line of the source, counted from 1.
    pub line: usize,
}

/// Checks that every bracket is closed by one of its kind. A closing bracket too many
/// is left to the compiler.
pub(super) fn closed(seen: &Seen) -> Result<(), Unclosed> {
    let mut open: Vec<(char, usize)> = Vec::new();
    for (token, line) in seen.tokens.iter().zip(&seen.lines) {
        let opens = match token.as_str() {
            "(" | "[" | "{" => {
                open.extend(token.chars().next().map(|bracket| (bracket, *line)));
                continue;
            }
            ")" => '(',
            "]" => '[',
            "}" => '{',
            _ => continue,
        };
        match open.pop() {
            Some((bracket, line)) if bracket != opens => return Err(Unclosed { bracket, line }),
            _ => {}
        }
    }
    match open.pop() {
        Some((bracket, line)) => Err(Unclosed { bracket, line }),
        None => Ok(()),
    }
}

/// What is around the tokens of a body whose brackets all close.
pub(super) struct Nesting {
    /// By token: the innermost bracket that is open there.
    around: Vec<Option<usize>>,
    /// By bracket: the one that belongs to it.
    partner: Vec<usize>,
    /// By token: the commas before it in its bracket.
    commas: Vec<usize>,
    /// By token: the last `=` before it in its statement.
    assignment: Vec<Option<usize>>,
    /// By token: where casts in front of it begin, perhaps: brackets with words, stars,
    /// brackets and the sizes of arrays alone.
    casts: Vec<usize>,
}

/// A bracket that is open.
struct Open {
    at: usize,
    commas: usize,
    /// Whether what it has may name a type, such as `float (*)[4]`.
    is_type: bool,
}

impl Nesting {
    /// Of a body. A bracket is that of a call where `is_call` says so.
    pub fn of(body: &[Token], is_call: impl Fn(usize) -> bool) -> Self {
        let mut nesting = Self {
            around: Vec::with_capacity(body.len()),
            partner: (0..body.len()).collect(),
            commas: Vec::with_capacity(body.len()),
            assignment: Vec::with_capacity(body.len()),
            casts: Vec::with_capacity(body.len() + 1),
        };
        let mut open: Vec<Open> = Vec::new();
        let (mut commas, mut assignment) = (0, None);
        nesting.casts.push(0);
        for (at, token) in body.iter().enumerate() {
            let closes = matches!(token.as_str(), ")" | "]" | "}");
            let inner = if closes { open.pop() } else { None };
            if let Some(inner) = &inner {
                (nesting.partner[at], nesting.partner[inner.at]) = (inner.at, at);
                commas = inner.commas;
            }
            nesting.around.push(open.last().map(|open| open.at));
            nesting.commas.push(commas);
            nesting.assignment.push(assignment);
            let mut casts = at + 1;
            let may_be_type = match (token.as_str(), &inner) {
                ("]", _) => true,
                (")", Some(inner)) => {
                    if inner.is_type && inner.at + 1 < at && !is_call(inner.at) {
                        casts = nesting.casts[inner.at];
                    }
                    inner.is_type
                }
                ("(" | "[" | "*", _) => true,
                (word, _) => is_name(word),
            };
            nesting.casts.push(casts);
            if let Some(open) = open.last_mut() {
                open.is_type &= may_be_type;
            }
            match token.as_str() {
                "(" | "[" | "{" => open.push(Open {
                    at,
                    commas: std::mem::take(&mut commas),
                    is_type: true,
                }),
                "," => commas += 1,
                "=" => assignment = Some(at),
                _ => {}
            }
            if matches!(token.as_str(), ";" | "{" | "}") {
                assignment = None;
            }
        }
        nesting
    }

    /// The innermost bracket that is open at `at`.
    pub fn around(&self, at: usize) -> Option<usize> {
        self.around.get(at).copied().flatten()
    }

    /// The index behind the bracket that closes the one at `open`, or behind `open` if no
    /// bracket is there.
    pub fn behind(&self, open: usize) -> usize {
        self.partner
            .get(open)
            .map_or(open, |close| (*close).max(open))
            + 1
    }

    /// The commas before `at` in its bracket.
    pub fn commas(&self, at: usize) -> usize {
        self.commas.get(at).copied().unwrap_or(0)
    }

    /// The last `=` before `at` in its statement.
    pub fn assignment(&self, at: usize) -> Option<usize> {
        self.assignment.get(at).copied().flatten()
    }

    /// The position before what may be casts in front of `at`.
    pub fn casts(&self, at: usize) -> usize {
        self.casts.get(at).copied().unwrap_or(at)
    }
}
