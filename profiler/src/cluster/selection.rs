//! One feature a cluster.

use super::features::{Feature, Features};

/// By how much a threshold is lowered at a time.
const STEP: f64 = 0.05;
/// Features closer than this count as one.
const SAME: f64 = 0.01;

/// The features that a model of so many inputs gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// One a cluster, in the order of the table's names.
    pub inputs: Vec<Feature>,
    /// The least |correlation| with the target of what was clustered.
    pub threshold: f64,
}

impl Features<'_> {
    /// Clusters the features whose |correlation| with the target is at least
    /// `threshold` (the paper's is 0.75, under its Figure 4) into `clusters`,
    /// and takes from each the feature of the greatest variance along with the
    /// target: its variance times its squared correlation, the first name
    /// among equals. Where a cluster's features correlate equally with the
    /// target, as they nearly do above a high threshold, this is the paper's
    /// greatest variance. Where the threshold had to be lowered, variance alone
    /// would choose a switch with two values, and leave out the size.
    ///
    /// The threshold is lowered by 0.05 until as many features pass as
    /// clusters are wanted, where those that differ only in name count once:
    /// a size in units, in bytes and in flops would otherwise be three
    /// clusters and leave out the number of workers. `None` if even then there
    /// are not so many. No clusters are no inputs.
    pub fn select(&self, clusters: usize, threshold: f64) -> Option<Selection> {
        if clusters == 0 {
            return Some(Selection {
                inputs: Vec::new(),
                threshold,
            });
        }
        let mut threshold = threshold;
        let mut tried = usize::MAX;
        loop {
            let passing = self.passing(threshold);
            if passing.len() >= clusters && passing.len() != tried {
                let dendrogram = self.dendrogram(&passing);
                if dendrogram.clusters_beyond(SAME) >= clusters {
                    let cut = dendrogram.cut(clusters);
                    let inputs = self.representatives(&passing, clusters, &cut);
                    return Some(Selection { inputs, threshold });
                }
                tried = passing.len();
            }
            if threshold <= 0.0 {
                return None;
            }
            // Twentieths, without the error of repeated subtraction.
            threshold = (((threshold - STEP) / STEP).round() * STEP).max(0.0);
        }
    }

    /// The features of these columns that vary, whatever they correlate with.
    pub fn of_columns(&self, columns: &[usize]) -> Selection {
        let features = self.features().iter();
        let inputs = features.filter(|feature| columns.contains(&feature.index));
        Selection {
            inputs: inputs.cloned().collect(),
            threshold: 0.0,
        }
    }

    /// How many features that differ in more than name there are.
    pub fn distinct(&self) -> usize {
        self.dendrogram(&self.passing(0.0)).clusters_beyond(SAME)
    }

    fn passing(&self, threshold: f64) -> Vec<usize> {
        let passes = |&p: &usize| self.features()[p].correlation.abs() >= threshold;
        (0..self.features().len()).filter(passes).collect()
    }

    fn representatives(&self, places: &[usize], clusters: usize, cut: &[usize]) -> Vec<Feature> {
        let mut best: Vec<Option<&Feature>> = vec![None; clusters];
        for (&place, &cluster) in places.iter().zip(cut) {
            let feature = &self.features()[place];
            if best[cluster].is_none_or(|known| self.represents(feature, known)) {
                best[cluster] = Some(feature);
            }
        }
        let mut inputs: Vec<Feature> = best.into_iter().flatten().cloned().collect();
        inputs.sort_by_key(|feature| feature.index);
        inputs
    }

    /// Whether the first stands for a cluster rather than the second. Equal
    /// columns may differ by rounding.
    fn represents(&self, a: &Feature, b: &Feature) -> bool {
        let along = |f: &Feature| f.variance * f.correlation * f.correlation;
        if (along(a) - along(b)).abs() <= 1e-9 * along(b) {
            return self.name(a) < self.name(b);
        }
        along(a) > along(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: the size thrice, the workers, a chunk, something binary that
    /// has nothing to do with the target.
    fn rows() -> (Vec<String>, Vec<Vec<f64>>, Vec<f64>) {
        let names = [
            "size_b",
            "size_a",
            "size_noisy",
            "workers",
            "chunk",
            "colour",
        ];
        let mut rows = Vec::new();
        let mut target = Vec::new();
        for size in [64.0, 128.0, 256.0, 512.0, 1024.0] {
            for workers in [1.0, 2.0, 4.0, 8.0] {
                for chunk in [1.0, 16.0] {
                    let n = rows.len() as f64;
                    let colour = f64::from(u8::from(rows.len() % 3 == 0));
                    let noisy = size * (1.0 + 0.03 * (n * 1.7).sin());
                    rows.push(vec![size * 8.0, size, noisy, workers, chunk, colour]);
                    target.push((size / workers * (1.0 + 0.1 * chunk)).ln());
                }
            }
        }
        (names.map(String::from).to_vec(), rows, target)
    }

    fn names_of<'a>(names: &'a [String], selection: &Selection) -> Vec<&'a str> {
        let name = |f: &Feature| names[f.index].as_str();
        selection.inputs.iter().map(name).collect()
    }

    #[test]
    fn one_feature_a_cluster_and_equals_by_name() {
        let (names, rows, target) = rows();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let features = Features::of(&names, &rows, &target);
        assert_eq!(features.distinct(), 4);
        let one = features.select(1, 0.7).unwrap();
        assert_eq!(one.threshold, 0.7);
        // The noisy copy spreads less over its range; the others are equal.
        assert_eq!(names_of(&names, &one), ["size_a"]);
        let three = features.select(3, 0.7).unwrap();
        assert_eq!(names_of(&names, &three), ["size_a", "workers", "chunk"]);
        assert!(three.threshold < 0.5, "{}", three.threshold);
        assert!(three.threshold > 0.0);
        let four = features.select(4, 0.7).unwrap();
        assert_eq!(
            names_of(&names, &four),
            ["size_a", "workers", "chunk", "colour"]
        );
        assert_eq!(features.select(5, 0.7), None);
        let none = features.select(0, 0.7).unwrap();
        assert!(none.inputs.is_empty());
    }

    #[test]
    fn the_threshold_is_lowered_no_further_than_needed() {
        let (names, rows, target) = rows();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let features = Features::of(&names, &rows, &target);
        let two = features.select(2, 0.75).unwrap();
        let workers = &features.features()[3];
        assert!(two.threshold <= workers.correlation.abs());
        assert!(two.threshold + STEP + 1e-9 > workers.correlation.abs());
    }
}
