//! What the values of a kernel are made of: a graph from each value to those that it may
//! depend on, wherever and whenever in the kernel they arise.

use std::collections::{BTreeMap, BTreeSet};

/// A value, by function and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node<'a> {
    /// A variable with all that is in it. Of a pointer to global memory, the address.
    Value(&'a str, &'a str),
    /// The address in a pointer to local or private memory.
    Address(&'a str, &'a str),
    /// What was loaded from global memory through a pointer.
    Data(&'a str, &'a str),
    /// What a function returns.
    Returned(&'a str),
    /// A condition of a function. The first one is that it was called, and has not
    /// returned.
    Guard(&'a str, usize),
    /// Something that depends on the order in which work-items run.
    Chance,
}

/// The graph, and the values that matter.
#[derive(Default)]
pub(super) struct Flow<'a> {
    from: BTreeMap<Node<'a>, BTreeSet<Node<'a>>>,
    /// What the addresses of stores to global memory are made of, and the conditions on
    /// which they happen.
    pub stores: BTreeSet<Node<'a>>,
    /// What must not be changed for a trial: what addresses and conditions are made of.
    pub fixed: BTreeSet<Node<'a>>,
    /// What decides which memory is touched, and how often a loop runs.
    pub touches: BTreeSet<Node<'a>>,
    /// What may divide a whole number.
    pub divisors: BTreeSet<Node<'a>>,
}

impl<'a> Flow<'a> {
    /// A value may depend on others.
    pub fn depends(&mut self, value: Node<'a>, on: impl IntoIterator<Item = Node<'a>>) {
        self.from.entry(value).or_default().extend(on);
    }

    /// All that some values depend on, themselves included.
    pub fn all(&self, values: &BTreeSet<Node<'a>>) -> BTreeSet<Node<'a>> {
        let mut found = values.clone();
        let mut open: Vec<Node<'a>> = values.iter().copied().collect();
        while let Some(node) = open.pop() {
            let address = match node {
                // Where something was loaded depends on the pointer.
                Node::Data(function, name) => Some(Node::Value(function, name)),
                _ => None,
            };
            let from = self.from.get(&node).into_iter().flatten().copied();
            for next in from.chain(address) {
                if found.insert(next) {
                    open.push(next);
                }
            }
        }
        found
    }
}
