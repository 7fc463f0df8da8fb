//! Where in an expression names stand: what is loaded through a pointer, and what an
//! assignment changes.

use crate::graph::spec::source::function::close;
use crate::graph::spec::source::usage::is_operand;
use crate::graph::spec::source::{Token, is_name};

/// Whether a token says that memory is global or constant.
pub(super) fn is_global_word(token: &Token) -> bool {
    matches!(
        token.as_str(),
        "__global" | "global" | "__constant" | "constant"
    )
}

/// Whether there is a name, of a variable or a function.
pub(super) fn is_variable(tokens: &[Token], at: usize) -> bool {
    let member = at > 0 && matches!(tokens[at - 1].as_str(), "." | "->");
    is_name(&tokens[at]) && !member && !is_global_word(&tokens[at])
}

/// Whether a star loads through a pointer.
fn is_star(tokens: &[Token], at: usize) -> bool {
    tokens[at] == "*" && (at == 0 || !is_operand(&tokens[at - 1]))
}

/// The bracket that the one at `shut` closes.
fn opening(tokens: &[Token], shut: usize) -> Option<usize> {
    (0..shut)
        .rev()
        .find(|open| close(tokens, *open) == Some(shut))
}

/// Whether something is loaded through the pointer at `at`, or perhaps.
pub(super) fn is_loaded(tokens: &[Token], at: usize) -> bool {
    let next = |at: usize| tokens.get(at).map_or("", String::as_str);
    if matches!(next(at + 1), "[" | "->") {
        return true;
    }
    // The name, and all brackets around it: each may be what a star or an index is for.
    let (mut start, mut end) = (at, at);
    loop {
        let mut before = start;
        // Casts, as `*(global int *)p`.
        while before > 0 && tokens[before - 1] == ")" {
            let Some(open) = opening(tokens, before - 1) else {
                return true;
            };
            before = open;
        }
        let stars = tokens[..before]
            .iter()
            .rev()
            .take_while(|token| *token == "*")
            .count();
        // `T *p` declares, and a pointer is no factor.
        let declares = (tokens[..before - stars].last())
            .is_some_and(|token| token != ")" && is_operand(token));
        if stars > usize::from(declares) {
            return true;
        }
        let around = (0..start).rev().find(|open| {
            let brackets = matches!(tokens[*open].as_str(), "(" | "[" | "{");
            brackets && close(tokens, *open).is_some_and(|close| close > end)
        });
        let Some(open) = around else { return false };
        let Some(shut) = close(tokens, open) else {
            return true;
        };
        let calls = open > 0 && is_name(&tokens[open - 1]) && is_operand(&tokens[open - 1]);
        if tokens[open] == "(" && calls {
            let called = tokens[open - 1].as_str();
            return called.starts_with("vload");
        }
        if matches!(next(shut + 1), "[" | "->") {
            return true;
        }
        (start, end) = (open, shut);
    }
}

/// The positions that are in no subscript.
pub(super) fn outside_of_subscripts(tokens: &[Token]) -> Vec<usize> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        all.push(at);
        at = match tokens[at].as_str() {
            "[" => close(tokens, at).unwrap_or(tokens.len()),
            _ => at + 1,
        };
    }
    all
}

/// The range of the expression that ends before `at`, with the stars before it.
pub(super) fn before(tokens: &[Token], at: usize) -> (usize, usize) {
    let mut start = at;
    while start > 0 {
        let last = start - 1;
        match tokens[last].as_str() {
            "]" | ")" => {
                start = opening(tokens, last).unwrap_or(0);
                // `(p)` may follow a cast, and `f(x)` a name.
                let more = start > 0 && (is_name(&tokens[start - 1]) || tokens[start - 1] == ")");
                if !more && tokens[start] == "(" {
                    break;
                }
            }
            "++" | "--" | "." | "->" => start = last,
            name if is_name(name) => {
                start = last;
                if start == 0 || !matches!(tokens[start - 1].as_str(), "." | "->") {
                    break;
                }
            }
            _ => break,
        }
    }
    // Stars and casts, as in `*(global int *)p`.
    while start > 0 {
        if is_star(tokens, start - 1) {
            start -= 1;
        } else if tokens[start - 1] == ")"
            && let Some(open) = opening(tokens, start - 1)
        {
            start = open;
        } else {
            break;
        }
    }
    (start, at)
}

/// The range of the expression that begins at `at`.
pub(super) fn after(tokens: &[Token], at: usize) -> (usize, usize) {
    let mut end = at;
    while tokens.get(end).is_some_and(|token| token == "*") {
        end += 1;
    }
    end += 1;
    while let Some(token) = tokens.get(end) {
        match token.as_str() {
            "[" => end = close(tokens, end).map_or(tokens.len(), |shut| shut + 1),
            "." | "->" => end += 2,
            _ => break,
        }
    }
    if tokens.get(at).is_some_and(|token| token == "(") {
        end = end.max(close(tokens, at).map_or(tokens.len(), |shut| shut + 1));
    }
    (at.min(tokens.len()), end.min(tokens.len()))
}
