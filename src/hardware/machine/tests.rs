//! Machine files: the shipped ones, wrong ones, and the way to disk and back.
use super::*;

const K40: &str = include_str!("../../../datasets/machines/k40.toml");
const V100X2: &str = include_str!("../../../datasets/machines/v100x2.toml");

fn store() -> (tempfile::TempDir, MachineStore) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = MachineStore::at(directory.path().join("machines"));
    (directory, store)
}

/// The message for the file `text`, called `file`, with `from` replaced by `to`.
fn message(text: &str, file: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the file has {from:?}");
    MachineFile::parse(&text.replacen(from, to, 1), file)
        .expect_err("a wrong file")
        .to_string()
}

#[test]
fn every_shipped_file_is_right_and_survives_writing() {
    let (_directory, store) = store();
    assert_eq!(
        store.names(),
        [
            "h200", "k20-32", "k20-40", "k40", "laptop", "m2070x2", "titan", "v100x1", "v100x2",
            "v100x4", "v100x7"
        ]
    );
    for name in store.names() {
        let machine = store.find(&name).expect("a shipped file is right");
        assert_eq!(machine.name, name);
        assert!(!machine.source.is_empty(), "{name} says its sources");
        let text = machine.to_toml().expect("it can be written");
        assert_eq!(
            MachineFile::parse(&text, "again").expect("read back"),
            machine
        );
    }
}

#[test]
fn shipped_files_carry_table_1_of_the_pdawl_paper() {
    let (_directory, store) = store();
    let row = |name: &str| {
        let m = store.find(name).expect("shipped");
        let gpu = &m.devices[0];
        (
            m.host.cores,
            m.host.sockets,
            gpu.compute_units,
            gpu.memory,
            gpu.link.as_ref().expect("a link").h2d,
        )
    };
    assert_eq!(row("k20-32"), (32, 2, 13, 4_800_000_000, 6.1e9));
    assert_eq!(row("k20-40"), (40, 2, 13, 4_800_000_000, 6.1e9));
    assert_eq!(row("k40"), (8, 1, 15, 12_000_000_000, 10.3e9));
    assert_eq!(row("titan"), (12, 1, 14, 6_000_000_000, 11.5e9));
}

#[test]
fn shipped_v100s_have_a_bus_and_links_between_every_two() {
    let (_directory, store) = store();
    for (name, gpus) in [("v100x1", 1), ("v100x2", 2), ("v100x4", 4)] {
        let machine = store.find(name).expect("shipped");
        assert_eq!(machine.host.bus_bandwidth, Some(12.39e9));
        assert_eq!(machine.devices.len(), gpus);
        assert_eq!(machine.peers.len(), gpus * (gpus - 1), "both directions");
        for gpu in &machine.devices[1..] {
            let name = machine.devices[0].name.clone();
            let first = DeviceSpec {
                name,
                ..gpu.clone()
            };
            assert_eq!(first, machine.devices[0], "all GPUs are alike");
        }
        let task = 2.0 * 960.0 * 960.0 * 3840.0;
        let flops = machine.devices[0].flops_f32.expect("a figure");
        assert!((task / flops - 553e-6).abs() < 1e-9);
    }
}

#[test]
fn a_wrong_file_is_reported_by_file_key_and_remedy() {
    for (from, to, words) in [
        (
            "cores = 8\n",
            "",
            ["k40.toml", "missing field `cores`", "pdawl machine show"],
        ),
        (
            "cores = 8\n",
            "kores = 8\n",
            ["k40.toml", "unknown field `kores`", "pdawl machine show"],
        ),
        (
            "cores = 8\n",
            "cores = 0\n",
            ["k40.toml", "host.cores", "not positive"],
        ),
        (
            "h2d = 10.3e9",
            "h2d = -1.0",
            ["k40.toml", "device.link.h2d` of `gpu0", "not positive"],
        ),
        (
            "h2d = 10.3e9",
            "h2d = nan",
            ["k40.toml", "h2d", "not a finite number"],
        ),
        (
            "h2d = 10.3e9",
            "h2d = 10.3",
            ["k40.toml", "h2d", "bytes a second, such as 55e9"],
        ),
        (
            "clock_mhz = 3400",
            "clock_mhz = 3",
            ["k40.toml", "clock_mhz", "MHz, such as 2600"],
        ),
        (
            "memory = 12_000_000_000",
            "memory = 12",
            ["k40.toml", "memory", "give bytes"],
        ),
        (
            "both_ways = 8.6e9",
            "both_ways = 17e9",
            ["k40.toml", "both_ways", "figure of one way"],
        ),
        (
            "core_bandwidth = 12e9",
            "core_bandwidth = 50e9",
            ["k40.toml", "host.core_bandwidth", "at most"],
        ),
        (
            "core_bandwidth = 12e9",
            "shared_bandwidth = 1e9\ncore_bandwidth = 12e9",
            ["k40.toml", "host.memory_bandwidth", "host.shared_bandwidth"],
        ),
        (
            "core_bandwidth = 12e9",
            "core_bandwidth = 12e9\nbus_bandwidth = 12.39",
            ["k40.toml", "host.bus_bandwidth", "bytes a second"],
        ),
        (
            "copy_engines = 2",
            "copy_engines = 3",
            ["k40.toml", "copy_engines", "from 1 to 2"],
        ),
        (
            "latency_ns = 10000\n",
            "latency_ns = 10000\nlaunch_delay_ns = 15_000_000_000\n",
            [
                "k40.toml",
                "device.link.launch_delay_ns` of `gpu0",
                "give nanoseconds",
            ],
        ),
        (
            "pdawl-machine/1",
            "pdawl-machine/9",
            ["k40.toml", "`pdawl-machine/9`", "save the machine again"],
        ),
        (
            "[device.link]\nh2d = 10.3e9\nd2h = 10.3e9\nboth_ways = 8.6e9\nlatency_ns = 10000\n",
            "",
            ["k40.toml", "device.link", "add [device.link]"],
        ),
    ] {
        let message = message(K40, "k40.toml", from, to);
        for word in words {
            assert!(message.contains(word), "{to:?}: no {word:?} in {message}");
        }
    }
    let none = MachineFile::parse("name = \"x\"", "x.toml").expect_err("no header");
    assert!(none.to_string().contains("found none"), "{none}");
}

