use super::*;

/// The text with the `n`th line, from 1, changed.
fn with_line(n: usize, change: impl Fn(&str) -> String) -> String {
    let text = text(&dataset());
    let lines = text.lines().zip(1..);
    lines
        .map(|(line, i)| if i == n { change(line) } else { line.into() } + "\n")
        .collect()
}

/// What is said of the last row when a part of it is replaced.
fn refusal_of_row(from: &str, to: &str) -> String {
    refusal(&with_line(6, |line| {
        assert!(line.contains(from), "{line}");
        line.replacen(from, to, 1)
    }))
}

#[test]
fn what_was_written_is_read() {
    let text = text(&dataset());
    assert_eq!(parse(text.as_bytes(), "runs.csv").unwrap(), dataset());
}

#[test]
fn other_tools_ways_to_write_the_same_are_read() {
    let text = text(&dataset());
    let same = |text: String| parse(text.as_bytes(), "runs.csv").unwrap() == dataset();
    assert!(same(text.replace('\n', "\r\n")));
    assert!(same(format!("\u{feff}{text}")));
    assert!(same(format!("{text}\n \n")));
    assert!(same(text.replace("4096,32.5", "4096.0,3.25e1")));
    // A data frame may have the columns in another order.
    let row = |line: &str| {
        let (first, rest) = line.split_once(',').unwrap();
        format!("{rest},{first}\n")
    };
    let (above, rows) = text.split_at(text.find("machine,").unwrap());
    let turned: String = rows.lines().map(row).collect();
    assert!(same(above.to_owned() + &turned));
}

#[test]
fn another_format_or_version_is_refused_with_a_remedy() {
    let none = refusal(&with_line(1, |_| "machine,simulated".into()));
    assert!(none.contains("line 1: the first line must be `# pdawl-samples/1`"));
    assert!(none.contains("found `machine,simulated`"), "{none}");
    let newer = refusal(&with_line(1, |_| "# pdawl-samples/2".into()));
    assert!(newer.contains("newer pdawl"), "{newer}");
    assert!(newer.ends_with("update pdawl"), "{newer}");
    for other in ["# pdawl-samples/0", "# pdawl-samples/x", "hello\u{1b}[2J"] {
        let other = refusal(&with_line(1, |_| other.into()));
        assert!(other.contains("line 1: the first line must be"), "{other}");
        assert!(!other.contains('\u{1b}'));
    }
    assert!(refusal("").contains("is empty"));
    assert!(refusal("no dataset").contains("found `no dataset`"));
}

#[test]
fn a_wrong_header_is_refused_with_its_line() {
    let change = |from: &str, to: &str| refusal(&with_line(4, |line| line.replacen(from, to, 1)));
    let missing = change("kind,", "");
    assert!(missing.contains("line 4: the header has no column `kind`"));
    let group = change("known.units_count", "size.units_count");
    assert!(
        group.contains("line 4, column `size.units_count`"),
        "{group}"
    );
    assert!(group.contains("groups are machine, known"), "{group}");
    let unit = change("known.units_count", "known.units");
    assert!(unit.contains("column `known.units`"), "{unit}");
    assert!(unit.contains("units are count, seconds"), "{unit}");
    let twice = change("known.units_count", "machine.clock_mhz");
    assert!(twice.contains("column `machine.clock_mhz`"), "{twice}");
    assert!(twice.contains("names two columns"), "{twice}");
    let comment = refusal(&with_line(2, |_| "# hardware".into()));
    assert!(comment.contains("line 2: no `# key: value`"), "{comment}");
    let no_header = refusal("# pdawl-samples/1\n");
    assert!(no_header.contains("the header has no column `machine`"));
}

