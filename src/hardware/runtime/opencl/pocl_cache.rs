//! PoCL's cache of compiled kernels. Without it PoCL (3.1) lists no devices, or builds no
//! program, and tells no reason.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// The variable by which a user sets the folder.
const VARIABLE: &str = "POCL_CACHE_DIR";

/// Whether a platform or a driver is PoCL.
pub(super) fn is_pocl(driver: &str) -> bool {
    driver.starts_with("Portable Computing Language")
}

/// What PoCL does not survive, if one of these `.icd` files registers it.
pub(super) fn hazard(registered: &[PathBuf]) -> Option<String> {
    let is_pocl = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains("pocl"));
    let is_empty = std::env::var_os(VARIABLE).is_some_and(|value| value.is_empty());
    (is_empty && registered.iter().any(is_pocl)).then(|| {
        format!(
            "{VARIABLE} is empty, which PoCL does not survive, so OpenCL is not used: unset it, or \
             set it to a folder that can be written"
        )
    })
}

/// What PoCL cannot do with its cache, and the remedy; nothing if the cache is in order.
pub(super) fn fault() -> Option<String> {
    fault_of(folder(|name| std::env::var_os(name)))
}

/// Where PoCL has its cache in this environment.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let of_user = || {
        let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = cache.or_else(home).unwrap_or_else(|| "/tmp".into());
        cache.join("pocl/kcache")
    };
    set(VARIABLE).map_or_else(of_user, PathBuf::from)
}

fn fault_of(folder: PathBuf) -> Option<String> {
    let made = fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder));
    let why = made.err()?;
    Some(format!(
        "PoCL cannot write its cache of compiled kernels, {}: {why}; set {VARIABLE} to a folder \
         that can be written",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_pocl_has_it() {
        for (variables, expected) in [
            (&[("HOME", "/h")][..], "/h/.cache/pocl/kcache"),
            (&[], "/tmp/pocl/kcache"),
            (
                &[("HOME", "/h"), ("XDG_CACHE_HOME", "")],
                "/h/.cache/pocl/kcache",
            ),
            (
                &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")],
                "/x/pocl/kcache",
            ),
            (&[("XDG_CACHE_HOME", "/x"), ("POCL_CACHE_DIR", "/p")], "/p"),
        ] {
            let variable = |name: &str| {
                let mut set = variables.iter().filter(|(known, _)| *known == name);
                set.next().map(|(_, value)| value.into())
            };
            assert_eq!(folder(variable), PathBuf::from(expected), "{variables:?}");
        }
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_named_with_the_remedy() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(fault_of(home.path().join("a/b")), None);
        assert_eq!(fault_of(home.path().to_owned()), None);
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        for folder in [file.clone(), file.join("below"), "/proc/x/pocl".into()] {
            let why = fault_of(folder.clone()).unwrap();
            let shown = folder.display().to_string();
            assert!(why.contains(&shown), "{why}");
            assert!(why.contains("set POCL_CACHE_DIR to a folder"), "{why}");
        }
    }
}
