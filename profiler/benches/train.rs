//! Duration of training: 400 rows of 40 features, all candidates, on two threads.
//!
//! A training takes seconds, so it is timed a few times and not by criterion:
//! `cargo bench -p pdawl-profiler --bench train -- 3` for three.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pdawl_profiler::Table;
use pdawl_profiler::train::{Family, Recipe, train};

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

fn main() {
    let asked = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let times: u32 = asked.unwrap_or(3);
    let cases = synthetic::cases(synthetic::sizes(256.0, 16384.0, 1.414));
    let mut table = synthetic::table(&cases[..100], 4, 0.02, 7);
    println!(
        "{} rows of {} features",
        table.rows.len(),
        table.names.len()
    );
    let recipe = Recipe {
        threads: 2,
        ..Recipe::default()
    };
    for run in 0..times {
        run_once(&format!("all families, run {run}"), &table, &recipe);
    }
    for family in Family::ALL {
        let recipe = Recipe {
            families: vec![family],
            ..recipe.clone()
        };
        run_once(&family.to_string(), &table, &recipe);
    }
    table = synthetic::planning(table);
    run_once("all families, planning features", &table, &recipe);
}

fn run_once(what: &str, table: &Table, recipe: &Recipe) {
    let (begun, used) = (Instant::now(), processor_seconds());
    let trained = train(table, recipe, &mut |_, _| {}, &AtomicBool::new(false));
    let seconds = begun.elapsed().as_secs_f64();
    let used = processor_seconds() - used;
    let what = format!("{what}: {seconds:.2} s, {used:.2} s of processors");
    match trained {
        Ok(trained) => {
            println!("{what}; {}", trained.validation.why);
            for candidate in &trained.validation.candidates {
                println!(
                    "    {:22} {:2} inputs, MAPE {:.2} ({:.2}) %, believed {:.2} %, beyond {:.2} %, {}",
                    candidate.family,
                    candidate.inputs.len(),
                    100.0 * candidate.accuracy.mape,
                    100.0 * candidate.standard_error,
                    100.0 * candidate.believed,
                    100.0 * candidate.beyond.map_or(0.0, |beyond| beyond.mape),
                    candidate.spec,
                );
            }
            for failed in &trained.validation.failed {
                println!("    {:22} {}", failed.family, failed.reason);
            }
        }
        Err(error) => println!("{what}; {error}"),
    }
}

/// CPU time of all threads of this process, from Linux in hundredths of a second;
/// 0 elsewhere. Unlike elapsed time it does not depend on other programs.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
