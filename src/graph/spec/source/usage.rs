//! How a function uses its pointers: whether it reads or writes through them.

use std::collections::{BTreeMap, BTreeSet};

use super::function::{Function, behind, close, parts};
use super::token::{Token, is_name};

/// How memory behind a pointer is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub read: bool,
    pub written: bool,
    /// Whether this is partly assumed, since the pointer cannot be followed.
    pub guessed: bool,
}

impl Access {
    const READ: Self = Self::new(true, false, false);
    const WRITE: Self = Self::new(false, true, false);
    const BOTH: Self = Self::new(true, true, false);
    const ASSUMED: Self = Self::new(true, true, true);

    const fn new(read: bool, written: bool, guessed: bool) -> Self {
        Self {
            read,
            written,
            guessed,
        }
    }

    fn and(&mut self, other: Self) {
        self.read |= other.read;
        self.written |= other.written;
        self.guessed |= other.guessed;
    }
}

pub(super) type Known<'a> = BTreeMap<&'a str, &'a Function>;

/// Most levels of calls that are followed; the limit protects the stack.
const DEEPEST: usize = 64;

/// How functions use their parameters. Each function is followed once, however often
/// it is called.
#[derive(Default)]
pub(super) struct Followed<'a> {
    /// `None` while a function is being followed.
    known: BTreeMap<&'a str, Option<Vec<Access>>>,
    depth: usize,
}

pub(super) const ASSIGNMENTS: [&str; 10] =
    ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="];

/// By parameter: how a function uses it.
pub(super) fn follow<'a>(
    function: &'a Function,
    known: &Known<'a>,
    followed: &mut Followed<'a>,
) -> Vec<Access> {
    match followed.known.get(function.name.as_str()) {
        Some(Some(accesses)) => return accesses.clone(),
        // Recursion, which OpenCL C forbids.
        Some(None) => return vec![Access::ASSUMED; function.parameters.len()],
        None if followed.depth == DEEPEST => {
            return vec![Access::ASSUMED; function.parameters.len()];
        }
        None => {}
    }
    followed.known.insert(&function.name, None);
    followed.depth += 1;
    let mut all = vec![Access::default(); function.parameters.len()];
    for (index, parameter) in function.parameters.iter().enumerate() {
        if !parameter.pointer {
            continue;
        }
        let mut names = BTreeSet::from([parameter.name.as_str()]);
        // A new name for the pointer is searched for from the begin again.
        loop {
            let before = names.len();
            let mut access = Access::default();
            for (at, token) in function.body.iter().enumerate() {
                let member = at > 0 && matches!(function.body[at - 1].as_str(), "." | "->");
                if names.contains(token.as_str()) && !member {
                    let seen = one(&function.body, at, known, followed, &mut names);
                    access.and(seen);
                }
            }
            all[index] = access;
            if names.len() == before {
                break;
            }
        }
        if parameter.read_only {
            all[index].written = false;
        }
    }
    followed.depth -= 1;
    followed.known.insert(&function.name, Some(all.clone()));
    all
}

/// How a pointer is used at `at`.
fn one<'a>(
    body: &'a [Token],
    at: usize,
    known: &Known<'a>,
    followed: &mut Followed<'a>,
    names: &mut BTreeSet<&'a str>,
) -> Access {
    let next = |i: usize| body.get(i).map_or("", String::as_str);
    let before = |i: usize| i.checked_sub(1).map_or("", |i| body[i].as_str());
    if matches!(next(at + 1), "[" | "->") {
        let mut end = at + 1;
        while matches!(next(end), "[" | "." | "->") {
            end = if next(end) == "[" {
                behind(body, end)
            } else {
                end + 2
            };
        }
        let address = before(at) == "&" && !is_operand(before(at - 1));
        return match address {
            true => passed(body, at - 1, known, followed, names),
            false => done(before(at), next(end)),
        };
    }
    // `*p`, or `*(p + i)`.
    if before(at) == "*" && !is_operand(before(at - 1)) {
        return done(before(at - 1), next(at + 1));
    }
    if let Some(open) = enclosing(body, at)
        && body[open] == "("
        && before(open) == "*"
        && !is_operand(before(open - 1))
    {
        return done(before(open - 1), next(behind(body, open)));
    }
    if let Some(open) = enclosing(body, at)
        && body[open] == "("
        && next(behind(body, open)) == "["
    {
        // `(p + i)[j]`
        let index = behind(body, open);
        return done(before(open), next(behind(body, index)));
    }
    passed(body, at, known, followed, names)
}

