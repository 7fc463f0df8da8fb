//! Checks whether a matrix fits into memory before the work begins.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;

use super::MatrixError;
use crate::machine::host::Memory;

/// Bytes of a matrix in memory.
pub fn matrix_bytes(rows: u64, nonzeros: u64) -> u64 {
    let entry = (size_of::<u32>() + size_of::<f64>()) as u64;
    nonzeros
        .saturating_mul(entry)
        .saturating_add(starts_bytes(rows))
}

/// Bytes of the row starts of a matrix.
pub fn starts_bytes(rows: u64) -> u64 {
    rows.saturating_add(1)
        .saturating_mul(size_of::<u64>() as u64)
}

/// Checks that `needed` bytes are available. `most` is the limit in bytes; `None` is
/// the memory of this host that can be had without swapping.
///
/// # Errors
/// An error that names `what` needs them, and both figures.
pub fn check(what: &str, needed: u64, most: Option<u64>) -> Result<(), MatrixError> {
    let available = most.or_else(available).unwrap_or(u64::MAX);
    if needed <= available {
        return Ok(());
    }
    Err(MatrixError::Memory {
        what: what.to_owned(),
        needed,
        available,
    })
}

/// Bytes that this process can have without swapping.
fn available() -> Option<u64> {
    let memory = Memory::read()?;
    let without_swap = Memory {
        swap_free: 0,
        ..memory
    };
    Some(without_swap.obtainable(0))
}

/// `count` zeros, in memory that the system has not provided yet.
///
/// # Errors
/// When the system refuses the memory.
pub fn zeros<T: Zeroable>(count: u64) -> Result<Vec<T>, MatrixError> {
    let refused = || MatrixError::Refused {
        bytes: count.saturating_mul(size_of::<T>() as u64),
    };
    let count = usize::try_from(count).map_err(|_| refused())?;
    try_zeroed_vec(count).map_err(|()| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        assert!(check("it", 100, Some(100)).is_ok());
        let message = check("reading it", 3 << 30, Some(2 << 30))
            .unwrap_err()
            .to_string();
        assert!(message.contains("reading it needs 3.00 GiB"), "{message}");
        assert!(message.contains("2.00 GiB"), "{message}");
        assert!(check("it", 1, None).is_ok());
        assert!(check("it", u64::MAX - 1, None).is_err());
    }

    #[test]
    fn bytes_are_those_of_the_arrays() {
        assert_eq!(matrix_bytes(3, 5), 4 * 8 + 5 * 12);
        assert_eq!(matrix_bytes(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(zeros::<f64>(3).unwrap(), [0.0; 3]);
        assert!(matches!(
            zeros::<f64>(u64::MAX),
            Err(MatrixError::Refused { .. })
        ));
    }
}
