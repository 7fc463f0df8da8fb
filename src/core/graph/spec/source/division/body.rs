//! What one function adds to the graph of values.

use std::collections::BTreeSet;

use super::statements::{
    Body, Statement, after, before, is_global_word, is_loaded, is_variable, outside_of_subscripts,
    read,
};
use super::{Flow, Indivisible, Node};
use crate::codelet::AddressSpace;
use crate::graph::spec::source::function::{Function, close, parts};
use crate::graph::spec::source::usage::{ASSIGNMENTS, Known, is_operand};
use crate::graph::spec::source::{Token, is_name};

/// Functions of the language that write through pointers to private or local memory.
const WRITERS: [&str; 6] = ["fract", "frexp", "modf", "sincos", "lgamma_r", "remquo"];

/// Beginnings of functions whose results depend on other work-items.
const COLLECTIVE: [&str; 6] = ["work_group_", "sub_group_", "intel_", "__", "arm_", "nv_"];

/// Tokens of the longest statement that is read: each is compared with the others.
const LONGEST: usize = 4096;

/// A function, while its statements are read.
struct Reader<'a, 'f> {
    function: &'a Function,
    known: &'f Known<'a>,
    /// Names of pointers to global memory.
    global: BTreeSet<&'a str>,
    /// Names of other pointers.
    pointers: BTreeSet<&'a str>,
    /// Names of arrays.
    arrays: BTreeSet<&'a str>,
    flow: &'f mut Flow<'a>,
}

/// Adds a function to the graph.
///
/// # Errors
/// What keeps its groups from running separately.
pub(super) fn add<'a>(
    function: &'a Function,
    known: &Known<'a>,
    flow: &mut Flow<'a>,
) -> Result<(), Indivisible> {
    let unreadable = || Indivisible::Unreadable(function.name.clone());
    let body: Body<'a> = read(&function.body).ok_or_else(unreadable)?;
    if body.statements.iter().any(|s| s.tokens.len() > LONGEST) {
        return Err(unreadable());
    }
    let of = |is_global: bool| {
        let pointers = function.parameters.iter().filter(|p| p.pointer);
        let own = pointers.filter(move |p| is_global == reaches_all(p.address));
        own.map(|p| p.name.as_str()).collect()
    };
    let mut reader = Reader {
        function,
        known,
        global: of(true),
        pointers: of(false),
        arrays: BTreeSet::new(),
        flow,
    };
    for statement in &body.statements {
        reader.declare(statement.tokens);
    }
    for (index, condition) in body.conditions.iter().enumerate() {
        let made_of: Vec<Node<'a>> = (condition.iter())
            .flat_map(|tokens| reader.made_of(tokens))
            .collect();
        let node = Node::Guard(&function.name, index);
        reader.flow.fixed.insert(node);
        reader.flow.depends(node, made_of);
        if body.loops.contains(&index) {
            reader.flow.touches.insert(node);
        }
    }
    body.statements.iter().try_for_each(|s| reader.statement(s))
}

fn reaches_all(address: AddressSpace) -> bool {
    matches!(address, AddressSpace::Global | AddressSpace::Constant)
}

