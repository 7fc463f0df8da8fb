//! Sums of rows at every level of the processor.
use super::*;

/// A row's sum with the vectors of a level.
fn dot_at<T: Number>(level: Level, columns: &[u32], values: &[T], x: &[T]) -> T {
    let (columns, count) = (columns.as_ptr(), columns.len());
    let (values, x) = (values.as_ptr(), x.as_ptr());
    // SAFETY: the level is the processor's, and the data are whole.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => dot::dot::<T::Avx2>(columns, values, count, x),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => dot::dot::<T::Avx512>(columns, values, count, x),
            _ => dot::dot::<OneByOne<T>>(columns, values, count, x),
        }
    }
}

#[test]
fn rows_are_summed_wherever_their_columns_are() {
    let swapped = |count: u32, i: u32| match i {
        1 if count > 3 => 2,
        2 if count > 3 => 1,
        other => other,
    };
    for level in Level::available() {
        for count in 0..80u32 {
            for columns in [
                (0..count).map(|i| 5 + i).collect::<Vec<u32>>(),
                (0..count).map(|i| 5 + 3 * i).collect(),
                // As long as a run, and none.
                (0..count).map(|i| 5 + swapped(count, i)).collect(),
                (0..count)
                    .map(|i| 5 + i + u32::from(i + 1 == count))
                    .collect(),
            ] {
                // What the row has no column of must not be touched.
                let mut x = vec![f64::NAN; 260];
                for column in &columns {
                    x[*column as usize] = f64::from(column % 7) + 0.25;
                }
                let values: Vec<f64> = (0..count).map(|i| f64::from(i % 5) - 1.5).collect();
                let products = values.iter().zip(&columns);
                let right: f64 = products.map(|(v, c)| v * x[*c as usize]).sum();
                // Every product and sum is exact.
                let sum = dot_at(level, &columns, &values, &x);
                assert_eq!(sum, right, "{level:?} {columns:?}");
                let single = |of: &[f64]| of.iter().map(|n| *n as f32).collect::<Vec<f32>>();
                let sum = dot_at(level, &columns, &single(&values), &single(&x));
                assert_eq!(f64::from(sum), right, "{level:?} {columns:?}");
            }
        }
    }
}
