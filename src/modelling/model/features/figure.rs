//! A number of a case or a machine that is a column of datasets.

/// A field that a dataset keeps as a number.
pub trait Figure {
    /// The number; `None` where the machine file has none.
    fn get(&self) -> Option<f64>;

    /// Takes the number from a dataset.
    ///
    /// # Errors
    /// What the number must be, if `value` is not.
    fn set(&mut self, value: f64) -> Result<(), &'static str>;

    /// Whether a row without the number is complete.
    fn is_optional(&self) -> bool {
        false
    }
}

impl Figure for f64 {
    fn get(&self) -> Option<f64> {
        Some(*self)
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        *self = value;
        match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err("a number, 0 or more"),
        }
    }
}

impl Figure for u64 {
    /// Exact below 2^53.
    fn get(&self) -> Option<f64> {
        Some(*self as f64)
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        0.0.set(value)?;
        *self = value as u64;
        // Every whole number up to 2^53 is exact.
        match value.fract() == 0.0 && value <= (1u64 << 53) as f64 {
            true => Ok(()),
            false => Err("a whole number"),
        }
    }
}

impl Figure for u32 {
    fn get(&self) -> Option<f64> {
        Some(f64::from(*self))
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        let mut count = 0u64;
        count.set(value)?;
        *self = u32::try_from(count).map_err(|_| "a whole number below 2^32")?;
        Ok(())
    }
}

impl Figure for bool {
    fn get(&self) -> Option<f64> {
        Some(f64::from(u8::from(*self)))
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        *self = value == 1.0;
        match value == 0.0 || value == 1.0 {
            true => Ok(()),
            false => Err("0 or 1"),
        }
    }
}

impl<T: Figure + Default> Figure for Option<T> {
    fn get(&self) -> Option<f64> {
        self.as_ref()?.get()
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        self.insert(T::default()).set(value)
    }

    fn is_optional(&self) -> bool {
        true
    }
}
