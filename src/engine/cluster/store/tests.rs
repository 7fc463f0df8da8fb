use super::*;
use crate::machine::MachineStore;
use crate::policy::{NamedPolicy, PolicyOptions};
use crate::runtime::sim::{Sim, SimOptions};
use pdawl_core::cluster::space::Extent;

fn random_block(random: &mut fastrand::Rng, side: u64) -> Block {
    let mut range = || {
        let begin = random.u64(..side);
        begin..random.u64(begin..side) + 1
    };
    Block::new(range(), range())
}

/// A node's store, with the graph of its blocks.
struct Node {
    store: Store,
    graph: OpenGraph,
}

impl Node {
    fn new(runtime: &mut Sim, me: NodeId) -> Self {
        let options = PolicyOptions::default();
        let graph = OpenGraph::new(runtime, NamedPolicy::EAGER, options, (false, &[]));
        Self {
            store: Store::new(me, Arc::new(Copying::start()), 1 << 20),
            graph: graph.expect("a graph"),
        }
    }

    fn bytes(&self, runtime: &mut Sim, spaces: &Spaces, parts: &[SpaceBlock]) -> Option<Vec<u8>> {
        let length: u64 = parts.iter().map(|part| spaces.bytes(part)).sum();
        let mut bytes = vec![0; length as usize];
        let sources: Vec<Source> = parts.iter().cloned().map(Source::before).collect();
        let copied = (self.store).copy_all(&self.graph, runtime, spaces, &sources, &mut bytes);
        copied.ok().map(|()| bytes)
    }
}

/// Two nodes write blocks in turns. Whoever has a part of a block sends it to the
/// other one, and the block then has the numbers of an array.
#[test]
fn a_part_has_the_newest_numbers() {
    const SIDE: u64 = 9;
    let machine = MachineStore::at("/nonexistent").find("k40");
    let options = SimOptions {
        data: true,
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine.expect("a machine"), options).expect("a simulator");
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..100 {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: SIDE,
            columns: SIDE,
            element: 2,
        };
        let ids = [NodeId(0), NodeId(1)];
        let space = spaces.add(extent, [(extent.whole(), ids[0])]);
        let mut nodes = ids.map(|id| Node::new(&mut sim, id));
        let whole = extent.whole();
        let part = |block: &Block| SpaceBlock {
            space,
            block: block.clone(),
        };
        let insert =
            |node: &mut Node, sim: &mut Sim, spaces: &Spaces, block: &Block, data: &[u8]| {
                let Node { store, graph } = node;
                let inserted = store.insert_bytes(graph, sim, spaces, part(block), data);
                inserted.expect("memory");
            };
        nodes.iter_mut().for_each(|node| node.store.begin(1));
        let zeros = vec![0; 2 * whole.elements() as usize];
        insert(&mut nodes[0], &mut sim, &spaces, &whole, &zeros);
        let mut array = vec![0u16; whole.elements() as usize];
        for number in 1..12u16 {
            let block = random_block(&mut random, SIDE);
            let which = random.usize(..2);
            let cells = block.rows.clone().flat_map(|row| {
                let columns = block.columns.clone();
                columns.map(move |column| (row * SIDE + column) as usize)
            });
            let mut data = Vec::new();
            for (at, cell) in cells.enumerate() {
                array[cell] = number * 100 + at as u16;
                data.extend(array[cell].to_le_bytes());
            }
            spaces.written(&part(&block), ids[which]);
            nodes.iter_mut().for_each(|node| node.store.begin(1));
            insert(&mut nodes[which], &mut sim, &spaces, &block, &data);
            for (node, id) in nodes.iter_mut().zip(ids) {
                let Node { store, graph } = node;
                store.forget_overwritten(graph, (&part(&block), 0), |other| {
                    let mut holders = spaces.directory(space).holders(other);
                    holders.any(|(_, holder)| holder.node == id)
                });
            }

            let block = random_block(&mut random, SIDE);
            let to = random.usize(..2);
            let other = 1 - to;
            let holders = spaces.directory(space).holders(&block);
            let foreign = holders.filter(|(_, holder)| holder.node == ids[other]);
            let foreign: Vec<SpaceBlock> = foreign.map(|(block, _)| part(&block)).collect();
            let sources: Vec<Source> = foreign.iter().cloned().map(Source::before).collect();
            let message = nodes[other].bytes(&mut sim, &spaces, &foreign);
            let message = message.expect("the other node has them");
            let early = nodes[to].bytes(&mut sim, &spaces, &[part(&block)]);
            assert_eq!(early.is_none(), !message.is_empty());
            let request = RequestId(number.into());
            let Node { store, graph } = &mut nodes[to];
            let mut receive = |store: &mut Store, first: usize, data: &[u8]| {
                let (asked, data) = ((request, &sources[..]), (first as u64, data));
                let received = store.receive(graph, &mut sim, &spaces, asked, data);
                received.expect("memory")
            };
            // Some of it comes twice, from nodes that answer one after the other, and then in
            // messages of any length.
            let wrong = vec![0xEE; random.usize(..=message.len())];
            if wrong.len() < message.len() {
                assert_eq!(receive(store, 0, &wrong), Received::Some);
            }
            let mut first = 0;
            loop {
                let end = first + random.usize(..=message.len() - first);
                let received = receive(store, first, &message[first..end]);
                if received == Received::All {
                    assert_eq!(end, message.len());
                    break;
                }
                assert_eq!(received, Received::Some);
                if end > first + 1 {
                    // What comes late of the node before changes nothing.
                    let late = vec![0xDD; message.len() - end + 1];
                    assert_eq!(receive(store, end - 1, &late), Received::Some);
                }
                first = end;
            }
            let bytes = nodes[to].bytes(&mut sim, &spaces, &[part(&block)]);
            let bytes = bytes.expect("everything is there");
            let found = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
            let cells = block.rows.clone().flat_map(|row| {
                let columns = block.columns.clone();
                columns.map(move |column| (row * SIDE + column) as usize)
            });
            let right: Vec<u16> = cells.map(|cell| array[cell]).collect();
            assert_eq!(found.collect::<Vec<_>>(), right);
            let Node { store, graph } = &mut nodes[to];
            store.release(graph, request);
        }
        for node in nodes {
            node.graph.release(&mut sim);
        }
    }
}
