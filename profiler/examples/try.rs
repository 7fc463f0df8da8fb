use pdawl_profiler::{
    Table,
    train::{Family, Recipe, train},
    validate::Accuracy,
};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;
fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let flag = |n: &str| names.iter().any(|x| x == n);
    let cases = synthetic::cases(synthetic::sizes(256.0, 16384.0, 1.414));
    let n = cases.len().min(if flag("full") { 1000 } else { 100 });
    let mut table = synthetic::table(&cases[..n], 4, 0.02, 7);
    let last = cases[n - 1].size;
    let mut between = synthetic::table(
        &synthetic::cases(synthetic::sizes(300.0, last, 1.414)),
        1,
        0.0,
        1,
    );
    let mut beyond = synthetic::table(
        &synthetic::cases(synthetic::sizes((last * 1.2).round(), last * 1.5, 1.25)),
        1,
        0.0,
        2,
    );
    if flag("planning") {
        table = synthetic::planning(table);
        between = synthetic::planning(between);
        beyond = synthetic::planning(beyond);
    }
    if flag("outliers") {
        let mut d = synthetic::Draws(99);
        for r in &mut table.rows {
            if d.uniform() < 0.05 {
                r.seconds *= 5.0;
            }
        }
    }
    println!(
        "{} rows {} features, last {last}",
        table.rows.len(),
        table.names.len()
    );
    for f in Family::ALL {
        if !flag("all") && !f.over_prior() && f != Family::Linear {
            continue;
        }
        let recipe = Recipe {
            threads: 2,
            families: vec![f],
            ..Recipe::default()
        };
        let t = Instant::now();
        match train(&table, &recipe, &mut |_, _| {}, &AtomicBool::new(false)) {
            Ok(tr) => {
                let test = |t: &Table| {
                    let pairs: Vec<_> = t
                        .rows
                        .iter()
                        .map(|r| {
                            let v: Vec<f64> = tr
                                .fitted
                                .inputs
                                .iter()
                                .map(|i| {
                                    r.values[t.names.iter().position(|n| *n == i.name).unwrap()]
                                })
                                .collect();
                            (r.seconds, tr.fitted.predict(&v, r.prior))
                        })
                        .collect();
                    Accuracy::of(&pairs)
                };
                let c = &tr.validation.candidates[0];
                let (a, b) = (test(&between), test(&beyond));
                println!(
                    "{:22} {:.1}s k{:2} CV {:.2}/{:.2} beyond {:.2} | TRUE between {:.2}/{:.2} max {:.1} beyond {:.2} spread {:.3} out {} | {} {:?}",
                    f,
                    t.elapsed().as_secs_f64(),
                    c.clusters,
                    100. * c.accuracy.mape,
                    100. * c.accuracy.trimmed,
                    100. * c.beyond.map_or(0., |b| b.mape),
                    100. * a.mape,
                    100. * a.trimmed,
                    100. * a.greatest,
                    100. * b.mape,
                    tr.fitted.spread,
                    tr.validation.outliers,
                    c.spec,
                    c.inputs
                );
            }
            Err(e) => println!("{f}: {e}"),
        }
    }
}