impl<'a> Reader<'a, '_> {
    fn value(&self, name: &'a str) -> Node<'a> {
        Node::Value(&self.function.name, name)
    }

    /// Notes the pointers that a statement declares.
    fn declare(&mut self, tokens: &'a [Token]) {
        let global = (tokens.iter())
            .take_while(|token| !matches!(token.as_str(), "=" | "(" | "["))
            .any(is_global_word);
        for (index, part) in parts(tokens).into_iter().enumerate() {
            let end = part.iter().position(|token| token == "=" || token == "[");
            let head = &part[..end.unwrap_or(part.len())];
            let is_array = end.is_some_and(|end| part[end] == "[")
                && (head.len() > 1 || index > 0)
                && head.iter().all(|token| is_name(token));
            if let Some(name) = head.last().filter(|_| is_array) {
                self.arrays.insert(name);
            }
            let star = head.iter().position(|token| token == "*");
            // `T *p`, or `*p` after the first comma.
            let is_declared = star.is_some_and(|star| star > 0 || index > 0)
                && head.iter().all(|token| token == "*" || is_name(token));
            if let Some(name) = head.last().filter(|name| is_declared && is_name(name)) {
                match global {
                    true => self.global.insert(name),
                    false => self.pointers.insert(name),
                };
            }
        }
    }

    /// What the value of an expression is made of.
    fn made_of(&self, tokens: &'a [Token]) -> Vec<Node<'a>> {
        let names = (0..tokens.len()).filter(|at| is_variable(tokens, *at));
        names.map(|at| self.used(tokens, at)).collect()
    }

    fn used(&self, tokens: &'a [Token], at: usize) -> Node<'a> {
        let name = tokens[at].as_str();
        let is_called = tokens.get(at + 1).is_some_and(|token| token == "(");
        match () {
            () if is_called && (name.starts_with("atom")) => Node::Chance,
            () if is_called && self.known.contains_key(name) => Node::Returned(name),
            () if self.global.contains(name) && is_loaded(tokens, at) => {
                Node::Data(&self.function.name, name)
            }
            () => self.value(name),
        }
    }

    fn statement(&mut self, statement: &Statement<'a>) -> Result<(), Indivisible> {
        let own = self.function.name.as_str();
        let guards: Vec<Node<'a>> = (statement.guards.iter())
            .map(|guard| Node::Guard(own, *guard))
            .chain([Node::Guard(own, 0)])
            .collect();
        if statement
            .tokens
            .first()
            .is_some_and(|token| token == "return")
        {
            let made_of = self.made_of(statement.tokens);
            let all = made_of.into_iter().chain(guards.iter().copied());
            self.flow.depends(Node::Returned(own), all);
        }
        for (index, part) in parts(statement.tokens).into_iter().enumerate() {
            self.part(part, &guards, index > 0)?;
        }
        Ok(())
    }

    /// A part of a statement, up to a comma or behind one.
    fn part(
        &mut self,
        part: &'a [Token],
        guards: &[Node<'a>],
        behind: bool,
    ) -> Result<(), Indivisible> {
        let mut all = self.made_of(part);
        let chooses = part.iter().any(|t| matches!(t.as_str(), "?" | "&&" | "||"));
        let divides = part.iter().enumerate().any(|(at, token)| {
            let is_number = |token: &Token| token.starts_with(|c: char| c.is_ascii_digit());
            matches!(token.as_str(), "/" | "%" | "/=" | "%=")
                && !part.get(at + 1).is_some_and(is_number)
        });
        let touched: Vec<usize> = (0..part.len())
            .filter(|at| self.touches(part, *at))
            .collect();
        let points = touched.iter().any(|at| {
            // The star of `*p` and the brackets of `vload4(i, p)` are for the pointer alone.
            let word = |at: Option<usize>| at.and_then(|at| part.get(at)).map_or("", |t| t);
            let (before, next) = (word(at.checked_sub(1)), word(Some(at + 1)));
            let is_alone = matches!((before, next), ("," | "(", "," | ")"));
            !matches!(next, "[" | "(") && before != "*" && !is_alone
        });
        if chooses || points {
            self.flow.fixed.extend(all.iter().copied());
        }
        let choice = part
            .iter()
            .position(|t| matches!(t.as_str(), "?" | "&&" | "||"));
        if points
            || choice
                .zip(touched.last())
                .is_some_and(|(choice, last)| *last > choice)
        {
            self.flow.touches.extend(all.iter().copied());
        }
        if divides || !touched.is_empty() {
            self.flow.touches.extend(guards.iter().copied());
        }
        if divides {
            self.flow.divisors.extend(all.iter().copied());
        }
        all.extend_from_slice(guards);
        let within: Vec<Node<'a>> = match chooses {
            true => guards.iter().chain(&all).copied().collect(),
            false => guards.to_vec(),
        };
        let around = |start: usize| if start == 0 { guards } else { &within };
        for at in 0..part.len() {
            match part[at].as_str() {
                "[" => {
                    let end = close(part, at).unwrap_or(part.len());
                    let inside = self.made_of(&part[at + 1..end]);
                    self.flow.fixed.extend(inside.iter().copied());
                    self.flow.touches.extend(inside);
                }
                "=" => {
                    let target = before(part, at);
                    let guards = around(target.0);
                    self.assigned(part, target, &all, guards)?;
                    if behind && target.0 == 0 && part[0] == "*" {
                        // `T x = 1, *p = q;` declares p, and looks like a store.
                        self.assigned(part, (at - 1, at), &all, guards)?;
                    }
                }
                "++" | "--" => {
                    let target = match at > 0 && is_operand(&part[at - 1]) {
                        true => before(part, at),
                        false => after(part, at + 1),
                    };
                    self.assigned(part, target, &all, around(target.0))?;
                }
                sign if ASSIGNMENTS.contains(&sign) => {
                    let target = before(part, at);
                    self.assigned(part, target, &all, around(target.0))?;
                }
                "&" if at == 0 || !is_operand(&part[at - 1]) => {
                    if let Some(name) = part[at + 1..].iter().find(|token| is_name(token))
                        && !self.global.contains(name.as_str())
                    {
                        self.flow.depends(self.value(name), all.iter().copied());
                    }
                }
                _ if is_variable(part, at) && part.get(at + 1).is_some_and(|t| t == "(") => {
                    self.call(part, at, &all, &within)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether memory is touched at the name at `at`, through a pointer or in a function that
    /// may do so. Notes the address of the pointer.
    fn touches(&mut self, part: &'a [Token], at: usize) -> bool {
        if !is_variable(part, at) {
            return false;
        }
        let name = part[at].as_str();
        if part.get(at + 1).is_some_and(|token| token == "(") {
            const MEMORY: [&str; 5] = ["vload", "vstore", "atom", "async_work_group_", "prefetch"];
            let is_memory = MEMORY.iter().any(|begin| name.starts_with(begin));
            return is_memory || self.known.contains_key(name);
        }
        let is_global = self.global.contains(name);
        let is_pointer = is_global || self.pointers.contains(name);
        if !is_loaded(part, at) || !(is_pointer || self.arrays.contains(name)) {
            return false;
        }
        let address = match is_global {
            true => self.value(name),
            false => Node::Address(&self.function.name, name),
        };
        self.flow.fixed.insert(address);
        self.flow.touches.insert(address);
        true
    }

    /// What an address is made of that an expression has, where it is that of a pointer to local
    /// or private memory.
    fn address_of(&self, tokens: &'a [Token]) -> Vec<Node<'a>> {
        let names = (0..tokens.len()).filter(|at| is_variable(tokens, *at));
        let of = |at: usize| {
            let name = tokens[at].as_str();
            let taken = at > 0 && tokens[at - 1] == "&";
            let is_pointer = self.pointers.contains(name);
            match taken || !is_loaded(tokens, at) {
                true if is_pointer => Some(Node::Address(&self.function.name, name)),
                // Where an array or a variable is, does not change.
                true if taken || self.arrays.contains(name) => None,
                _ => Some(self.used(tokens, at)),
            }
        };
        names.filter_map(of).collect()
    }

    /// Something was assigned to what is in a range of a part.
    fn assigned(
        &mut self,
        part: &'a [Token],
        (start, end): (usize, usize),
        all: &[Node<'a>],
        guards: &[Node<'a>],
    ) -> Result<(), Indivisible> {
        let target = &part[start..end];
        let outside = outside_of_subscripts(target);
        let names = outside
            .iter()
            .copied()
            .filter(|at| is_variable(target, *at));
        let base = names
            .clone()
            .find(|at| self.global.contains(target[*at].as_str()));
        let stores = target.len() > 1;
        let Some(base) = base else {
            let cast = outside.iter().any(|at| is_global_word(&target[*at]));
            let is_call = |at: usize| target.get(at + 1).is_some_and(|token| token == "(");
            let called = (names.clone())
                .any(|at| is_call(at) && self.known.contains_key(target[at].as_str()));
            if cast || called {
                return Err(Indivisible::Pointer(self.function.name.clone()));
            }
            for at in names {
                self.changed(part, &target[at], all, !stores);
            }
            return Ok(());
        };
        if !stores {
            self.changed(part, &target[base], all, false);
            return Ok(());
        }
        let mut address: Vec<Node<'a>> = guards.to_vec();
        for at in (0..target.len()).filter(|at| is_variable(target, *at)) {
            address.push(match at == base {
                true => self.value(&target[at]),
                false => self.used(target, at),
            });
        }
        self.flow.stores.extend(address);
        Ok(())
    }

    /// A variable has changed, perhaps a pointer that is another name of something now.
    fn changed(&mut self, part: &'a [Token], name: &'a str, all: &[Node<'a>], whole: bool) {
        let value = self.value(name);
        self.flow.depends(value, all.iter().copied());
        if whole && self.pointers.contains(name) {
            let address = Node::Address(&self.function.name, name);
            self.flow.depends(address, self.address_of(part));

            // What is written through one name is read through the other.
            for at in (0..part.len()).filter(|at| is_variable(part, *at)) {
                let name = part[at].as_str();
                let has_address = self.pointers.contains(name)
                    || self.arrays.contains(name)
                    || at > 0 && part[at - 1] == "&";
                match self.used(part, at) {
                    Node::Value(..) if !has_address => {}
                    other => self.flow.depends(other, [value]),
                }
            }
        }
    }

    fn call(
        &mut self,
        part: &'a [Token],
        at: usize,
        all: &[Node<'a>],
        guards: &[Node<'a>],
    ) -> Result<(), Indivisible> {
        let name = part[at].as_str();
        let end = close(part, at + 1).unwrap_or(part.len() - 1);
        let given = parts(&part[at + 2..end]);
        let is_global = |argument: &[Token]| {
            let mut names = (0..argument.len()).filter(|at| is_variable(argument, *at));
            names.any(|at| self.global.contains(argument[at].as_str()) && !is_loaded(argument, at))
        };
        if let Some(called) = self.known.get(name) {
            self.flow
                .depends(Node::Guard(&called.name, 0), guards.iter().copied());
            for (parameter, argument) in called.parameters.iter().zip(&given) {
                let node = Node::Value(&called.name, &parameter.name);
                let made_of = self.made_of(argument);
                self.flow.depends(node, made_of.iter().copied());
                if parameter.pointer && !reaches_all(parameter.address) {
                    let address = Node::Address(&called.name, &parameter.name);
                    self.flow.depends(address, self.address_of(argument));
                    if is_global(argument) {
                        return Err(Indivisible::Pointer(self.function.name.clone()));
                    }
                    for other in made_of {
                        self.flow.depends(other, [node]);
                    }
                }
            }
            return Ok(());
        }
        let inside = self.made_of(&part[at + 2..end]);
        let copies = name.starts_with("async_work_group_");
        let to = match name {
            _ if name.starts_with("vstore") => given.get(2),
            _ if copies => given.first(),
            _ if name.starts_with("atom") => given.first(),
            _ => None,
        };
        if let Some(to) = to {
            if is_global(to) {
                let others = given.iter().enumerate().filter(|(index, _)| match copies {
                    true => *index != 1,
                    false => *index > 0,
                });
                let address: Vec<Node<'a>> = others
                    .flat_map(|(_, argument)| self.made_of(argument))
                    .collect();
                self.flow
                    .stores
                    .extend(address.into_iter().chain(guards.iter().copied()));
            } else {
                let own = &self.function.name;
                let names = given.get(1).into_iter().flat_map(|from| from.iter());
                let copied = names.filter(|name| copies && self.global.contains(name.as_str()));
                let copied = copied.map(|name| Node::Data(own, name));
                let all: Vec<Node<'a>> = copied.chain(all.iter().copied()).collect();
                for node in self.made_of(to) {
                    self.flow.depends(node, all.iter().copied());
                }
            }
        }
        let reads = name.starts_with("vload") || name == "prefetch";
        if reads || to.is_some() {
            self.flow.fixed.extend(inside.iter().copied());
            // The first argument of `vstore` is what is stored.
            let stored = usize::from(name.starts_with("vstore"));
            for argument in given.iter().skip(stored) {
                let names = (0..argument.len()).filter(|at| is_variable(argument, *at));
                let touched = names.map(|at| {
                    let is_indexed = argument.get(at + 1).is_some_and(|token| token == "[");
                    match self.global.contains(argument[at].as_str()) && !is_indexed {
                        true => self.value(&argument[at]),
                        false => self.used(argument, at),
                    }
                });
                let touched: Vec<Node<'a>> = touched.collect();
                self.flow.touches.extend(touched);
            }
        }
        let is_language = matches!(
            name,
            "if" | "for" | "while" | "switch" | "return" | "sizeof"
        );
        if WRITERS.contains(&name) {
            for node in inside.iter().copied() {
                self.flow.depends(node, all.iter().copied());
            }
        }
        let hands_out = given.iter().any(|argument| is_global(argument));
        let understood = reads || to.is_some() || is_language;
        let collective = COLLECTIVE.iter().any(|begin| name.starts_with(begin));
        if (hands_out && !understood) || (collective && name != "__attribute__") {
            return Err(Indivisible::UnknownFunction(name.to_owned()));
        }
        Ok(())
    }
}