/// How a value between these two tokens is used.
fn done(before: &str, after: &str) -> Access {
    match after {
        "=" => Access::WRITE,
        "++" | "--" => Access::BOTH,
        other if ASSIGNMENTS.contains(&other) => Access::BOTH,
        _ if matches!(before, "++" | "--") => Access::BOTH,
        _ => Access::READ,
    }
}

/// How a pointer is used that is passed to a function or assigned to a name.
fn passed<'a>(
    body: &'a [Token],
    at: usize,
    known: &Known<'a>,
    followed: &mut Followed<'a>,
    names: &mut BTreeSet<&'a str>,
) -> Access {
    let call = enclosing(body, at).filter(|open| {
        let callee = open.checked_sub(1).map(|i| body[i].as_str());
        body[*open] == "(" && callee.is_some_and(|name| is_name(name) && !is_keyword(name))
    });
    if let Some(open) = call
        && let Some(end) = close(body, open)
    {
        let inside = &body[open + 1..end];
        let mut begin = open + 1;
        let mut position = 0;
        for (index, part) in parts(inside).iter().enumerate() {
            if (begin..begin + part.len()).contains(&at) {
                position = index;
            }
            begin += part.len() + 1;
        }
        return called(&body[open - 1], position, known, followed);
    }
    // `q = p + i`: q is another name of the pointer.
    let statement = (body[..at].iter()).rposition(|t| matches!(t.as_str(), ";" | "{" | "}"));
    let begin = statement.map_or(0, |i| i + 1);
    let sign = (begin..at).rev().find(|i| body[*i] == "=");
    if let Some(name) = sign.and_then(|i| body.get(i.checked_sub(1)?))
        && is_name(name)
    {
        names.insert(name);
        return Access::default();
    }
    // `p++` and `p += n` move the pointer itself; a comparison reads no memory.
    let after = body.get(at + 1).map_or("", String::as_str);
    let moved = matches!(after, "++" | "--" | "==" | "!=" | "=") || ASSIGNMENTS.contains(&after);
    match moved {
        true => Access::default(),
        false => Access::ASSUMED,
    }
}

/// How a function uses its argument at `position`.
fn called<'a>(
    name: &str,
    position: usize,
    known: &Known<'a>,
    followed: &mut Followed<'a>,
) -> Access {
    if let Some(function) = known.get(name) {
        let accesses = follow(function, known, followed);
        return accesses.get(position).copied().unwrap_or(Access::ASSUMED);
    }
    match name {
        _ if name.starts_with("vload") => Access::READ,
        _ if name.starts_with("vstore") => Access::WRITE,
        "prefetch" | "sizeof" => Access::default(),
        "async_work_group_copy" | "async_work_group_strided_copy" => match position {
            0 => Access::WRITE,
            _ => Access::READ,
        },
        "atomic_store" | "atomic_store_explicit" | "atomic_init" => Access::WRITE,
        "atomic_load" | "atomic_load_explicit" => Access::READ,
        _ if name.starts_with("atom") => Access::BOTH,
        // Functions such as `fract(x, p)` write a result.
        "fract" | "frexp" | "modf" | "sincos" | "lgamma_r" | "remquo" => Access::WRITE,
        _ => Access::ASSUMED,
    }
}

/// The innermost bracket that is open at `at`.
fn enclosing(body: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for index in (0..at).rev() {
        match body[index].as_str() {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth == 0 => {
                return (body[index] != "{").then_some(index);
            }
            "(" | "[" | "{" => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Words before a bracket that are no calls.
fn is_keyword(token: &str) -> bool {
    matches!(token, "if" | "while" | "for" | "switch" | "return")
}

/// Whether a token ends an operand, so that a star or `&` after it is binary.
pub(super) fn is_operand(token: &str) -> bool {
    let keyword = matches!(token, "return" | "else" | "do" | "case");
    let word = token.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
    (word && !keyword) || matches!(token, ")" | "]")
}
