//! Workloads over nodes that safe functions compute: sorts, and a program with an update, a
//! reduction and views.

use std::sync::Arc;

use pdawl_api::cluster::space::{Block, Extent};
use pdawl_api::codelet::Element;
use pdawl_api::spread::NamedSpread;
use pdawl_api::verify::Checked;
use pdawl_api::workload::cluster::{
    ClusterWorkload, Fill, SortWorkload, generated, generated_as,
    program::{Program, ProgramTask},
};

use crate::cluster::Case;

/// A row of generated singles.
fn numbers(columns: u64, seed: u64) -> Fill {
    let extent = Extent {
        rows: 1,
        columns,
        element: 4,
    };
    generated(extent, seed)
}

/// Numbers in bands and ranks that are smaller at the end, and some of which many are equal.
fn sorts(seed: u64) -> Vec<(Arc<dyn ClusterWorkload>, u64)> {
    let sort = |numbers, tile, keys| -> (Arc<dyn ClusterWorkload>, u64) {
        let workload = SortWorkload::<f32>::new(numbers, tile, keys);
        (Arc::new(workload.expect("they are generated")), tile)
    };
    let awkward: Fill = Arc::new(|block: &Block, bytes: &mut [u8]| {
        let values = [
            f32::NAN,
            -0.0,
            f32::INFINITY,
            2.5,
            0.0,
            -f32::NAN,
            2.5,
            -1e30,
        ];
        for (to, place) in bytes.chunks_exact_mut(4).zip(block.columns.clone()) {
            to.copy_from_slice(&values[place as usize % 8].to_ne_bytes());
        }
        Ok(())
    });
    // Most ranks of equal numbers are empty.
    let few = |kinds: u64| -> Fill {
        Arc::new(move |block: &Block, bytes: &mut [u8]| {
            for (to, place) in bytes.chunks_exact_mut(4).zip(block.columns.clone()) {
                to.copy_from_slice(&((1 + place % kinds) as f32).to_ne_bytes());
            }
            Ok(())
        })
    };
    let extent = Extent {
        rows: 1,
        columns: 2000,
        element: 8,
    };
    let doubles = SortWorkload::<f64>::new(2000, 300, generated_as(Element::F64, extent, seed));
    vec![
        (Arc::new(doubles.expect("they are generated")), 300),
        sort(3001, 400, numbers(3001, seed)),
        sort(50, 20, awkward),
        sort(1700, 300, few(1)),
        sort(900, 64, few(2)),
        sort(1, 16, few(1)),
    ]
}

/// Workloads that safe functions compute.
pub fn workloads(seed: u64) -> Vec<(Arc<dyn ClusterWorkload>, u64)> {
    let program = program();
    let all = sorts(seed).into_iter();
    all.chain([(Arc::new(program) as Arc<dyn ClusterWorkload>, 8)])
        .collect()
}

/// Squares, of which each row's sum, found by a reduction, is added to each of the row's
/// numbers: an update, of blocks that another access reads.
fn program() -> Program {
    const ROWS: u64 = 23;
    const COLUMNS: u64 = 10;
    let mut program = Program::new("program");
    let numbers = program.given(ROWS, COLUMNS, |row, column| (100 * row + column) as i64);
    let squares = program.space::<i64>(ROWS, COLUMNS);
    let sums = program.space::<i64>(1, ROWS);
    let band = |subtask: u64| Block::new(6 * subtask..(6 * subtask + 6).min(ROWS), 0..COLUMNS);
    let half = |subtask: u64| Block::new(0..ROWS, 5 * subtask..5 * subtask + 5);
    let accesses = (numbers.read(band), squares.write(band).full());
    program.add_task(ProgramTask::new(
        "square",
        4,
        accesses,
        |_, (numbers, mut squares)| {
            let rows = squares.block().rows.clone();
            for row in rows {
                for (square, number) in squares.row(row).iter_mut().zip(numbers.row(row)) {
                    *square = number * number;
                }
            }
        },
    ));
    // Each subtask sums its half of all rows.
    let accesses = (squares.read(half), sums.write(move |_| sums.whole()));
    let sum = ProgramTask::new("sum", 2, accesses, |_, (squares, mut sums)| {
        for row in sums.block().columns.clone() {
            sums[(0, row)] += squares.row(row).iter().sum::<i64>();
        }
    });
    program.add_task(sum.reduce(0_i64, |sum, other| *sum += other));
    let accesses = (
        squares.read(band),
        sums.read(move |_| sums.whole()),
        squares.update(band),
    );
    program.add_task(ProgramTask::new(
        "add",
        4,
        accesses,
        |_, (before, sums, mut squares)| {
            for row in squares.block().rows.clone() {
                for column in 0..COLUMNS {
                    assert_eq!(squares[(row, column)], before[(row, column)]);
                    squares[(row, column)] += sums[(0, row)];
                }
            }
        },
    ));
    program.set_result(squares);
    program.set_compare(|block, bytes, _| {
        let square = |row: u64, column: u64| ((100 * row + column) as i64).pow(2);
        let mut checked = Checked::default();
        let rows = block.rows.clone();
        let places = rows.flat_map(|row| block.columns.clone().map(move |column| (row, column)));
        for (found, (row, column)) in bytes.chunks_exact(8).zip(places) {
            let sum: i64 = (0..COLUMNS).map(|column| square(row, column)).sum();
            let found = i64::from_ne_bytes(found.try_into().expect("eight bytes"));
            checked.exactly(found == square(row, column) + sum);
        }
        checked
    });
    program
}

/// A run with two subtasks that write the same row ends on all nodes, with the reason.
#[test]
fn blocks_that_two_subtasks_write_are_refused() {
    let mut program = Program::new("overlap");
    let rows = program.space::<f32>(10, 4);
    let band = |subtask: u64| Block::new(4 * subtask..4 * subtask + 5, 0..4);
    let one = ProgramTask::new("rows", 2, rows.write(band), |_, mut rows| {
        rows.slice().fill(1.0);
    });
    program.add_task(one);
    let case = Case {
        workload: Arc::new(program),
        tile: 1,
        spread: NamedSpread::default(),
        prefetch: 1,
        nodes: 3,
        seed: 1,
    };
    for ran in case.run(|_| {}) {
        let error = ran.expect_err("row 4 is written twice").to_string();
        assert!(
            error.contains("subtasks 0 and 1 of rows both write rows 4..5"),
            "{error}"
        );
    }
}
