//! Where libraries of CUDA are that the system's loader does not find: in the folders of
//! CUDA's toolkits, and among the packages of Python.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of toolkits, of pip's packages, of which this one has a library, and of conda's.
pub(super) fn folders_of(folder: &str) -> Vec<PathBuf> {
    let named = |variables: [&str; 2]| {
        let folders = variables.into_iter().filter_map(env::var_os);
        folders.map(PathBuf::from).collect::<Vec<PathBuf>>()
    };
    let toolkits = named(["CUDA_HOME", "CUDA_PATH"]).into_iter();
    let toolkits = toolkits.chain(entries(Path::new("/usr/local"), "cuda"));
    let mut folders: Vec<PathBuf> = toolkits.map(|toolkit| toolkit.join("lib64")).collect();
    let home = env::home_dir().map(|home| home.join(".local"));
    let systems = ["/usr/local", "/usr", "/opt/conda"].map(PathBuf::from);
    let own = named(["VIRTUAL_ENV", "CONDA_PREFIX"]).into_iter();
    for prefix in own.chain(home).chain(systems) {
        let lib = prefix.join("lib");
        folders.extend(of_python(&lib, folder));
        folders.push(lib);
    }
    folders
}

/// The folders of the packages of all Pythons that a folder has.
fn of_python(lib: &Path, folder: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for python in entries(lib, "python3") {
        for packages in ["site-packages", "dist-packages"] {
            let nvidia = python.join(packages).join("nvidia");
            folders.push(nvidia.join(folder).join("lib"));
            // From CUDA 13 on, one folder has all libraries.
            folders.extend(entries(&nvidia, "cu1").map(|cuda| cuda.join("lib")));
        }
    }
    folders
}

/// The folders in a folder whose names begin so, the last one first.
fn entries(folder: &Path, begin: &str) -> impl Iterator<Item = PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let fitting = listed.filter(|entry| entry.file_name().to_string_lossy().starts_with(begin));
    let mut found: Vec<PathBuf> = fitting.map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter().rev()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_by_the_begin_of_their_names() {
        let root = tempfile::tempdir().unwrap();
        for name in ["python3.9", "python3.12", "perl"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found: Vec<PathBuf> = entries(root.path(), "python3").collect();
        assert_eq!(found.len(), 2);
        assert!(entries(&root.path().join("none"), "").next().is_none());
    }

    #[test]
    fn packages_of_python_are_found() {
        let root = tempfile::tempdir().unwrap();
        let packages = |python: &str| root.path().join(python).join("site-packages/nvidia");
        let folders = [
            packages("python3.12").join("cublas/lib"),
            packages("python3.12").join("cu13/lib"),
            packages("python3.11").join("cublas/lib"),
        ];
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
        }
        fs::create_dir_all(root.path().join("other/site-packages/nvidia/cublas/lib")).unwrap();
        let mut found = of_python(root.path(), "cublas");
        found.retain(|folder| folder.is_dir());
        assert_eq!(found, folders);
    }
}
