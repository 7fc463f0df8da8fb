//! What parts above an object keep in it.
//!
//! A queue keeps what the scheduler and the report know of it, so that it is found without a
//! look-up and goes with the queue. The queue does not know what it is.

use std::any::Any;

/// At most one value of each type.
#[derive(Default)]
pub struct Kept(Vec<Box<dyn Any + Send>>);

impl Kept {
    /// The value of a type, which begins as its default.
    pub fn of<T: Any + Send + Default>(&mut self) -> &mut T {
        let known = self.0.iter().position(|value| value.is::<T>());
        let index = known.unwrap_or_else(|| {
            self.0.push(Box::new(T::default()));
            self.0.len() - 1
        });
        self.0[index]
            .downcast_mut()
            .expect("the value has the type for which it was found")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_type() {
        let mut kept = Kept::default();
        *kept.of::<u8>() = 3;
        kept.of::<Vec<u8>>().push(5);
        assert_eq!(*kept.of::<u8>(), 3);
        assert_eq!(*kept.of::<Vec<u8>>(), [5]);
        assert_eq!(*kept.of::<u64>(), 0);
    }
}
