//! The statements of a function's body, each with the conditions on which it depends, and where in
//! expressions names stand.

use crate::graph::spec::source::function::close;
use crate::graph::spec::source::usage::is_operand;
use crate::graph::spec::source::{Token, is_name};

/// A statement without a body, or a condition.
pub(super) struct Statement<'a> {
    pub tokens: &'a [Token],
    /// The conditions on which it depends, as indices.
    pub guards: Vec<usize>,
}

/// A body in statements.
#[derive(Default)]
pub(super) struct Body<'a> {
    pub statements: Vec<Statement<'a>>,
    /// The tokens of each condition. The first one is that nothing has returned. A loop
    /// that can be left in its middle has several.
    pub conditions: Vec<Vec<&'a [Token]>>,
    /// Which of them are those of loops.
    pub loops: Vec<usize>,
}

/// Statements within statements, at most.
const DEEPEST: usize = 256;

/// Statements that are read, at most: the body of a `do` is read twice.
const MOST: usize = 1 << 20;

/// What reads a body.
struct Reader<'a> {
    body: Body<'a>,
    /// The conditions that hold here.
    guards: Vec<usize>,
    /// Those of the loops and the `switch` around.
    loops: Vec<usize>,
    /// How many statements are around.
    depth: usize,
    /// How many may still be read.
    left: usize,
}

/// The statements of a body; `None` if they cannot be understood.
pub(super) fn read(tokens: &[Token]) -> Option<Body<'_>> {
    let mut reader = Reader {
        body: Body::default(),
        guards: vec![0],
        loops: Vec::new(),
        depth: 0,
        left: MOST,
    };
    reader.body.conditions.push(Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        at = reader.statement(tokens, at)?;
    }
    Some(reader.body)
}

impl<'a> Reader<'a> {
    /// Reads a statement; returns the index of what follows.
    fn statement(&mut self, tokens: &'a [Token], at: usize) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        self.depth += 1;
        let next = if self.depth > DEEPEST {
            None
        } else {
            self.inside(tokens, at)
        };
        self.depth -= 1;
        next
    }

    fn inside(&mut self, tokens: &'a [Token], at: usize) -> Option<usize> {
        match tokens.get(at)?.as_str() {
            "{" => {
                let end = close(tokens, at)?;
                let mut inner = at + 1;
                while inner < end {
                    inner = self.statement(tokens, inner)?;
                }
                Some(end + 1)
            }
            ";" => Some(at + 1),
            "if" => {
                let (condition, next) = bracket(tokens, at + 1)?;
                self.simple(condition);
                let after = self.guarded(condition, |reader| reader.statement(tokens, next))?;
                match tokens.get(after).map(String::as_str) {
                    Some("else") => {
                        self.guarded(condition, |reader| reader.statement(tokens, after + 1))
                    }
                    _ => Some(after),
                }
            }
            "while" | "switch" => {
                let (condition, next) = bracket(tokens, at + 1)?;
                self.repeated(condition, |reader| {
                    reader.simple(condition);
                    reader.statement(tokens, next)
                })
            }
            "do" => {
                let end = self.skipped(tokens, at + 1)?;
                if tokens.get(end)? != "while" {
                    return None;
                }
                let (condition, next) = bracket(tokens, end + 1)?;
                self.repeated(condition, |reader| {
                    reader.simple(condition);
                    reader.statement(tokens, at + 1)
                })?;
                Some(next + 1)
            }
            "for" => {
                let (head, next) = bracket(tokens, at + 1)?;
                let mut parts = head.split(|token| token == ";");
                let (first, condition, step) = (parts.next()?, parts.next()?, parts.next()?);
                self.simple(first);
                self.repeated(condition, |reader| {
                    reader.simple(condition);
                    reader.simple(step);
                    reader.statement(tokens, next)
                })
            }
            "case" | "default" => {
                let colon = tokens[at..].iter().position(|token| token == ":")?;
                Some(at + colon + 1)
            }
            "__attribute__" => Some(close(tokens, at + 1)? + 1),
            "goto" | "asm" | "__asm" | "__asm__" | "typedef" => None,
            _ => {
                let end = end_of(tokens, at)?;
                self.ending(&tokens[at..end]);
                Some(end + 1)
            }
        }
    }

    /// Where a statement ends, without taking it in.
    fn skipped(&mut self, tokens: &'a [Token], at: usize) -> Option<usize> {
        let mut other = Reader {
            body: Body::default(),
            guards: Vec::new(),
            loops: Vec::new(),
            depth: self.depth,
            left: self.left,
        };
        other.body.conditions.push(Vec::new());
        let next = other.statement(tokens, at);
        self.left = other.left;
        next
    }

    /// Takes a statement in that may leave what is around it.
    fn ending(&mut self, tokens: &'a [Token]) {
        self.simple(tokens);
        let leaves = match tokens.first().map(String::as_str) {
            Some("return") => vec![0],
            Some("break" | "continue") => self.loops.clone(),
            _ => return,
        };
        // What follows is only reached where the conditions here do not hold.
        let here: Vec<&'a [Token]> = (self.guards.iter())
            .filter(|guard| !leaves.contains(guard))
            .flat_map(|guard| self.body.conditions[*guard].clone())
            .collect();
        for guard in leaves {
            self.body.conditions[guard].extend(here.iter().copied());
        }
    }

    fn simple(&mut self, tokens: &'a [Token]) {
        if !tokens.is_empty() {
            self.body.statements.push(Statement {
                tokens,
                guards: self.guards.clone(),
            });
        }
    }

    fn guarded<T>(&mut self, condition: &'a [Token], read: impl FnOnce(&mut Self) -> T) -> T {
        self.guards.push(self.body.conditions.len());
        self.body.conditions.push(vec![condition]);
        let result = read(self);
        self.guards.pop();
        result
    }

    fn repeated<T>(&mut self, condition: &'a [Token], read: impl FnOnce(&mut Self) -> T) -> T {
        self.loops.push(self.body.conditions.len());
        self.body.loops.push(self.body.conditions.len());
        let result = self.guarded(condition, read);
        self.loops.pop();
        result
    }
}

/// What is in the brackets at `at`, and the index of what follows.
fn bracket(tokens: &[Token], at: usize) -> Option<(&[Token], usize)> {
    let end = close(tokens, at).filter(|_| tokens[at] == "(")?;
    Some((&tokens[at + 1..end], end + 1))
}

/// The index of the semicolon that ends a statement.
fn end_of(tokens: &[Token], at: usize) -> Option<usize> {
    let mut index = at;
    loop {
        match tokens.get(index)?.as_str() {
            ";" => return Some(index),
            "(" | "[" | "{" => index = close(tokens, index)? + 1,
            _ => index += 1,
        }
    }
}

// Where in an expression names stand: what is loaded through a pointer, and what an
// assignment changes.

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
