//! What all nodes of a run must have alike: the program, how it was built, and the options
//! that decide what is computed and where. Nodes compare one record of it before they open
//! files and devices ([`agree()`]).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Arrived, Wire, WireError};

/// What a node has: names and their values, the ones that decide the others first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement(Vec<(String, String)>);

/// Two nodes have different values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub name: String,
    /// The value of the first node, if it has one.
    pub first: Option<String>,
    /// The value of the other node, if it has one.
    pub other: Option<String>,
}

impl Agreement {
    /// Adds a name with its value. A name that is there already has a further value.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The first name whose values differ from those of another node, if there is one.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if self == other {
            return None;
        }
        let names = self.0.iter().chain(&other.0).map(|(name, _)| name);
        let mut pairs = names.map(|name| (name, self.values(name), other.values(name)));
        pairs
            .find(|(_, first, other)| first != other)
            .map(|(name, first, other)| Difference {
                name: name.clone(),
                first,
                other,
            })
    }

    fn values(&self, wanted: &str) -> Option<String> {
        let values = self.0.iter().filter(|(name, _)| name == wanted);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(" "))
    }
}

impl fmt::Display for Difference {
    /// As in `--tile is 64 at node 0 and not given`, to which the other node's name belongs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| match value {
            Some(value) => format!("is {value}"),
            None => "is not given".to_owned(),
        };
        let (first, other) = (shown(&self.first), shown(&self.other));
        write!(f, "{} {first} at node 0, and {other}", self.name)
    }
}

// All ranks compare what they must have alike, before anything else is said over a wire.
//
// The messages are JSON of a form that stays, so that programs of different versions
// understand each other's refusal. Only rank 0 compares. Every other rank waits for its
// answer, so all end for the same reason.

/// Between two looks at a wire without news.
const NAP: Duration = Duration::from_micros(200);

/// Time for the last messages to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// To rank 0: what the sender has.
    Mine(Agreement),
    /// From rank 0: all have the same.
    Agreed,
    /// From rank 0: one has something else.
    Unlike { why: String },
}

/// Returns when all ranks have reported to rank 0 that they have the same.
///
/// # Errors
/// [`WireError::Unlike`] at all ranks when one has something else, the loss of any rank,
/// and `stop`.
pub fn agree(wire: &mut dyn Wire, mine: &Agreement, stop: &AtomicBool) -> Result<(), WireError> {
    match wire.rank() {
        0 => compare(wire, mine, stop),
        _ => {
            say(wire, 0, &Word::Mine(mine.clone()))?;
            loop {
                // What others say already is for later: rank 0 passes on what ends a run.
                match next(wire, stop)? {
                    (0, Some(Word::Agreed)) => return Ok(()),
                    (0, Some(Word::Unlike { why })) => return Err(WireError::Unlike { why }),
                    (0, _) => return Err(WireError::Unknown { from: 0 }),
                    _ => {}
                }
            }
        }
    }
}

/// At rank 0: compares what all have with what it has itself.
fn compare(wire: &mut dyn Wire, mine: &Agreement, stop: &AtomicBool) -> Result<(), WireError> {
    let others = 1..wire.size();
    let mut answered = vec![false; wire.size()];
    let mut unlike = None;
    while unlike.is_none() && !others.clone().all(|rank| answered[rank]) {
        let (from, word) = next(wire, stop)?;
        answered[from] = true;
        unlike = match word {
            Some(Word::Mine(theirs)) => mine
                .difference(&theirs)
                .map(|difference| format!("{difference} at node {from}")),
            _ => Some(format!(
                "node {from} runs a version of the program that this one does not understand"
            )),
        };
    }
    let answer = match unlike.clone() {
        None => Word::Agreed,
        Some(why) => Word::Unlike { why },
    };
    for rank in others {
        say(wire, rank, &answer)?;
    }
    match unlike {
        None => Ok(()),
        Some(why) => {
            // That they do not leave is of no use to whoever reads why.
            let _ = wire.flush(LAST_WORDS);
            Err(WireError::Unlike { why })
        }
    }
}

fn say(wire: &mut dyn Wire, to: usize, word: &Word) -> Result<(), WireError> {
    // A record of texts is always JSON.
    let bytes = serde_json::to_vec(word).unwrap_or_default();
    wire.send(to, bytes)
}