#[test]
fn a_wrong_row_is_refused_with_its_line_and_column() {
    for (from, to, column, why) in [
        ("false", "no", "simulated", "neither true nor false"),
        ("k40", "", "machine", "is empty"),
        ("k40", " k40", "machine", "begins or ends with a blank"),
        ("gpu0", "gpu#0", "device", "has a `#`"),
        (",gpu,", ",fpga,", "kind", "give one of `cpu`, `gpu`"),
        ("none", "many", "counters", "give one of `hardware`"),
        (",1,none", ",-1,none", "repeat", "no whole number from 0"),
        (",1,none", ",1.5,none", "repeat", "no whole number from 0"),
        (",30,", ",0,", "steps", "is no run"),
        (",30,", ",30.5,", "steps", "no whole number from 1"),
        (",1.1,", ",0,", "seconds", "no time that a run takes"),
        (",1.1,", ",-2,", "seconds", "no time that a run takes"),
        (",1.1,", ",inf,", "seconds", "no time that a run takes"),
        (",1.1,", ",soon,", "seconds", "is no number"),
        (",1.1,", ",,", "seconds", "is no number"),
        ("3400", "fast", "machine.clock_mhz", "is no number"),
        ("3400", "0", "machine.clock_mhz", "no rate of a machine"),
        (",4096,", ",NaN,", "known.units_count", "is not finite"),
        (",4096,", ",1e999,", "known.units_count", "is not finite"),
        (",4096,", ",-1,", "known.units_count", "is negative"),
        (",4096,", ",0,", "known.units_count", "give at least 1"),
        (",4096,", ",4096.5,", "known.units_count", "is not whole"),
        (
            "0.05",
            "0.2",
            "trace.overlap_seconds",
            "longer than all copies",
        ),
    ] {
        let refusal = refusal_of_row(from, to);
        let place = format!("runs.csv, line 6, column `{column}`: ");
        assert!(refusal.starts_with(&place), "{to}: {refusal}");
        assert!(refusal.contains(why), "{to}: {refusal}");
        assert!(refusal.contains("; "), "no remedy: {refusal}");
    }
}

#[test]
fn a_row_that_is_no_row_is_refused_with_its_line() {
    let short = refusal_of_row(",3400", "");
    assert!(short.contains("line 6: the row has 14 cells, the header 15"));
    let quote = refusal_of_row("\"4096", "4096");
    assert!(quote.contains("line 6: a `\"` is left open"), "{quote}");
    let comment = refusal_of_row("k40", "# k40");
    assert!(comment.contains("line 6: a comment stands among the rows"));
    let cut = text(&dataset());
    let cut = refusal(cut.trim_end());
    assert!(cut.contains("line 6: the line has no end"), "{cut}");
    assert!(cut.contains("`pdawl profile` continues the file"), "{cut}");
    let mut bytes = text(&dataset()).into_bytes();
    let last = bytes.len() - 5;
    bytes[last] = 0xff;
    let latin = parse(&bytes, "runs.csv").unwrap_err().to_string();
    assert!(latin.contains("line 6: not UTF-8"), "{latin}");
    let header: String = text(&dataset())
        .lines()
        .take(4)
        .map(|l| l.to_owned() + "\n")
        .collect();
    assert!(refusal(&header).contains("no rows"));
}

#[test]
fn a_run_stands_in_a_dataset_once() {
    let twice = refusal_of_row(",1,none", ",0,none");
    assert!(twice.contains("line 6, column `repeat`"), "{twice}");
    assert!(twice.contains("stands on line 5 already"), "{twice}");
}

#[test]
fn simulated_and_measured_runs_do_not_share_a_file() {
    let mixed = refusal_of_row("false", "true");
    assert!(mixed.contains("line 6, column `simulated`"), "{mixed}");
    assert!(
        mixed.contains("differs from line 5, which is measured"),
        "{mixed}"
    );
}

#[test]
fn ratios_are_fractions_but_for_those_that_compare() {
    let of = |name: &str, value: f64| {
        let mut dataset = dataset();
        dataset.samples[0].features.insert(name.into(), value);
        write(&std::env::temp_dir().join("none/pdawl/runs.csv"), &dataset)
            .unwrap_err()
            .to_string()
    };
    assert!(of("known.solo_ratio", 1.01).contains("is above 1"));
    assert!(of("machine.efficiency_ratio", 1.6).contains("is above 1.5"));
    assert!(of("counter.scaled_ratio", 0.5).contains("has no counters"));
    for allowed in [
        ("derived.working_set_over_l2_ratio", 400.0),
        ("machine.device_efficiency_ratio", 1.2),
        ("known.solo_ratio", 1.0),
        ("known.unit_traffic_bytes", 10.5),
    ] {
        let refusal = of(allowed.0, allowed.1);
        assert!(refusal.contains("cannot be written"), "{refusal}");
    }
}
