//! Whether a matrix has room, before the work begins.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;

use super::error::MatrixError;
use crate::machine::host::Memory;

/// Bytes of a matrix in memory.
pub fn of_matrix(rows: u64, nonzeros: u64) -> u64 {
    let entry = (size_of::<u32>() + size_of::<f64>()) as u64;
    nonzeros
        .saturating_mul(entry)
        .saturating_add(of_starts(rows))
}

/// Bytes of a number for each row, such as where it starts.
pub fn of_starts(rows: u64) -> u64 {
    rows.saturating_add(1)
        .saturating_mul(size_of::<u64>() as u64)
}

/// Checks that `needed` bytes can be had. `most` is how many may be taken;
/// `None`: what is available on this host without swapping.
///
/// # Errors
/// Naming `what` needs them, and both figures.
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

/// What this process can have.
fn available() -> Option<u64> {
    let memory = Memory::read()?;
    let without_swap = Memory {
        swap_free: 0,
        ..memory
    };
    Some(without_swap.obtainable(0))
}

/// So many zeros, not yet touched.
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
        assert_eq!(of_matrix(3, 5), 4 * 8 + 5 * 12);
        assert_eq!(of_matrix(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(zeros::<f64>(3).unwrap(), [0.0; 3]);
        assert!(matches!(
            zeros::<f64>(u64::MAX),
            Err(MatrixError::Refused { .. })
        ));
    }
}
