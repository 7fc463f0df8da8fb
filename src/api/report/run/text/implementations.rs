//! Which implementations of codelets serve on GPUs, as text.

use std::fmt::{self, Write};

use super::super::super::style::{cell, note};
use super::super::super::table;
use crate::quantity::Seconds;
use crate::runtime::Comparison;

const HEADER: [&str; 7] = [
    "Device",
    "Codelet",
    "Sizes",
    "Served by",
    "Ours",
    "Library's",
    "Library",
];

/// Writes a table of those with a library, and why others have none.
pub fn write(all: &[Comparison], out: &mut String) -> fmt::Result {
    let mut table = table::plain(&HEADER, |column| column == 4 || column == 5);
    for of in all.iter().filter(|of| of.library.is_some()) {
        let sizes: Vec<String> = of.sizes.iter().map(u64::to_string).collect();
        table.add_row([
            of.device.clone(),
            of.codelet.clone(),
            sizes.join("x"),
            cell(of.serves, |serves| serves),
            cell(of.own_seconds, Seconds),
            cell(of.library_seconds, Seconds),
            of.library.clone().unwrap_or_default(),
        ]);
    }
    if table.row_iter().next().is_some() {
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    let mut reasons: Vec<&String> = all.iter().filter_map(|of| of.refusal.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    reasons
        .iter()
        .try_for_each(|why| note(out, format!("our kernels serve: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Implementation;

    #[test]
    fn a_reason_is_reported_once() {
        let of = |codelet: &str, library: Option<&str>, refusal: Option<&str>| Comparison {
            device: "cuda0".to_owned(),
            codelet: codelet.to_owned(),
            sizes: vec![512, 64],
            library: library.map(str::to_owned),
            own_seconds: library.map(|_| 0.002),
            library_seconds: library.map(|_| 0.001),
            serves: Some(Implementation::Library),
            refusal: refusal.map(str::to_owned),
        };
        let all = [
            of("gemm-tile-f32", Some("cublas-130002"), None),
            of(
                "potrf-tile-f32",
                None,
                Some("libcusolver.so.12 is not found"),
            ),
            of("lu-panel-f32", None, Some("libcusolver.so.12 is not found")),
        ];
        let mut text = String::new();
        write(&all, &mut text).unwrap();
        assert_eq!(text.matches("is not found").count(), 1, "{text}");
        let mut lines = text.lines().filter(|line| line.contains("gemm-tile-f32"));
        let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(row[..4], ["cuda0", "gemm-tile-f32", "512x64", "library"]);
        assert!(!text.contains("potrf"), "{text}");
        let mut nothing = String::new();
        write(&[], &mut nothing).unwrap();
        assert_eq!(nothing, "");
    }
}
