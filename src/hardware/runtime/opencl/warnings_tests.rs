use std::fs;

use super::*;
use crate::runtime::opencl::loader::vendors_directory;

/// A root directory with these files.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }
    root
}

#[test]
fn an_icd_file_whose_library_is_missing_is_named() {
    let root = root(&[
        ("vendors/gone.icd", "libgone.so.1\n"),
        ("vendors/good.icd", "libgood.so.1\n"),
        ("vendors/empty.icd", "\n"),
        ("vendors/readme.txt", "libnothing.so"),
        ("lib/libgood.so.1", ""),
    ]);
    let here = |path: &str| root.path().join(path);
    let path = here("vendors/absolute.icd");
    fs::write(path, here("lib/absent.so").display().to_string()).expect("a file");
    let warnings = icd_warnings(&here("vendors"), &[here("lib")], &|_| Ok(()));
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("absolute.icd") && warnings[0].contains("absent.so"));
    assert!(warnings[1].contains("empty.icd"));
    assert!(warnings[2].contains("gone.icd") && warnings[2].contains("libgone.so.1"));
    assert!(icd_warnings(&here("nowhere"), &[], &|_| Ok(())).is_empty());
    assert_eq!(
        icd_warnings(&here("vendors/gone.icd"), &[], &|_| Ok(())).len(),
        1
    );
}

#[test]
fn a_library_that_cannot_be_loaded_is_reported_with_the_reason() {
    let root = root(&[
        ("vendors/lacks.icd", "liblacks.so.1\n"),
        ("vendors/windows.icd", "liblacks.so.1\r\n"),
        ("vendors/spaces.icd", " liblacks.so.1\n"),
        ("lib/liblacks.so.1", ""),
    ]);
    let here = |path: &str| root.path().join(path);
    let load = |library: &OsStr| match library.to_str() {
        Some("liblacks.so.1") => Err("libLLVM.so: cannot open shared object file".to_owned()),
        other => Err(format!("{other:?}: no such file")),
    };
    let warnings = icd_warnings(&here("vendors"), &[here("lib")], &load);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("lacks.icd") && warnings[0].contains("libLLVM.so: cannot open"));
    assert!(warnings[1].contains("spaces.icd") && warnings[1].contains("cannot be loaded"));
    assert!(warnings[2].contains(r"liblacks.so.1\r"), "{}", warnings[2]);
}

#[test]
fn an_unregistered_nvidia_driver_gets_the_line_to_write() {
    let root = root(&[
        ("vendors/pocl.icd", "libpocl.so.2"),
        ("usr/local/nvidia/lib64/libnvidia-opencl.so.1", ""),
    ]);
    let vendors = root.path().join("vendors");
    let warning = nvidia_warning(root.path(), &vendors, &[], false).expect("a warning");
    let library = root
        .path()
        .join("usr/local/nvidia/lib64/libnvidia-opencl.so.1");
    let line = format!(
        "echo {} > {}",
        library.display(),
        vendors.join("nvidia.icd").display()
    );
    assert!(warning.contains(&line), "{warning}");

    // Where the dynamic linker looks, the bare name is enough.
    let directory = root.path().join("usr/local/nvidia/lib64");
    let warning = nvidia_warning(root.path(), &vendors, &[directory], true).expect("a warning");
    assert!(
        warning.contains("echo libnvidia-opencl.so.1 >"),
        "{warning}"
    );

    fs::write(vendors.join("nvidia.icd"), "libnvidia-opencl.so.1").expect("a file");
    assert_eq!(nvidia_warning(root.path(), &vendors, &[], true), None);
}

#[test]
fn a_card_without_its_library_is_distinguished_from_no_card() {
    let root = root(&[]);
    let vendors = root.path().join("vendors");
    assert_eq!(nvidia_warning(root.path(), &vendors, &[], false), None);
    let warning = nvidia_warning(root.path(), &vendors, &[], true).expect("a warning");
    assert!(warning.contains("NVIDIA_DRIVER_CAPABILITIES"), "{warning}");
}

#[test]
fn little_locked_memory_is_reported() {
    assert_eq!(memlock_warning(None), None);
    assert_eq!(memlock_warning(Some(u64::MAX)), None);
    let warning = memlock_warning(Some(8 << 20)).expect("a warning");
    assert!(warning.contains("8192 KiB") && warning.contains("ulimit -l"));
}

#[test]
fn a_control_group_below_the_machines_memory_is_reported() {
    let memory = |limit| Memory {
        installed: 16 << 30,
        limit,
        ..Memory::default()
    };
    let warning = cgroup_warning(&memory(Some(4 << 30))).expect("a warning");
    assert!(
        warning.contains("4.0 of the machine's 16.0 GiB"),
        "{warning}"
    );
    assert_eq!(cgroup_warning(&memory(Some(32 << 30))), None);
    assert_eq!(cgroup_warning(&memory(None)), None);
}

#[test]
fn libraries_are_looked_for_where_the_linker_does() {
    let root = root(&[
        (
            "etc/ld.so.conf",
            "include /etc/ld.so.conf.d/*.conf\n/opt/one\n",
        ),
        ("etc/ld.so.conf.d/two.conf", "# comment\n/opt/two\n"),
    ]);
    let directories = library_directories(root.path(), Some("/mine::/yours".into()));
    for expected in ["/mine", "/yours", "/opt/one", "/opt/two"] {
        assert!(directories.contains(&PathBuf::from(expected)), "{expected}");
    }
    assert!(directories.contains(&root.path().join("usr/lib64")));
    assert_eq!(
        vendors_directory(Some(PathBuf::new())),
        PathBuf::from("/etc/OpenCL/vendors")
    );
    assert_eq!(vendors_directory(Some("/v".into())), PathBuf::from("/v"));
}

#[test]
fn a_variable_that_leads_nowhere_is_named() {
    let root = root(&[
        ("vendors/good.icd", "libgood.so.1"),
        ("empty/readme.txt", ""),
    ]);
    let here = |path: &str| root.path().join(path);
    assert_eq!(empty_vendors(None), None);
    assert_eq!(empty_vendors(Some(&here("vendors"))), None);
    assert_eq!(empty_vendors(Some(&here("vendors/good.icd"))), None);
    for nothing in ["empty", "absent"] {
        let warning = empty_vendors(Some(&here(nothing))).expect("a warning");
        assert!(
            warning.starts_with("OCL_ICD_VENDORS is ") && warning.contains(nothing),
            "{warning}"
        );
    }
}

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
