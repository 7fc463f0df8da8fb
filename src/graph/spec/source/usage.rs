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
                    let mut follower = Follower {
                        body: &function.body,
                        known,
                        followed,
                        names: &mut names,
                    };
                    access.and(follower.pointer(at, at + 1));
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

/// Follows a pointer through the expressions of a body. What it finds is never less than
/// what happens; what it cannot follow counts as read and written.
struct Follower<'a, 'b> {
    body: &'a [Token],
    known: &'b Known<'a>,
    followed: &'b mut Followed<'a>,
    /// Other names that the pointer is given.
    names: &'b mut BTreeSet<&'a str>,
}

impl<'a> Follower<'a, '_> {
    fn token(&self, at: usize) -> &'a str {
        self.body.get(at).map_or("", String::as_str)
    }

    fn before(&self, at: usize) -> &'a str {
        at.checked_sub(1).map_or("", |at| self.token(at))
    }

    /// How the pointer is used that is the value of the tokens from `start` to `end`.
    fn pointer(&mut self, mut start: usize, mut end: usize) -> Access {
        let mut stored = false;
        loop {
            if matches!(self.token(end), "[" | "->") {
                return self.element(start, end);
            }
            start = self.without_casts(start);
            match self.before(start) {
                // A pointer is no factor, so this loads or stores, but for `T *p`.
                "*" if !self.declares(start - 1) => return self.element(start - 1, end),
                // The pointer's own address.
                "&" => return Access::ASSUMED,
                _ => {}
            }
            // A pointer that is stored in brackets, as in `(q = p)`, has two values.
            stored |= self.store(start);
            match self.group(start) {
                Some(open) => (start, end) = (open, behind(self.body, open)),
                None => break,
            }
        }
        if let Some(open) = enclosing(self.body, start).filter(|open| self.body[*open] == "(")
            && self.is_call(open)
        {
            let position = self.position(open, start);
            let call = position
                .map(|position| called(&self.body[open - 1], position, self.known, self.followed));
            return call.unwrap_or(Access::ASSUMED);
        }
        // `p++` and `p += n` move the pointer itself; a comparison reads no memory.
        let after = self.token(end);
        let moved =
            matches!(after, "++" | "--" | "==" | "!=" | "=") || ASSIGNMENTS.contains(&after);
        match stored || moved {
            true => Access::default(),
            false => Access::ASSUMED,
        }
    }

    /// Whether a star is that of a declaration, behind the name of a type.
    fn declares(&self, star: usize) -> bool {
        let before = self.before(star);
        is_name(before) && is_operand(before)
    }

    /// How the element is used that is the value of the tokens from `start` to `end`, or of
    /// more after them.
    fn element(&mut self, mut start: usize, mut end: usize) -> Access {
        loop {
            while matches!(self.token(end), "[" | "." | "->") {
                end = match self.token(end) {
                    "[" => behind(self.body, end),
                    _ => end + 2,
                };
            }
            match self.group(start) {
                Some(open) if open + 1 == start && self.token(end) == ")" => {
                    (start, end) = (open, end + 1);
                }
                _ => break,
            }
        }
        let (before, after) = (self.before(start), self.token(end));
        if before != "&" {
            return done(before, after);
        }
        let sign = start - 1;
        let mut access = Access::default();
        // After brackets with a word, the sign may be of an address or of a number.
        let may_be_cast = self.without_casts(sign) < sign;
        if !is_operand(self.before(sign)) || may_be_cast {
            access.and(self.pointer(sign, end));
        }
        if is_operand(self.before(sign)) {
            access.and(done(before, after));
        }
        access
    }

    /// The position before what may be casts in front of `start`: brackets with words,
    /// stars, brackets and the sizes of arrays alone, which are no arguments.
    fn without_casts(&self, mut start: usize) -> usize {
        while self.before(start) == ")" {
            let open = (0..start - 1)
                .rev()
                .find(|open| self.body[*open] == "(" && behind(self.body, *open) == start);
            let Some(open) = open.filter(|open| !self.is_call(*open)) else {
                break;
            };
            if !self.may_be_type(open + 1, start - 1) {
                break;
            }
            start = open;
        }
        start
    }

    /// Whether the tokens from `begin` to `end` may name a type, such as `float (*)[4]`.
    fn may_be_type(&self, begin: usize, end: usize) -> bool {
        let mut at = begin;
        while at < end {
            at = match self.token(at) {
                "[" => behind(self.body, at),
                "*" | "(" | ")" => at + 1,
                word if is_name(word) => at + 1,
                _ => return false,
            };
        }
        begin < end
    }

    /// The bracket around `at`, if it only groups.
    fn group(&self, at: usize) -> Option<usize> {
        let open = enclosing(self.body, at)?;
        let is_condition = matches!(self.before(open), "if" | "while" | "for" | "switch");
        (self.body[open] == "(" && !self.is_call(open) && !is_condition).then_some(open)
    }

    /// Whether a bracket has arguments.
    fn is_call(&self, open: usize) -> bool {
        let callee = self.before(open);
        is_name(callee) && !is_keyword(callee) && !matches!(callee, "else" | "do" | "case")
    }

    /// Among the arguments behind a bracket, the one that `at` is in.
    fn position(&self, open: usize, at: usize) -> Option<usize> {
        let end = close(self.body, open)?;
        let mut begin = open + 1;
        for (position, part) in parts(&self.body[open + 1..end]).iter().enumerate() {
            if (begin..begin + part.len()).contains(&at) {
                return Some(position);
            }
            begin += part.len() + 1;
        }
        None
    }

    /// Notes the name that a pointer at `at` is assigned to, as in `q = p + i`, and tells
    /// whether there is one.
    fn store(&mut self, at: usize) -> bool {
        let ends = |token: &Token| matches!(token.as_str(), ";" | "{" | "}");
        let begin = enclosing(self.body, at)
            .map(|open| open + 1)
            .or_else(|| self.body[..at].iter().rposition(ends).map(|i| i + 1));
        let sign = (begin.unwrap_or(0)..at)
            .rev()
            .take_while(|i| !ends(&self.body[*i]))
            .find(|i| self.body[*i] == "=");
        let Some(name) = sign.and_then(|i| i.checked_sub(1)) else {
            return false;
        };
        // Memory and members of structures are not followed.
        let is_plain = is_name(self.token(name)) && !matches!(self.before(name), "." | "->");
        if is_plain {
            self.names.insert(self.token(name));
        }
        is_plain
    }
}

