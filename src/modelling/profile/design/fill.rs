//! Filling a space with few points. Pure.

/// Orders points so that every prefix spans their space: each next one is
/// farthest from all before it. The first is the last of `points`, and of two
/// equally far the earlier one is taken. Gives the indices of the first `most`.
///
/// Points have equal lengths, and coordinates in comparable units.
pub fn farthest_first(points: &[Vec<f64>], most: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(most.min(points.len()));
    let mut distance = vec![f64::INFINITY; points.len()];
    let mut next = points.len().checked_sub(1);
    while let Some(index) = next.filter(|_| order.len() < most) {
        order.push(index);
        // Taken ones are never again the farthest.
        distance[index] = f64::NEG_INFINITY;
        for (far, point) in distance.iter_mut().zip(points) {
            *far = far.min(squared(point, &points[index]));
        }
        next = farthest(&distance);
    }
    order
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The first of the largest, of those not yet taken.
fn farthest(distance: &[f64]) -> Option<usize> {
    let left = distance.iter().enumerate().filter(|(_, d)| **d >= 0.0);
    let first = left.reduce(|best, other| if other.1 > best.1 { other } else { best });
    first.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_come_first_and_gaps_are_halved() {
        let points: Vec<Vec<f64>> = (0..=16).map(|x| vec![f64::from(x)]).collect();
        let order = farthest_first(&points, 99);
        assert_eq!(order[..5], [16, 0, 8, 4, 12]);
        let mut all = order.clone();
        all.sort_unstable();
        assert_eq!(all, (0..=16).collect::<Vec<_>>());
        assert_eq!(farthest_first(&points, 3), order[..3]);
    }

    #[test]
    fn equal_points_are_all_taken() {
        assert_eq!(farthest_first(&vec![vec![1.0]; 3], 9), [2, 0, 1]);
        assert_eq!(farthest_first(&[], 9), [] as [usize; 0]);
        assert_eq!(farthest_first(&[vec![0.0]], 0), [] as [usize; 0]);
    }
}
