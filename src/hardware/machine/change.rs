//! Machines with changes, as the command line names them: `k40,gpu0.speed=2x,gpu0.link=0.5x`.
//!
//! `DEVICE.FIGURE=VALUE` sets a figure of a device, of the `host` or of all `peers` by its key in
//! the file, and `=2x` multiplies it. `speed` stands for operations and memory's bytes a second,
//! `link` for bytes a second between host and device. `gpu2=gpu1` adds a device that is like
//! another one, and `gpu1=none` takes one out.

use toml::{Table, Value};

use super::{MachineError, MachineFile, check};

/// The keys that a word stands for.
const GROUPS: [(&str, &[&str]); 2] = [
    (
        "speed",
        &[
            "flops",
            "flops_f64",
            "flops_f32",
            "flops_f16",
            "flops_tf32",
            "memory_bandwidth",
            "shared_bandwidth",
            "core_bandwidth",
        ],
    ),
    ("link", &["link.h2d", "link.d2h", "link.both_ways"]),
];

/// The machine with these changes, called `name`. It is no machine that there is, so it has no
/// fingerprint.
///
/// # Errors
/// A change that is none, or whose figures [`MachineFile::parse`] would refuse.
pub fn changed(file: &MachineFile, name: &str, changes: &str) -> Result<MachineFile, MachineError> {
    let refused = |why: String| MachineError::Parse {
        file: name.to_owned(),
        why,
    };
    let mut table = Table::try_from(file).map_err(|error| refused(error.to_string()))?;
    for change in changes.split(',') {
        apply(&mut table, change).map_err(|(why, remedy)| MachineError::Change {
            machine: name.to_owned(),
            change: change.to_owned(),
            why,
            remedy,
        })?;
    }
    let mut machine: MachineFile =
        (table.try_into()).map_err(|error: toml::de::Error| refused(error.message().to_owned()))?;
    check::check(&machine, name)?;
    machine.name = name.to_owned();
    machine.fingerprint = None;
    Ok(machine)
}

/// Why a change is refused, and what to do.
type Refusal = (String, String);

fn apply(machine: &mut Table, change: &str) -> Result<(), Refusal> {
    const FORM: &str = "DEVICE.FIGURE=VALUE, such as gpu0.speed=2x";
    let form = || ("it is no change".to_owned(), FORM.to_owned());
    let (key, value) = change.split_once('=').ok_or_else(form)?;
    let (key, value) = (key.trim(), value.trim());
    let Some((part, figure)) = key.split_once('.') else {
        return exchange(machine, key, value);
    };
    let parts: Vec<&mut Table> = match part {
        "host" | "noise" => machine
            .entry(part)
            .or_insert(Table::new().into())
            .as_table_mut()
            .into_iter()
            .collect(),
        "peers" => tables(machine, "peer").collect(),
        device => tables(machine, "device")
            .filter(|of| of["name"].as_str() == Some(device))
            .collect(),
    };
    if parts.is_empty() {
        return Err((format!("the machine has no {part}"), known(machine)));
    }
    let group = GROUPS.iter().find(|(name, _)| *name == figure);
    for table in parts {
        let Some((_, keys)) = group else {
            set(table, figure, value, false)?;
            continue;
        };
        let mut any = false;
        for key in *keys {
            any |= set(table, key, value, true)?;
        }
        if !any {
            let remedy = "a figure of the file by its key; `pdawl machine show NAME` shows them";
            return Err((format!("{part} has no {figure}"), remedy.to_owned()));
        }
    }
    Ok(())
}

/// Sets a figure, and tells whether it was there. One that `must_be` there is otherwise left out.
fn set(table: &mut Table, key: &str, value: &str, must_be: bool) -> Result<bool, Refusal> {
    if let Some((inner, rest)) = key.split_once('.') {
        let inner = match must_be {
            true => table.get_mut(inner),
            false => Some(table.entry(inner).or_insert(Table::new().into())),
        };
        return match inner.and_then(Value::as_table_mut) {
            Some(inner) => set(inner, rest, value, must_be),
            None => Ok(false),
        };
    }
    let before = table.get(key).cloned();
    if before.is_none() && must_be {
        return Ok(false);
    }
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    let wanted = match (value.strip_suffix('x'), &before) {
        (Some(factor), Some(Value::Integer(of))) => number(factor).map(|by| by * *of as f64),
        (Some(factor), Some(Value::Float(of))) => number(factor).map(|by| by * of),
        (Some(_), _) => None,
        (None, _) => number(value),
    };
    let value = match (wanted, before.as_ref()) {
        (Some(wanted), Some(Value::Float(_))) => Value::Float(wanted),
        (Some(wanted), _) if wanted.fract() == 0.0 => Value::Integer(wanted as i64),
        (Some(wanted), Some(Value::Integer(_))) => Value::Integer(wanted.round() as i64),
        (Some(wanted), _) => Value::Float(wanted),
        (None, Some(Value::Boolean(_))) if ["true", "false"].contains(&value) => {
            Value::Boolean(value == "true")
        }
        (None, _) => {
            let why = format!("`{value}` is no value of {key}");
            return Err((why, "a number, or a factor such as 2x".to_owned()));
        }
    };
    table.insert(key.to_owned(), value);
    Ok(before.is_some())
}

