//! A synthetic machine: a stencil's step times by a roofline model with a cache,
//! start-up costs and noise, and a prior that models only a part of them.

use pdawl_profiler::{Row, Table};

/// Draws from [0, 1): splitmix64.
pub struct Draws(pub u64);

impl Draws {
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A draw from the normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A configuration: points of an edge of the square grid, workers, rows of a
/// chunk.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub size: f64,
    pub workers: f64,
    pub chunk: f64,
}

impl Case {
    fn bytes(self) -> f64 {
        16.0 * self.size * self.size
    }

    fn flops(self) -> f64 {
        5.0 * self.size * self.size
    }

    fn chunks(self) -> f64 {
        (self.size / self.chunk).ceil()
    }

    /// Seconds without noise.
    pub fn seconds(self) -> f64 {
        let in_cache = 1.0 / (1.0 + (self.bytes() / 20e6).powi(2));
        let memory = (9e9 * self.workers).min(40e9 - 0.5e9 * self.workers);
        let bandwidth = memory * (1.0 + 2.0 * in_cache);
        let stream = self.bytes() / bandwidth;
        let compute = self.flops() / (4e9 * self.workers);
        let start = 4e-6 * self.chunks() / self.workers + 3e-6 * self.workers;
        (stream.powi(4) + compute.powi(4)).powf(0.25) + start
    }

    /// Seconds by the data sheet.
    pub fn prior(self) -> f64 {
        let stream = self.bytes() / (8e9 * self.workers).min(36e9);
        stream.max(self.flops() / (5e9 * self.workers)) + self.prior_start()
    }

    fn prior_start(self) -> f64 {
        2e-6 * self.chunks() / self.workers
    }

    /// Bandwidth, unlimited and never shared.
    pub fn naive(self) -> f64 {
        self.bytes() / 9e9 / self.workers
    }

    /// 40 features: chosen, derived, meaningless, and as counters would have them.
    fn features(self, draws: &mut Draws) -> Vec<(String, f64)> {
        let mut all = vec![
            ("known.units_count".to_owned(), self.size),
            ("known.unit_bytes".to_owned(), 8.0 * self.size),
            ("known.workers_count".to_owned(), self.workers),
            ("known.chunk_units_count".to_owned(), self.chunk),
            ("known.dimensions_count".to_owned(), 2.0),
            ("machine.cores_count".to_owned(), 8.0),
            ("machine.bandwidth_bytes_per_second".to_owned(), 36e9),
            ("machine.l3_bytes".to_owned(), 20e6),
            ("derived.flops".to_owned(), self.flops()),
            ("derived.traffic_bytes".to_owned(), self.bytes()),
            (
                "derived.working_set_over_l3_ratio".to_owned(),
                self.bytes() / 20e6,
            ),
            ("derived.chunks_count".to_owned(), self.chunks()),
            (
                "prior.start_ratio".to_owned(),
                self.prior_start() / self.prior(),
            ),
            ("prior.seconds".to_owned(), self.prior()),
        ];
        for i in 0..13 {
            let of = [self.bytes(), self.flops(), self.chunks(), self.workers][i % 4];
            let noisy = of * (1.0 + 0.3 * i as f64 / 13.0 * draws.uniform());
            all.push((format!("counter.event{i}_count"), noisy));
        }
        for i in 0..13 {
            all.push((
                format!("telemetry.drift{i}_mhz"),
                2000.0 + 50.0 * draws.uniform(),
            ));
        }
        all
    }
}

/// Sizes, each `factor` times the previous one.
pub fn sizes(first: f64, last: f64, factor: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), move |size| Some((size * factor).round()))
        .take_while(move |size| *size <= last * 1.0001)
}

/// Every size with 1 to 8 workers and chunks of 16 and 256 rows.
pub fn cases(sizes: impl Iterator<Item = f64>) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in sizes {
        for workers in [1.0, 2.0, 4.0, 8.0] {
            for chunk in [16.0, 256.0] {
                cases.push(Case {
                    size,
                    workers,
                    chunk,
                });
            }
        }
    }
    cases
}

/// `repeats` runs of each case, with relative noise.
pub fn table(cases: &[Case], repeats: usize, noise: f64, seed: u64) -> Table {
    let mut draws = Draws(seed);
    let mut table = Table {
        baselines: vec!["naive".to_owned()],
        ..Table::default()
    };
    for case in cases {
        for _ in 0..repeats {
            let (names, values) = case.features(&mut draws).into_iter().unzip();
            table.names = names;
            table.rows.push(Row {
                group: format!("{case:?}"),
                values,
                prior: case.prior(),
                baselines: vec![case.naive()],
                seconds: case.seconds() * (noise * draws.normal()).exp(),
            });
        }
    }
    table
}

/// The table without counters and telemetry, which are unknown before a run.
pub fn planning(mut table: Table) -> Table {
    let known: Vec<usize> = (0..table.names.len())
        .filter(|&i| !table.names[i].starts_with("counter") && !table.names[i].starts_with("tele"))
        .collect();
    table.names = known.iter().map(|&i| table.names[i].clone()).collect();
    for row in &mut table.rows {
        row.values = known.iter().map(|&i| row.values[i]).collect();
    }
    table
}