#[test]
fn a_wrong_direct_link_is_reported_by_file_key_and_remedy() {
    for (from, to, words) in [
        (
            r#"to = "gpu1""#,
            r#"to = "gpu7""#,
            ["`peer.to` is gpu7", "no device has this name", "gpu0, gpu1"],
        ),
        (
            r#"from = "gpu0""#,
            r#"from = "host""#,
            ["`peer.from` is host", "no device", "gpu0, gpu1"],
        ),
        (
            r#"to = "gpu1""#,
            r#"to = "gpu0""#,
            ["`peer.to` is gpu0", "the same device", "give two devices"],
        ),
        (
            r#"from = "gpu0", to = "gpu1""#,
            r#"from = "gpu1", to = "gpu0""#,
            ["`peer` from `gpu1` to `gpu0`", "given twice", "exchange"],
        ),
        (
            "bandwidth = 24e9",
            "bandwidth = -24e9",
            [
                "`peer.bandwidth` from `gpu0` to `gpu1`",
                "not positive",
                "bytes a second",
            ],
        ),
        (
            "latency_ns = 10_000 }",
            "latency_ns = 10_000_000_000 }",
            ["`peer.latency_ns` from", "too large", "nanoseconds"],
        ),
        (
            ", latency_ns = 10_000 }",
            " }",
            ["missing field `latency_ns`", "line", "pdawl machine show"],
        ),
    ] {
        let message = message(V100X2, "v100x2.toml", from, to);
        assert!(message.starts_with("v100x2.toml: "), "{message}");
        for word in words {
            assert!(message.contains(word), "{to:?}: no {word:?} in {message}");
        }
    }

    let (_directory, store) = store();
    let mut laptop = store.find("laptop").expect("shipped");
    laptop.peers = store.find("v100x2").expect("shipped").peers;
    let text = laptop.to_toml().expect("it can be written");
    let message = message(&text, "laptop.toml", "", "");
    for word in [
        "`peer.from` is gpu0",
        "the host's memory",
        "remove the entry",
    ] {
        assert!(message.contains(word), "no {word:?} in {message}");
    }
}

#[test]
fn saving_and_finding_again() {
    let (directory, store) = store();
    let mut machine = store.find("k40").expect("shipped");
    machine.name = "mine".into();
    machine.fingerprint = Some("Some CPU x2".into());
    let path = store.save(&machine).expect("saved");
    assert_eq!(load(&path).expect("loaded"), machine);
    assert_eq!(store.find("mine").expect("found"), machine);
    assert!(store.names().contains(&"mine".to_owned()));
    let left = std::fs::read_dir(path.parent().expect("a parent")).expect("listed");
    assert_eq!(left.count(), 1, "nothing but the file is left");

    machine.name = "k40".into();
    machine.title = "my own".into();
    store.save(&machine).expect("saved");
    let found = store.find("k40").expect("found");
    assert_eq!(found.title, "my own", "a user's file hides the shipped one");

    let message = store.find("none").expect_err("unknown").to_string();
    for word in ["`none`", "k20-32", "mine", "pdawl machine save"] {
        assert!(message.contains(word), "no {word:?} in {message}");
    }
    for odd in ["", "../k40", ".hidden", "-x", "a/b", "a b", &"x".repeat(65)] {
        machine.name = odd.into();
        assert!(store.save(&machine).is_err(), "{odd:?} names a file");
        assert!(store.find(odd).is_err(), "{odd:?} is looked for");
    }
    drop(directory);
}

#[test]
fn a_directory_that_is_a_file_cannot_be_saved_into() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let store = MachineStore::at(file.path());
    let machine = store.find("k40").expect("shipped");
    let message = store.save(&machine).expect_err("no directory").to_string();
    assert!(message.contains("PDAWL_MACHINES"), "{message}");
}

#[test]
fn a_fingerprint_ignores_order_and_spelling() {
    let a = Fingerprint::of(
        "Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz",
        16,
        ["NVIDIA H200", "Tesla K20", "NVIDIA H200"],
    );
    assert_eq!(
        a.to_string(),
        "Intel Xeon E5-2670 0 x16 + 2 NVIDIA H200 + Tesla K20"
    );
    let b = Fingerprint::of(
        "Intel Xeon  E5-2670 0",
        16,
        ["Tesla K20", "NVIDIA H200", "NVIDIA H200"],
    );
    assert_eq!(a, b);
    assert!(b.is(Some(&a.to_string())));
    assert!(!b.is(None));
    assert!(!Fingerprint::of("Intel Xeon E5-2670 0", 8, []).is(Some(&a.to_string())));
    for (cpu, cores, begins) in [
        ("Intel(R) Xeon(R) CPU E5-2670 0", 16, true),
        ("Intel Xeon E5-2670 0", 1, false),
        ("Intel Xeon E5-2670", 16, false),
        ("Intel Xeon", 16, false),
    ] {
        let cpu = Fingerprint::of(cpu, cores, []);
        assert_eq!(cpu.begins(Some(&a.to_string())), begins, "{cpu}");
        assert!(cpu.begins(Some(&cpu.to_string())) && !cpu.begins(None));
    }
}
