//! How often some words occur in a text. Each byte is read once, by one core: the cores of a
//! subtask share its bytes, and each counts on its own.
use std::error::Error;

use pdawl::program::{Block, Program, ProgramTask};
use pdawl::session::{ClusterOptions, Nodes};

pub const TEXT: &[u8] = include_bytes!("../docs/cluster.md");
pub const WORDS: [&str; 5] = ["a", "node", "nodes", "the", "subtasks"];
const SUBTASKS: u64 = 12;

/// Bytes around a subtask's that it reads, too: a word that begins in its part may end later.
const AROUND: u64 = 32;

pub fn word_count() -> Program {
    let mut program = Program::new("word-count");
    let length = TEXT.len() as u64;
    let text = program.given(1, length, |_, place| TEXT[place as usize]);
    let counts = program.space::<u64>(1, WORDS.len() as u64);
    let part = move |subtask: u64| length * subtask / SUBTASKS..length * (subtask + 1) / SUBTASKS;
    let around = move |subtask: u64| {
        let part = part(subtask);
        let end = (part.end + AROUND).min(length);
        Block::new(0..1, part.start.saturating_sub(1)..end)
    };
    program.add_task(ProgramTask::reduction(
        "count-words",
        SUBTASKS,
        part,
        (text.read(around), counts.write(move |_| counts.whole())),
        (0_u64, |sum, other| *sum += other),
        move |places, (text, mut counts)| {
            let first = text.block().columns.start;
            let is_letter = |place: u64| {
                let byte = place
                    .checked_sub(first)
                    .and_then(|at| text.slice().get(at as usize));
                byte.is_some_and(u8::is_ascii_alphabetic)
            };
            let begins = |place: &u64| is_letter(*place) && !is_letter(place.wrapping_sub(1));
            for begin in places.filter(begins) {
                let letters = (begin..).take_while(|place| is_letter(*place));
                let word: Vec<u8> = letters.map(|place| text[(0, place)]).collect();
                let known = WORDS.iter().position(|known| known.as_bytes() == word);
                known
                    .into_iter()
                    .for_each(|number| counts.slice()[number] += 1);
            }
        },
    ));
    program.set_result(counts);
    program
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let counts = Nodes::join(ClusterOptions::default())?
        .run(word_count())?
        .to_vec::<u64>()?;
    // Only the first node has them.
    for (word, count) in WORDS.iter().zip(counts.into_iter().flatten()) {
        println!("{word}: {count}");
    }
    Ok(())
}
