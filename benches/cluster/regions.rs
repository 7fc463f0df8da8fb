//! How long it takes to find and to change who has a block, by how many blocks there are.

use std::hint::black_box;
use std::time::Instant;

use pdawl_api::cluster::NodeId;
use pdawl_api::cluster::space::{Block, Directory, Holder};

const SEARCHES: u64 = 100_000;

fn holder(node: u64) -> Holder {
    Holder {
        node: NodeId(node as u32),
        initial: false,
    }
}

/// Regions of a row of which the last is as wide as all others: what a subtask of a sort
/// reads of others.
fn row(count: u64) -> Vec<Block> {
    let narrow = (0..count).map(|at| Block::new(0..1, at * 10..at * 10 + 10));
    narrow
        .chain([Block::new(0..1, count * 10..count * 20)])
        .collect()
}

/// Square blocks of a matrix.
fn grid(count: u64) -> Vec<Block> {
    let side = count.isqrt();
    let range = |at: u64| at * 10..at * 10 + 10;
    let blocks = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
    blocks
        .map(|(row, column)| Block::new(range(row), range(column)))
        .collect()
}

/// Blocks that are found, and then given to others.
pub fn figure() {
    for (name, blocks) in [
        ("row", row as fn(u64) -> Vec<Block>),
        ("grid", grid as fn(u64) -> Vec<Block>),
    ] {
        for count in [1_000, 10_000, 100_000] {
            let blocks = blocks(count);
            let mut directory = Directory::default();
            for (node, block) in blocks.iter().enumerate() {
                directory.set(block, holder(node as u64));
            }
            let mut random = fastrand::Rng::with_seed(1);
            let mut choose = || &blocks[random.usize(..count as usize * 9 / 10)];
            let begin = Instant::now();
            for _ in 0..SEARCHES {
                black_box(directory.holders(choose()).count());
            }
            let found = begin.elapsed().as_secs_f64() / SEARCHES as f64;
            let begin = Instant::now();
            for node in 0..SEARCHES {
                directory.set(choose(), holder(node));
            }
            let set = begin.elapsed().as_secs_f64() / SEARCHES as f64;
            println!(
                "{name} of {count} blocks: found in {:.0} ns, given to another in {:.0} ns",
                found * 1e9,
                set * 1e9
            );
        }
    }
}
