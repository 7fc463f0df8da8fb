//! The positions in a drawing. Each kernel has a cell, with its inputs above and its
//! outputs below. Cells are in layers from top to bottom. Each component has its own
//! columns, so that frames never overlap.

use std::collections::BTreeMap;

use super::Drawing;

/// A buffer's rectangle.
pub(super) const BUFFER: (f64, f64) = (92.0, 24.0);
/// A kernel's ellipse.
pub(super) const KERNEL: (f64, f64) = (150.0, 44.0);
pub(super) const GAP: f64 = 14.0;
/// The distance of layers, which leaves room for edges.
const BETWEEN: f64 = 46.0;
const MARGIN: f64 = 30.0;
pub(super) const TITLE: f64 = 34.0;
/// A component's frame around its cells, with room for its name.
pub(super) const FRAME: f64 = 12.0;

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
}

/// A kernel's cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The centre of the ellipse.
    pub kernel: Point,
    /// The centres of the rectangles.
    pub inputs: Vec<Point>,
    pub outputs: Vec<Point>,
    /// Left, top, right, bottom.
    pub bounds: (f64, f64, f64, f64),
}

pub(super) struct Layout {
    pub cells: Vec<Cell>,
    pub width: f64,
    pub height: f64,
}

/// The layer of each kernel: the length of the longest path to it. Kernels of a cycle
/// and those after them are in layer 0.
fn layers(drawing: &Drawing) -> Vec<usize> {
    let count = drawing.kernels.len();
    let (mut after, mut waits) = (vec![Vec::new(); count], vec![0usize; count]);
    let edges = drawing.edges.iter().map(|(from, to)| (from.0, to.0));
    for (from, to) in edges.chain(drawing.order.iter().copied()) {
        after[from].push(to);
        waits[to] += 1;
    }
    let mut layers = vec![0; count];
    let mut free: Vec<usize> = (0..count).filter(|kernel| waits[*kernel] == 0).collect();
    while let Some(kernel) = free.pop() {
        for next in &after[kernel] {
            layers[*next] = layers[*next].max(layers[kernel] + 1);
            waits[*next] -= 1;
            if waits[*next] == 0 {
                free.push(*next);
            }
        }
    }
    let is_free = |(layer, waits): (usize, usize)| if waits == 0 { layer } else { 0 };
    layers.into_iter().zip(waits).map(is_free).collect()
}

impl Layout {
    pub(super) fn of(drawing: &Drawing) -> Self {
        let count = drawing.kernels.len();
        let layers = layers(drawing);
        let everything: Vec<Vec<usize>> = vec![(0..count).collect()];
        let groups = match drawing.components.is_empty() {
            true => &everything,
            false => &drawing.components,
        };
        let mut group_of = vec![0; count];
        for (index, group) in groups.iter().enumerate() {
            group.iter().for_each(|kernel| group_of[*kernel] = index);
        }
        let mut before = vec![Vec::new(); count];
        for (from, to) in &drawing.edges {
            if group_of[from.0] == group_of[to.0] {
                before[to.0].push(from.0);
            }
        }
        let widths: Vec<f64> = drawing.kernels.iter().map(width).collect();
        let row = BUFFER.1 + GAP + KERNEL.1 + GAP + BUFFER.1;
        let top = |layer: usize| TITLE + MARGIN + layer as f64 * (row + BETWEEN);
        let room = |kernels: &[usize]| -> f64 {
            let gaps = GAP * kernels.len().saturating_sub(1) as f64;
            kernels.iter().map(|kernel| widths[*kernel]).sum::<f64>() + gaps
        };
        let mut left = MARGIN;
        let mut cells: Vec<Option<Cell>> = vec![None; count];
        let mut middles = vec![0.0; count];
        for group in groups {
            let mut by_layer: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for kernel in group {
                by_layer.entry(layers[*kernel]).or_default().push(*kernel);
            }
            let whole = by_layer.values().map(|k| room(k)).fold(0.0, f64::max);
            for (layer, mut kernels) in by_layer {
                // A kernel stands near the middle of those before it.
                let pull = |kernel: usize| match before[kernel].len() {
                    0 => kernel as f64,
                    many => before[kernel].iter().map(|b| middles[*b]).sum::<f64>() / many as f64,
                };
                kernels.sort_by(|a, b| pull(*a).total_cmp(&pull(*b)));
                let mut x = left + (whole - room(&kernels)) / 2.0;
                for kernel in kernels {
                    let shown = &drawing.kernels[kernel];
                    middles[kernel] = x + widths[kernel] / 2.0;
                    let bounds = (x, top(layer), x + widths[kernel], top(layer) + row);
                    cells[kernel] = Some(cell(bounds, shown.inputs.len(), shown.outputs.len()));
                    x += widths[kernel] + GAP;
                }
            }
            left += whole + 2.0 * FRAME + GAP;
        }
        Self {
            cells: cells.into_iter().flatten().collect(),
            width: (left + MARGIN - 2.0 * FRAME - GAP).max(360.0),
            height: top(layers.into_iter().max().unwrap_or(0)) + row + MARGIN,
        }
    }
}