/// The next message of another rank, if it is one of these.
fn next(wire: &mut dyn Wire, stop: &AtomicBool) -> Result<(usize, Option<Word>), WireError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(WireError::Interrupted);
        }
        match wire.poll()? {
            Some(Arrived::Message { from, bytes }) => {
                return Ok((from, serde_json::from_slice(&bytes).ok()));
            }
            Some(Arrived::Lost { rank, why }) => return Err(WireError::LostAtStart { rank, why }),
            Some(Arrived::Excluded { by }) => {
                let rank = wire.rank();
                return Err(WireError::Excluded { rank, by });
            }
            None => thread::sleep(NAP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::wire::LocalWire;
    use crate::cluster::wire::local::Options;

    fn of(entries: &[(&str, &str)]) -> Agreement {
        let mut agreement = Agreement::default();
        for (name, value) in entries {
            agreement.add(*name, *value);
        }
        agreement
    }

    #[test]
    fn equal_records_have_no_difference_whatever_their_order() {
        let one = of(&[("--size", "5"), ("-D", "n=1"), ("-D", "m=2")]);
        let other = of(&[("-D", "n=1"), ("-D", "m=2"), ("--size", "5")]);
        assert_eq!(one.difference(&one), None);
        assert_eq!(one.difference(&other), None);
    }

    #[test]
    fn the_first_name_with_other_values_is_reported_at_both_sides() {
        let first = of(&[("version", "1"), ("--size", "5"), ("--tile", "2")]);
        for (other, expected) in [
            (
                of(&[("version", "1"), ("--size", "6"), ("--tile", "3")]),
                "--size is 5 at node 0, and is 6",
            ),
            (
                of(&[("version", "1"), ("--size", "5")]),
                "--tile is 2 at node 0, and is not given",
            ),
            (
                of(&[
                    ("version", "1"),
                    ("--size", "5"),
                    ("--tile", "2"),
                    ("--steps", "9"),
                ]),
                "--steps is not given at node 0, and is 9",
            ),
        ] {
            let difference = first.difference(&other).unwrap();
            assert_eq!(difference.to_string(), expected);
        }
    }

    #[test]
    fn the_order_of_repeated_values_counts() {
        let one = of(&[("--load", "a"), ("--load", "b")]);
        let other = of(&[("--load", "b"), ("--load", "a")]);
        assert!(one.difference(&other).is_some());
    }

    fn of_size(size: &str) -> Agreement {
        let mut agreement = Agreement::default();
        agreement.add("version", "1");
        agreement.add("--size", size);
        agreement
    }

    /// What each of the ranks hears, which have these sizes.
    fn heard(sizes: &[&str]) -> Vec<Result<(), WireError>> {
        let options = Options {
            shuffle: Some(3),
            pulse: None,
        };
        let wires = LocalWire::cluster_with(sizes.len(), options);
        let stop = AtomicBool::new(false);
        let stop = &stop;
        thread::scope(|scope| {
            let ranks = wires.into_iter().zip(sizes);
            let ranks: Vec<_> = ranks
                .map(|(mut wire, size)| {
                    scope.spawn(move || {
                        let agreed = agree(&mut wire, &of_size(size), stop);
                        Box::new(wire).finish().unwrap();
                        agreed
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_with_the_same_agree() {
        for count in [1, 2, 5] {
            assert_eq!(heard(&vec!["5"; count]), vec![Ok(()); count]);
        }
    }

    #[test]
    fn all_ranks_learn_which_one_has_something_else() {
        for (place, sizes) in [["6", "5", "5"], ["5", "6", "5"], ["5", "5", "6"]]
            .iter()
            .enumerate()
        {
            let all = heard(sizes);
            for one in &all {
                let Err(WireError::Unlike { why }) = one else {
                    panic!("{one:?}");
                };
                assert!(why.starts_with("--size is "), "{why}");
                let names = format!("at node {place}");
                assert!(place == 0 || why.ends_with(&names), "{why}");
                assert_eq!(
                    Some(Err(WireError::Unlike { why: why.clone() })),
                    all.first().cloned()
                );
            }
        }
    }

    #[test]
    fn a_rank_that_says_something_else_is_named() {
        let mut wires = LocalWire::cluster(2);
        let mut second = wires.remove(1);
        second.send(0, b"hello".to_vec()).unwrap();
        let stop = AtomicBool::new(false);
        let refused = agree(&mut wires[0], &of_size("5"), &stop);
        let Err(WireError::Unlike { why }) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.starts_with("node 1 runs a version"), "{why}");
        // And it is told so.
        let answered = second.poll().unwrap();
        assert!(
            matches!(answered, Some(Arrived::Message { from: 0, .. })),
            "{answered:?}"
        );
    }

    #[test]
    fn a_rank_that_is_lost_meanwhile_ends_the_others() {
        let mut wires = LocalWire::cluster(3);
        drop(wires.remove(1));
        let stop = AtomicBool::new(false);
        for (wire, by) in wires.iter_mut().zip([0, 2]) {
            let lost = agree(wire, &of_size("5"), &stop);
            let is_lost = matches!(lost, Err(WireError::LostAtStart { rank: 1, .. }));
            assert!(is_lost, "rank {by}: {lost:?}");
        }
    }

    #[test]
    fn a_signal_ends_the_wait() {
        let mut wires = LocalWire::cluster(2);
        let stop = AtomicBool::new(true);
        let ended = agree(&mut wires[1], &of_size("5"), &stop);
        assert_eq!(ended, Err(WireError::Interrupted));
    }
}
