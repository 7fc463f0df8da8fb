//! Help, versions, and arguments that the program does not understand.

use predicates::prelude::*;
use predicates::str::{contains, starts_with};

use crate::command::{Home, pdawl};

#[test]
fn every_help_holds_an_example_and_every_command_tells_programs() {
    let groups = [
        "",
        "machine",
        "model",
        "run",
        "bench",
        "profile",
        "predict",
        "schema",
        "completions",
        "man",
    ];
    let commands = [
        "devices",
        "exec",
        "machine save",
        "machine list",
        "machine show",
        "model list",
        "model show",
        "model export",
        "model import",
        "model check",
        "model adapt",
        "run stencil",
        "run spmv",
        "run kernel",
        "run dag",
        "run transformer",
        "run tasks",
        "profile stencil",
        "train",
        "predict stencil",
    ];
    for line in groups.iter().chain(&commands) {
        pdawl(&format!("{line} --help"))
            .assert()
            .success()
            .stdout(contains("Example").and(contains("  pdawl ")));
    }
    pdawl("run --help")
        .assert()
        .stdout(contains("A product of dense matrices").and(contains("How a").not()));
    for line in commands {
        pdawl(&format!("{line} --help"))
            .assert()
            .stdout(contains("--format <FORMAT>"));
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    for (line, part) in [
        ("run stencil --gpu-memory 0", "must be at least 1 byte"),
        ("run stencil --gpu-memory 2GiG", "not a unit of bytes"),
        ("run stencil --host-memory much", "this is not a size"),
        ("run stencil --gpu-memory -1", "this is not a size"),
        ("run stencil --size 0", "nx is 0"),
        ("run stencil --size 1", "nx is 1"),
        ("run stencil --size 2", "at least 3 points"),
        ("run stencil --size -3", "not a number of points"),
        ("run transformer --heads 0", "0 is not in 1..=64"),
        ("run transformer --beta -1", "-1 is not in 1..=32768"),
        ("run transformer --layers 2.5", "not a whole number"),
        (
            "run transformer --map h_cpu=1",
            "--map is for --policy clustering",
        ),
        ("run transformer --queues gpu", "no DEVICE=N"),
        (
            "run transformer --leave-results --verify",
            "cannot be used with",
        ),
        (
            "bench --vary heads=1,65 run transformer",
            "65 is not in 1..=64",
        ),
        ("bench --vary heads run transformer", "write OPTION=LIST"),
        (
            "bench --vary legs=4 run transformer",
            "unexpected argument '--legs'",
        ),
        ("bench stencil", "`stencil` is none"),
        ("bench run dance", "unrecognized subcommand"),
        ("run stencil --size 1e30", "not a number of points"),
        (
            "run stencil --nx 5000000000 --ny 5000000000",
            "at most 2147483647 points",
        ),
        (
            "run stencil --size 2000000000 --dims 3",
            "more bytes than can be counted",
        ),
        ("run stencil --nx 7", "--ny"),
        ("run stencil --nx 7 --ny 7 --dims 3", "needs --nz"),
        ("run stencil --nx 7 --ny 7 --nz 7 --dims 2", "--dims says 2"),
        ("run stencil --steps 0", "0 is not in 1.."),
        (
            "run stencil --steps many",
            "not a whole number; write one from 1 to",
        ),
        ("run stencil --dims x", "write one from 2 to 3"),
        ("run stencil --seed -1", "-1 is not in 0.."),
        ("run stencil --strategy fixed:1.5", "outside 0 to 1"),
        ("run stencil --strategy fixed:abc", "'abc' is not a number"),
        (
            "run stencil --strategy fixed:0,0",
            "at least one must be above 0",
        ),
        (
            "run stencil --size 64 --devices host:1 --strategy fixed:0.5,0.5",
            "2 shares for 1 devices",
        ),
        ("run stencil --strategy fastest", "known are cpu, gpu"),
        (
            "run stencil --strategy cpu --adaptive",
            "cannot be used with",
        ),
        (
            "run stencil --gantt run.png",
            "must end in .html, .svg or .json",
        ),
        (
            "run stencil --trace a --csv a",
            "two outputs have the path a",
        ),
        (
            "run stencil --trace a --csv ./a",
            "two outputs have the path ./a",
        ),
        ("run stencil --fault gpu0:slow:2", "must end with a step"),
        ("run stencil --fault gpu0:slow:0@1", "from 0.001 to 1e6"),
        ("run stencil --fault gpu0:fail:0@1", "at least 1"),
        ("run stencil --noise 2", "fraction from 0 to 1"),
        (
            "run stencil --devices host --fault host:slow:2@1",
            "for simulated machines",
        ),
        (
            "run stencil --devices host --noise 0.1",
            "for simulated machines",
        ),
        ("run stencil --devices fast", "`fast` is no device"),
        ("run stencil --devices host,host", "named twice"),
        ("run stencil --devices host:1000000", "1000000"),
        (
            "run stencil --devices host:1,host:1000000",
            "name the same cores",
        ),
        ("run stencil --devices host:0", "asks for no units"),
        (
            "run stencil --devices host:1=own",
            "write host:1 without =own",
        ),
        ("run stencil --devices opencl0.0:1=mine", "is no device"),
        ("run stencil --devices host:1@wide", "@compact or @spread"),
        (
            "run stencil --devices opencl0.0@spread",
            "only the host's cores are placed",
        ),
        (
            "run stencil --machine k40 --devices host:1@wide",
            "@compact or @spread",
        ),
        (
            "run stencil --machine k40 --devices gpu0@spread",
            "only the host's cores are placed",
        ),
        ("run stencil --devices opencl99.0", "there is no opencl99.0"),
        ("run stencil --machine k40 --devices gpu0=own", "`gpu0=own`"),
        ("run stencil --devices host --strategy gpu", "needs a GPU"),
        ("run stencil --machine k40 --devices gpu7", "gpu7"),
        ("run stencil --machine k40 --devices host:9", "8"),
        (
            "run stencil --machine k40 --fault gpu7:lost@1",
            "no device `gpu7`",
        ),
        (
            "run stencil --machine k40 --fault gpu0:lost@30",
            "step 30, of gpu0, never comes: the last is 29",
        ),
        (
            "run stencil --machine k40 --fault host:cores:9@1",
            "host cannot be left 9 cores; it has 8",
        ),
        (
            "run stencil --machine k40 --fault gpu0:cores:2@1",
            "gpu0 cannot be left 2 cores, since it is no pool of host cores",
        ),
        (
            "run stencil --machine k40 --strategy fixed:0.1,0.2,0.7",
            "3 shares for 2 devices",
        ),
        (
            "run transformer --machine k40 --fault gpu0:lost@99",
            "or more steps",
        ),
        (
            "run transformer --machine k40 --heads 2 --beta 64 --policy clustering --map h_cpu=99",
            "--map h_cpu=99: the widest layer has 2 components",
        ),
        (
            "run spmv --matrix banded:200000,8 --machine k40 --gpu-memory 1MiB --strategy gpu",
            "gpu0 is left out:",
        ),
        (
            "train --workload spmv --sizes 100",
            "--sizes is of stencils",
        ),
        ("train --workload spmv --dims 3", "--dims is of stencils"),
        ("bench --vary strategy=cpu,cpu run stencil", "named twice"),
        ("bench --repeats 0 run stencil", "0 is not in 1.."),
        ("bench --repeats -1 run stencil", "-1 is not in 1.."),
        ("machine save x --copy-size 1", "give at least 1MiB"),
        ("model adapt k40 --runs x", "write one from 2 to 1000"),
        ("train --dataset a.csv --budget 1m", "cannot be used with"),
        ("train --no-profile --repeats 2", "cannot be used with"),
        ("run", "a command is missing"),
        ("dance", "unrecognized subcommand"),
    ] {
        pdawl(line)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(part).and(contains("panicked").not()));
    }
}

#[test]
fn errors_begin_with_the_programs_name_and_name_a_remedy() {
    pdawl("run stencil --devices host --noise 0.1")
        .assert()
        .stderr(starts_with("pdawl: ").and(contains("\n  try: --machine NAME")));
    pdawl("run stencil --size x")
        .assert()
        .stderr(starts_with("pdawl: invalid value").and(contains("--help")));
}

#[test]
fn what_has_no_room_is_refused_with_sizes_and_a_remedy() {
    for line in [
        "run transformer --machine k40 --heads 64 --beta 32768",
        "run transformer --devices host --heads 64 --beta 32768 --verify",
    ] {
        pdawl(line)
            .assert()
            .code(1)
            .stderr(contains("TiB of host memory, and").and(contains("a smaller --beta")));
    }
}

#[test]
fn a_profile_without_time_says_so() {
    Home::new()
        .pdawl("profile spmv --machine k40 --budget 1ns --out runs.csv")
        .assert()
        .code(1)
        .stderr(contains("it was over before the first run could begin"));
}
