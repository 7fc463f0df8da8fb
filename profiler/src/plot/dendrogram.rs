//! The dendrogram of correlated features (the paper's Figure 4).

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::PlotError;
use super::axis::{decimal, even};
use super::figure::{self, ALERT, Drawn, FAINT, INK, LINE, Sheet};
use super::label::{self, TEXT};
use super::tree::Tree;
use crate::cluster::Dendrogram;

/// Width of the tree itself.
const WIDTH: i32 = 460;
const MARGIN: i32 = 16;

/// Draws a tree of features: names at the left, distance to the right, the
/// more alike the further left they meet. A dashed line cuts it into
/// `clusters`, each in its colour; the features that a model takes, `selected`,
/// are bold and have a dot.
///
/// # Errors
/// No features; merges that do not make one tree of them.
pub fn dendrogram(
    title: &str,
    dendrogram: &Dendrogram,
    clusters: usize,
    selected: &[&str],
) -> Result<String, PlotError> {
    let tree = Tree::of(dendrogram, clusters)?;
    let names = dendrogram.names.iter();
    let widest = names.map(|name| label::bold_width(name, TEXT)).max();
    let greatest = tree.distance.iter().copied().fold(tree.cut, f64::max);
    let left = MARGIN + widest.unwrap_or(0) + LINE;
    let width = left + WIDTH + MARGIN;
    let above = figure::title_height(title, width) + LINE;
    let drawing = Drawing {
        dendrogram,
        tree,
        selected,
        left,
        top: above + LINE,
        // Features that all say the same have no distance.
        end: if greatest > 0.0 { greatest * 1.04 } else { 1.0 },
    };
    figure::svg(width, drawing.bottom() + 4 * LINE, |sheet| {
        figure::title(sheet, title)?;
        drawing.scale(sheet)?;
        drawing.branches(sheet)?;
        drawing.names(sheet)?;
        drawing.cut(sheet, clusters)
    })
}

struct Drawing<'a> {
    dendrogram: &'a Dendrogram,
    tree: Tree,
    selected: &'a [&'a str],
    /// The coordinates of distance 0 and of the first feature.
    left: i32,
    top: i32,
    /// The distance at the right edge.
    end: f64,
}

impl Drawing<'_> {
    fn bottom(&self) -> i32 {
        self.top + LINE * self.tree.leaves.len() as i32
    }

    fn at(&self, node: usize) -> (i32, i32) {
        let down = self.tree.down[node] * f64::from(LINE);
        (
            self.x(self.tree.distance[node]),
            self.top + down.round() as i32,
        )
    }

    fn x(&self, distance: f64) -> i32 {
        self.left + (distance / self.end * f64::from(WIDTH)).round() as i32
    }

    fn colour(&self, node: usize) -> RGBColor {
        self.tree.cluster[node].map_or(FAINT, figure::colour)
    }

    fn scale(&self, sheet: &Sheet) -> Drawn<()> {
        let bottom = self.bottom();
        let style = label::style(TEXT, false, INK, HPos::Center);
        let ends = vec![(self.left, bottom), (self.left + WIDTH, bottom)];
        sheet.draw(&PathElement::new(ends, INK))?;
        for tick in even(0.0, self.end) {
            let x = self.x(tick);
            let line = vec![(x, bottom), (x, bottom + 5)];
            sheet.draw(&PathElement::new(line, INK))?;
            let at = (x, bottom + LINE - 3);
            sheet.draw(&Text::new(decimal(tick), at, style.clone()))?;
        }
        let middle = self.left + WIDTH / 2;
        let name = "distance: 1 - |correlation|";
        sheet.draw(&Text::new(name, (middle, bottom + 2 * LINE), style.clone()))?;
        let note = "bold, with a dot: taken for the model";
        sheet.draw(&Text::new(note, (middle, bottom + 3 * LINE), style))
    }

    fn branches(&self, sheet: &Sheet) -> Drawn<()> {
        let features = self.dendrogram.names.len();
        for (step, merge) in self.dendrogram.steps.iter().enumerate() {
            let joint = self.at(features + step).0;
            let sides = [merge.left, merge.right];
            for side in sides {
                let (x, y) = self.at(side);
                let style = self.colour(side).stroke_width(2);
                sheet.draw(&PathElement::new(vec![(x, y), (joint, y)], style))?;
            }
            let ends = sides.map(|side| (joint, self.at(side).1));
            let style = self.colour(features + step).stroke_width(2);
            sheet.draw(&PathElement::new(ends.to_vec(), style))?;
        }
        Ok(())
    }

    fn names(&self, sheet: &Sheet) -> Drawn<()> {
        for leaf in &self.tree.leaves {
            let name = &self.dendrogram.names[*leaf];
            let (x, y) = self.at(*leaf);
            let taken = self.selected.contains(&name.as_str());
            let colour = if taken { self.colour(*leaf) } else { INK };
            let style = label::style(TEXT, taken, colour, HPos::Right);
            sheet.draw(&Text::new(label::plain(name), (x - LINE, y), style))?;
            if taken {
                sheet.draw(&Circle::new((x - LINE / 2, y), 4, colour.filled()))?;
            }
        }
        Ok(())
    }

    fn cut(&self, sheet: &Sheet, clusters: usize) -> Drawn<()> {
        let x = self.x(self.tree.cut);
        let line = [(x, self.top - LINE / 2), (x, self.bottom())];
        let style = ALERT.stroke_width(1);
        sheet.draw(&DashedPathElement::new(line, 6, 4, style))?;
        let clusters = match clusters.clamp(1, self.dendrogram.names.len()) {
            1 => "1 cluster".to_owned(),
            several => format!("{several} clusters"),
        };
        // The label stays on the sheet wherever the line is.
        let half = label::width(&clusters, TEXT) / 2;
        let x = x.min(self.left + WIDTH + MARGIN - half);
        let style = label::style(TEXT, false, ALERT, HPos::Center);
        sheet.draw(&Text::new(clusters, (x, self.top - LINE), style))
    }
}
