use ndarray::Array2;
use pdawl_profiler::regress::{Spec, fit};
use std::time::Instant;
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;
fn main() {
    for rows in [100usize, 200, 400] {
        for d in [4usize, 8, 12] {
            let mut draws = synthetic::Draws(1);
            let x = Array2::from_shape_fn((rows, d), |_| draws.normal());
            for (what, scale) in [("wide", 2.0), ("narrow", 0.15)] {
                let y: Vec<f64> = (0..rows)
                    .map(|i| {
                        scale * (x[[i, 0]] - 0.3 * x[[i, 1]] + 0.2 * (x[[i, 2]] * x[[i, 0]]).tanh())
                            + 0.02 * draws.normal()
                    })
                    .collect();
                let w = vec![1.0; rows];
                let mut specs = vec![
                    Spec::Linear { l2: 1e-3 },
                    Spec::Forest {
                        trees: 48,
                        depth: 12,
                        min_leaf: 2,
                    },
                ];
                for c in [0.1, 1.0, 10.0, 30.0, 100.0] {
                    for gamma in [0.1, 0.5, 2.0] {
                        specs.push(Spec::Gaussian {
                            c,
                            epsilon: 0.01,
                            gamma,
                        });
                    }
                }
                for c in [0.01, 0.1, 1.0, 10.0] {
                    for degree in [2, 3] {
                        specs.push(Spec::Polynomial {
                            c,
                            epsilon: 0.01,
                            degree,
                        });
                    }
                }
                for s in specs {
                    let t = Instant::now();
                    let r = fit(&s, &x, &y, Some(&w), 1);
                    let dt = t.elapsed().as_secs_f64() * 1e3;
                    println!(
                        "{rows} d{d} {what} {s}: {dt:.1} ms {}",
                        if r.is_ok() { "" } else { "FAILED" }
                    );
                }
            }
        }
    }
}
