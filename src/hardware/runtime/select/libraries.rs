//! Whether CUDA's libraries may serve beside our kernels. It is one choice of the process.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether libraries of a GPU's maker serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Libraries {
    /// Where they are found and faster.
    #[default]
    Auto,
    /// Nowhere: only our kernels do.
    Off,
}

impl Libraries {
    /// All, by the names that users write.
    pub const NAMED: [(&'static str, Self); 2] = [("auto", Self::Auto), ("off", Self::Off)];
}

impl fmt::Display for Libraries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, one)| one == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for Libraries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        named
            .map(|(_, one)| *one)
            .ok_or_else(|| format!("`{text}` is no choice of libraries; write auto or off"))
    }
}

static ARE_OFF: AtomicBool = AtomicBool::new(false);

/// Devices that are opened from now on use libraries so.
pub fn choose_libraries(libraries: Libraries) {
    ARE_OFF.store(libraries == Libraries::Off, Ordering::Relaxed);
}

/// How devices use libraries.
pub fn libraries() -> Libraries {
    match ARE_OFF.load(Ordering::Relaxed) {
        true => Libraries::Off,
        false => Libraries::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_and_written_alike() {
        for (name, libraries) in Libraries::NAMED {
            assert_eq!(name.parse(), Ok(libraries));
            assert_eq!(libraries.to_string(), name);
        }
        let error = "on".parse::<Libraries>().unwrap_err();
        assert_eq!(error, "`on` is no choice of libraries; write auto or off");
    }
}