fn width(shown: &super::DrawnKernel) -> f64 {
    let buffers = shown.inputs.len().max(shown.outputs.len()).max(1) as f64;
    (buffers * (BUFFER.0 + GAP) - GAP).max(KERNEL.0)
}

fn cell(bounds: (f64, f64, f64, f64), inputs: usize, outputs: usize) -> Cell {
    let (left, top, right, bottom) = bounds;
    let middle = f64::midpoint(left, right);
    let row = |count: usize, y: f64| -> Vec<Point> {
        let whole = count as f64 * (BUFFER.0 + GAP) - GAP;
        (0..count)
            .map(|i| Point {
                x: middle - whole / 2.0 + BUFFER.0 / 2.0 + i as f64 * (BUFFER.0 + GAP),
                y,
            })
            .collect()
    };
    Cell {
        kernel: Point {
            x: middle,
            y: f64::midpoint(top, bottom),
        },
        inputs: row(inputs, top + BUFFER.1 / 2.0),
        outputs: row(outputs, bottom - BUFFER.1 / 2.0),
        bounds,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::DrawnKernel;
    use super::*;

    fn drawing(kernels: usize, pairs: &[(usize, usize)], group: usize) -> Drawing {
        let shown = |index: usize| DrawnKernel {
            name: index.to_string(),
            device: None,
            inputs: vec![(0, "1 int".to_owned()); index % 4],
            outputs: vec![(1, "1 int".to_owned()); 1 + index % 2],
        };
        let ascending = |(a, b): &(usize, usize)| (a % kernels, b % kernels);
        let edges = (pairs.iter().map(ascending))
            .filter(|(a, b)| a < b)
            .map(|(a, b)| ((a, 1), (b, 0)))
            .collect();
        let all: Vec<usize> = (0..kernels).collect();
        Drawing {
            kernels: all.iter().map(|index| shown(*index)).collect(),
            edges,
            components: all.chunks(group).map(<[usize]>::to_vec).collect(),
            ..Drawing::default()
        }
    }

    proptest! {
        #[test]
        fn cells_never_overlap_and_followers_are_below(
            kernels in 1usize..14,
            pairs in prop::collection::vec((0usize..14, 0usize..14), 0..20),
            group in 1usize..6,
        ) {
            let drawing = drawing(kernels, &pairs, group);
            let layout = Layout::of(&drawing);
            prop_assert_eq!(layout.cells.len(), kernels);
            for (index, cell) in layout.cells.iter().enumerate() {
                let (left, top, right, bottom) = cell.bounds;
                prop_assert!(left >= 0.0 && right <= layout.width && bottom <= layout.height);
                for other in &layout.cells[..index] {
                    let is_disjoint = other.bounds.2 <= left || right <= other.bounds.0
                        || other.bounds.3 <= top || bottom <= other.bounds.1;
                    prop_assert!(is_disjoint, "{:?} and {:?}", cell.bounds, other.bounds);
                }
            }
            for (from, to) in &drawing.edges {
                prop_assert!(layout.cells[from.0].kernel.y < layout.cells[to.0].kernel.y);
            }
        }
    }
}