/// Takes a device out, or adds one that is like another one.
fn exchange(machine: &mut Table, name: &str, like: &str) -> Result<(), Refusal> {
    let is = |table: &Table, key: &str, name: &str| table[key].as_str() == Some(name);
    let find = |machine: &mut Table, name: &str| {
        let found = tables(machine, "device").find(|device| is(device, "name", name));
        found.map(|device| device.clone())
    };
    let unknown =
        |name: &str, machine: &Table| (format!("there is no device {name}"), known(machine));
    let was_there = find(machine, name).is_some();
    if like == "none" {
        if !was_there {
            return Err(unknown(name, machine));
        }
        list(machine, "device").retain(|device| device["name"].as_str() != Some(name));
        list(machine, "peer").retain(|peer| {
            peer["from"].as_str() != Some(name) && peer["to"].as_str() != Some(name)
        });
        return Ok(());
    }
    let Some(mut device) = find(machine, like) else {
        return Err(unknown(like, machine));
    };
    if was_there {
        let why = format!("there is a device {name} already");
        return Err((why, "another name".to_owned()));
    }
    device.insert("name".to_owned(), name.into());
    list(machine, "device").push(device.into());
    // To others it has the ways that the other one has; between the two is the first of these.
    let mut added = Vec::new();
    for peer in tables(machine, "peer") {
        for (own, far) in [("from", "to"), ("to", "from")] {
            if is(peer, own, like) {
                let mut way = peer.clone();
                way.insert(own.to_owned(), name.into());
                added.push(way.clone());
                way.insert(far.to_owned(), like.into());
                if !added
                    .iter()
                    .any(|one| is(one, own, name) && is(one, far, like))
                {
                    added.push(way);
                }
            }
        }
    }
    list(machine, "peer").extend(added.into_iter().map(Value::from));
    Ok(())
}

/// A list of tables of the file.
fn list<'a>(machine: &'a mut Table, key: &str) -> &'a mut Vec<Value> {
    let list = machine.entry(key).or_insert(Value::Array(Vec::new()));
    list.as_array_mut().expect("a list of tables")
}

fn tables<'a>(machine: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Table> {
    list(machine, key)
        .iter_mut()
        .filter_map(Value::as_table_mut)
}

/// What a change can name.
fn known(machine: &Table) -> String {
    let devices = machine.get("device").and_then(Value::as_array);
    let names = devices.into_iter().flatten();
    let names = names.filter_map(|device| device["name"].as_str());
    let all: Vec<&str> = ["host"].into_iter().chain(names).chain(["peers"]).collect();
    format!("one of {}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    fn of(name: &str) -> MachineFile {
        find(name).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[test]
    fn figures_are_set_and_multiplied() {
        let (k40, changed) = (
            of("k40"),
            of(
                "k40,gpu0.speed=2x,gpu0.link=0.5x,host.cores=2,gpu0.memory=6e9,gpu0.link.latency_ns=0",
            ),
        );
        let (old, new) = (&k40.devices[0], &changed.devices[0]);
        assert_eq!(new.memory_bandwidth, 2.0 * old.memory_bandwidth);
        assert_eq!(new.flops_f64, old.flops_f64.map(|of| 2.0 * of));
        let [old, link] = [old, new].map(|device| device.link.clone().expect("a link"));
        assert_eq!(
            (link.h2d, link.d2h, link.latency_ns),
            (old.h2d / 2.0, old.d2h / 2.0, 0)
        );
        assert_eq!((changed.host.cores, new.memory), (2, 6_000_000_000));
        assert_eq!(changed.fingerprint, None);
        assert!(changed.name.starts_with("k40,gpu0.speed"));
        assert_eq!(of("k40,noise.relative=0.1").noise.relative, 0.1);
    }

    #[test]
    fn devices_are_added_and_taken_out() {
        let names = |machine: &MachineFile| -> Vec<String> {
            machine
                .devices
                .iter()
                .map(|device| device.name.clone())
                .collect()
        };
        let three = of("v100x2,gpu2=gpu1");
        assert_eq!(names(&three), ["gpu0", "gpu1", "gpu2"]);
        let mut ways: Vec<(&str, &str)> = (three.peers.iter())
            .map(|peer| (&*peer.from, &*peer.to))
            .collect();
        ways.sort_unstable();
        let all = ["gpu0", "gpu1", "gpu2"];
        let pairs = all
            .iter()
            .flat_map(|from| all.iter().map(move |to| (*from, *to)));
        let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
        assert_eq!(ways, pairs);
        let one = of("v100x2,gpu0=none,gpu9=gpu1");
        assert_eq!(names(&one), ["gpu1", "gpu9"]);
        assert!(one.peers.is_empty());
        let fast = of("v100x2,peers.bandwidth=2x");
        assert_eq!(fast.peers[0].bandwidth, 48e9);
    }

    #[test]
    fn what_is_no_change_is_refused() {
        for (changes, expected) in [
            ("gpu0", "DEVICE.FIGURE=VALUE"),
            ("gpu7.speed=2x", "one of host, gpu0, peers"),
            ("gpu0.speed=fast", "2x"),
            ("gpu0.colour=3", "colour"),
            ("host.link=2x", "host has no link"),
            ("gpu0.memory=-5", "memory"),
            ("gpu0.bus_bandwidth=2x", "bus_bandwidth"),
            ("gpu0.name=3", "name"),
            ("gpu1=gpu7", "there is no device gpu7"),
            ("gpu0=gpu0", "already"),
            ("host.cores=0.5x,host.core_bandwidth=1e15", "core_bandwidth"),
            ("", "DEVICE.FIGURE=VALUE"),
        ] {
            let refused = find(&format!("k40,{changes}")).unwrap_err().to_string();
            assert!(refused.contains(expected), "{changes}: {refused}");
        }
    }
}
