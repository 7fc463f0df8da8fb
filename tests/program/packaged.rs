//! What packages of the program have beside it: completions, manual pages, and the script for
//! Slurm.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command as Process, Output};

use predicates::prelude::*;
use predicates::str::contains;

use crate::command::pdawl;

/// What `pdawl` with these arguments prints, which must succeed.
fn printed(line: &str) -> String {
    let output = pdawl(line).assert().success().get_output().clone();
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `--help` of a command lists.
fn listed(command: &str) -> Vec<String> {
    let help = printed(&format!("{command} --help"));
    let (_, list) = help.split_once("Commands:\n").unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), printed("completions bash")).unwrap();
    let completed = |words: &str| {
        let ask = format!(
            "source ./script; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _pdawl pdawl \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let bash = Process::new("bash")
            .current_dir(&folder)
            .args(["-c", &ask])
            .output();
        String::from_utf8(bash.expect("bash").stdout).unwrap()
    };
    assert_eq!(completed("pdawl dev").trim(), "devices");
    assert_eq!(
        completed("pdawl run stencil --superst").trim(),
        "--superstep"
    );
    assert_eq!(
        completed("pdawl completions \"\"").matches("zsh").count(),
        1
    );
}

#[test]
fn scripts_have_the_form_of_their_shells() {
    let zsh = printed("completions zsh");
    assert!(zsh.starts_with("#compdef pdawl"));
    let fish = printed("completions fish");
    assert!(fish.contains("complete -c pdawl"));
    // A hidden command stays hidden.
    assert!(!zsh.contains("examine-loader") && !fish.contains("examine-loader"));
    let unknown = pdawl("completions tcsh").assert().code(2).stdout("");
    unknown.stderr(contains("tcsh").and(contains("bash, zsh, fish")));
}

#[test]
fn every_command_has_a_page() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("share/man1");
    pdawl(&format!("man {}", folder.display()))
        .assert()
        .success()
        .stdout("")
        .stderr("");
    let mut expected = BTreeSet::from(["pdawl.1".to_owned()]);
    let mut commands = listed("");
    assert!(commands.len() > 10, "{commands:?}");
    while let Some(command) = commands.pop() {
        expected.insert(format!("pdawl-{}.1", command.replace(' ', "-")));
        let inner = listed(&command).into_iter();
        commands.extend(inner.map(|inner| format!("{command} {inner}")));
    }
    let files = fs::read_dir(&folder).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), expected);
    for file in expected {
        let page = fs::read_to_string(folder.join(&file)).unwrap();
        let (_, examples) = page.split_once(".SH EXAMPLES\n").expect(&file);
        assert!(examples.contains("pdawl "), "{file}: {examples}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let under_a_file = root.path().join("file/man1");
    // The page of `pdawl` itself is the first one.
    let occupied = root.path().join("man1");
    fs::create_dir_all(occupied.join("pdawl.1")).unwrap();
    for folder in [&under_a_file, &occupied] {
        let shown = folder.display().to_string();
        let failed = pdawl(&format!("man {shown}")).assert().code(1);
        failed.stdout("").stderr(contains(shown));
    }
    assert_eq!(fs::read_dir(&occupied).unwrap().count(), 1);
}

/// Runs examples/slurm.sh where only these launchers exist. They print their arguments.
fn slurm(launchers: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for launcher in launchers {
        let file = folder.path().join(launcher);
        fs::write(&file, "#!/bin/sh\necho $0 $*\n").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/slurm.sh");
    let mut shell = Process::new("/bin/sh");
    shell
        .arg(script)
        .env("PATH", folder.path())
        .env_remove("PDAWL");
    shell.env("SLURM_CPUS_ON_NODE", "48").output().unwrap()
}

#[test]
fn a_job_of_slurm_starts_one_process_on_each_node() {
    let output = |launchers: &[&str]| String::from_utf8(slurm(launchers).stdout).unwrap();
    let by_mpirun = output(&["mpirun", "srun"]);
    assert!(
        by_mpirun.contains("/mpirun --map-by ppr:1:node --bind-to none pdawl run "),
        "{by_mpirun}"
    );
    let by_srun = output(&["srun"]);
    assert!(
        by_srun.contains("/srun --mpi=pmix --ntasks-per-node=1 --cpus-per-task=48 "),
        "{by_srun}"
    );
    assert!(!slurm(&[]).status.success());
}
