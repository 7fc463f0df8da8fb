//! How a function uses its pointers: whether it reads or writes through them.

use std::collections::{BTreeMap, BTreeSet};

use super::brackets::Nesting;
use super::function::Function;
use super::{Token, is_name};

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

/// Most brackets around a pointer that are followed; more are the work of no author.
const MOST_BRACKETS: usize = 256;

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
        // Another function of this name, which compilers refuse, may have others.
        Some(Some(accesses)) if accesses.len() == function.parameters.len() => {
            return accesses.clone();
        }
        // Recursion, which OpenCL C forbids.
        Some(None) => return vec![Access::ASSUMED; function.parameters.len()],
        _ if followed.depth == DEEPEST => {
            return vec![Access::ASSUMED; function.parameters.len()];
        }
        _ => {}
    }
    followed.known.insert(&function.name, None);
    followed.depth += 1;
    let mut all = vec![Access::default(); function.parameters.len()];
    let text = Text::of(&function.body);
    for (index, parameter) in function.parameters.iter().enumerate() {
        if !parameter.pointer {
            continue;
        }
        let mut names = BTreeSet::from([parameter.name.as_str()]);
        let mut open = vec![parameter.name.as_str()];
        while let Some(name) = open.pop() {
            for at in text.uses.get(name).into_iter().flatten().copied() {
                let mut follower = Follower {
                    text: &text,
                    known,
                    followed,
                    names: &mut names,
                    open: &mut open,
                    left: MOST_BRACKETS,
                };
                all[index].and(follower.pointer(at, at + 1));
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

/// The text of a body, looked at once for all its pointers.
struct Text<'a> {
    body: &'a [Token],
    nesting: Nesting,
    /// Where each name stands that is no member of a structure.
    uses: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Text<'a> {
    fn of(body: &'a [Token]) -> Self {
        let mut uses: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, token) in body.iter().enumerate() {
            let member = at > 0 && matches!(body[at - 1].as_str(), "." | "->");
            if is_name(token) && !member {
                uses.entry(token).or_default().push(at);
            }
        }
        Self {
            body,
            nesting: Nesting::of(body, |open| is_call(body, open)),
            uses,
        }
    }
}

/// Follows a pointer through the expressions of a body. What it finds is never less than
/// what happens; what it cannot follow counts as read and written.
struct Follower<'a, 'b> {
    text: &'b Text<'a>,
    known: &'b Known<'a>,
    followed: &'b mut Followed<'a>,
    /// Other names that the pointer is given.
    names: &'b mut BTreeSet<&'a str>,
    /// Those that are not followed yet.
    open: &'b mut Vec<&'a str>,
    /// How many more brackets are looked at.
    left: usize,
}

impl<'a> Follower<'a, '_> {
    fn token(&self, at: usize) -> &'a str {
        self.text.body.get(at).map_or("", String::as_str)
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
                Some(_) if !self.goes_on() => return Access::ASSUMED,
                Some(open) => (start, end) = (open, self.behind(open)),
                None => break,
            }
        }
        if let Some(open) = self.text.nesting.around(start)
            && self.token(open) == "("
            && is_call(self.text.body, open)
        {
            let position = self.text.nesting.commas(start);
            return called(self.before(open), position, self.known, self.followed);
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
                    "[" => self.behind(end),
                    _ => end + 2,
                };
            }
            match self.group(start) {
                Some(open) if open + 1 == start && self.token(end) == ")" => {
                    if !self.goes_on() {
                        return Access::ASSUMED;
                    }
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
        if !self.goes_on() {
            return Access::ASSUMED;
        }
        if !is_operand(self.before(sign)) || may_be_cast {
            access.and(self.pointer(sign, end));
        }
        if is_operand(self.before(sign)) {
            access.and(done(before, after));
        }
        access
    }

    /// Whether one more bracket may be looked at.
    fn goes_on(&mut self) -> bool {
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        more
    }

    fn behind(&self, open: usize) -> usize {
        self.text.nesting.behind(open)
    }

    /// The position before what may be casts in front of `start`, which are no arguments.
    fn without_casts(&self, start: usize) -> usize {
        self.text.nesting.casts(start)
    }

    /// The bracket around `at`, if it only groups.
    fn group(&self, at: usize) -> Option<usize> {
        let open = self.text.nesting.around(at)?;
        let is_condition = matches!(self.before(open), "if" | "while" | "for" | "switch");
        let groups = self.token(open) == "(" && !is_call(self.text.body, open);
        (groups && !is_condition).then_some(open)
    }

    /// Notes the name that a pointer at `at` is assigned to, as in `q = p + i`, and tells
    /// whether there is one.
    fn store(&mut self, at: usize) -> bool {
        let around = self.text.nesting.around(at);
        let around = around.filter(|open| self.token(*open) != "{");
        let sign = self.text.nesting.assignment(at);
        let sign = sign.filter(|sign| around.is_none_or(|open| *sign > open));
        let Some(name) = sign.and_then(|i| i.checked_sub(1)) else {
            return false;
        };
        // Memory and members of structures are not followed.
        let is_plain = is_name(self.token(name)) && !matches!(self.before(name), "." | "->");
        if is_plain && self.names.insert(self.token(name)) {
            self.open.push(self.token(name));
        }
        is_plain
    }
}

/// Whether a bracket has arguments.
fn is_call(body: &[Token], open: usize) -> bool {
    let callee = open.checked_sub(1).map_or("", |at| body[at].as_str());
    is_name(callee) && !is_keyword(callee) && !matches!(callee, "else" | "do" | "case")
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

    /// Texts that programs write: each takes minutes, memory or the stack where a token looks
    /// at all the others.
    #[test]
    fn long_bodies_are_followed_in_one_pass() {
        const MANY: usize = 20_000;
        let names = 1..MANY;
        let last = MANY - 1;
        let first = "global int *q0 = p; ";
        let forward: String = names
            .clone()
            .map(|i| format!("global int *q{i} = q{}; ", i - 1))
            .collect();
        let backward: String = names
            .clone()
            .rev()
            .map(|i| format!("q{i} = q{}; ", i - 1))
            .collect();
        let declared: String = names
            .clone()
            .map(|i| format!(", *q{i} = q{}", i - 1))
            .collect();
        let cast: String = (names.clone())
            .map(|i| format!("q{i} = (global int *)((q{} + 1)); ", i - 1))
            .collect();
        let arguments = ", p".repeat(MANY);
        let sum = " + p[i]".repeat(MANY);
        for (body, written) in [
            (format!("{first}{forward} q{last}[i] = 1;"), true),
            (format!("{backward} {first} q{last}[i] = 1;"), true),
            (format!("global int *q0 = p{declared}; *q{last} = 1;"), true),
            (format!("{first}{cast} x = q{last}[i];"), false),
            (format!("x = get(p{arguments});"), true),
            (format!("x = 0{sum};"), false),
            (
                format!("{}p{}[i] = 1;", "(".repeat(MANY), ")".repeat(MANY)),
                true,
            ),
            (
                format!("x = {}p{};", "*&(".repeat(MANY), ")".repeat(MANY)),
                true,
            ),
            (format!("x = {}p[i];", "(global int *)".repeat(MANY)), false),
        ] {
            let begin: String = body.chars().take(60).collect();
            assert_eq!(of_body(&body).written, written, "{begin}");
        }
    }
}