/// How an element between these two tokens is used.
fn done(before: &str, after: &str) -> Access {
    match after {
        "=" => Access::WRITE,
        "++" | "--" => Access::BOTH,
        other if ASSIGNMENTS.contains(&other) => Access::BOTH,
        _ if matches!(before, "++" | "--") => Access::BOTH,
        _ => Access::READ,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Access;
    use crate::graph::spec::source::kernels;

    /// How a kernel with this body uses its pointer `p`.
    fn of_body(body: &str) -> Access {
        let text = format!(
            "void put(global int *to, int x) {{ *to = x; }}\n\
             int get(global int *from) {{ return from[0]; }}\n\
             kernel void k(global int *p, int i, int c) {{ int x; {body} }}"
        );
        kernels(&text, &BTreeMap::new()).unwrap()[0].accesses[0]
    }

    #[test]
    fn stores_are_seen_in_every_form() {
        let stores = [
            "p[i] = 1;",
            "(p[i]) = 1;",
            "((p)[i]) = 1;",
            "((p + 1))[i] = 1;",
            "*p = 1;",
            "(*p) = 1;",
            "*(p + i) = 1;",
            "*((p + i)) = 1;",
            "*(global int *)(p + i) = 1;",
            "((global char *)p)[i] = 1;",
            "(c ? p : p + 1)[i] = 1;",
            "if (c) *p = 1;",
            "p[i]++;",
            "--(p[i]);",
            "(p[i]) += 2;",
            "put(p, 1);",
            "put(&p[i], 1);",
            "put(&(p[i]), 1);",
            "put((global int *)&p[i], 1);",
            "put((p + i), 1);",
            "x = get(((p))); put((p), x);",
            "global int *q = p; q[i] = 1;",
            "global int *q = (p + i); *q = 1;",
            "global int *q = &p[i]; *q = 1;",
            "global int *q = &(p[i]); (*q) = 1;",
            "global int *q; if ((q = p + 1)[0]) q[0] = 1;",
            "global int *q, *r; r = (q = p); *r = 1;",
            "global int **q = &p; (*q)[i] = 1;",
            "global int *q[2] = {p, p}; q[1][i] = 1;",
            "struct S s; s.q = p; s.q[i] = 1;",
            "global int (*q)[4] = (global int (*)[4])p; q[i][0] = 1;",
            "global int (*q)[4] = (global int (*)[4])&p[i]; q[i][0] = 1;",
            "global int (*q)[4][5] = (global int (*)[i + 1][5])(p + i); (*q)[0][0] = 1;",
            "((global int (*)[4])p)[i][0] = 1;",
            "((global int (*)[4])&p[i])[0][0] = 1;",
            "(*(global int (*)[4])p)[0] = 1;",
            "(*(global int (*)[4])&p[i])[0] = 1;",
            "put((global int *)(global int (*)[4])&p[i], 1);",
            "global int *q = (global int *)(global int (*)[4])&p[i]; *q = 1;",
            "vstore4(x, i, (p));",
            "atomic_add(&(p[i]), 1);",
            "unknown(&(p[i]));",
        ];
        for body in stores {
            assert!(of_body(body).written, "{body}");
        }
    }

    #[test]
    fn loads_are_seen_and_are_no_stores() {
        let loads = [
            "x = p[i];",
            "x = (p[i]);",
            "x = *p;",
            "x = *(p + i);",
            "x = *(global int *)(p + i);",
            "x = ((p + i))[1];",
            "x = c & p[i];",
            "x = c * (p + i)[0];",
            "if (p[i]) x = 1;",
            "while (c < p[i]) c++;",
            "x = get(p);",
            "x = get(&(p[i]));",
            "global int *q = p; x = q[i];",
            "x = (int)(p[i]);",
            "int2 y = (int2)(p[0], p[1]);",
            "x = i == p[i] ? 1 : 2;",
        ];
        for body in loads {
            let access = of_body(body);
            assert!(access.read && !access.written, "{body}: {access:?}");
        }
        // Either an address or a number.
        assert!(of_body("x = (c) & p[i];").read);
    }
}
