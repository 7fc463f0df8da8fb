//! The programs in `examples/`: those of sessions, simulated and on real devices, and those of
//! clusters, on nodes that are threads, compared with sequential ones.

use pdawl::Session;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::cluster_programs::cluster;
use crate::pocl::cpu_device;

#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/balancer.rs"]
mod balancer;
#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/fft.rs"]
mod fft;
#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/policy.rs"]
mod policy;
#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/prefix_sum.rs"]
mod prefix_sum;
#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/session.rs"]
mod session;
#[allow(dead_code, reason = "a test has its own main function")]
#[path = "../../examples/word_count.rs"]
mod word_count;

#[test]
fn the_example_transforms_rows() {
    let cpu = format!("{}:1", cpu_device().info.name);
    // The function alone, the kernel alone on memory of its own, and both.
    for devices in ["host:1", &format!("{cpu}=own"), &format!("host:1,{cpu}")] {
        let program = fft::fft().expect("the kernel is there");
        let results = cluster(2, devices).run(program).expect("it runs");
        let found = results.to_vec::<[f32; 2]>().expect("complex numbers");
        let found = found.expect("this is the first node");
        assert_eq!(found.len() as u64, fft::ROWS * fft::COLUMNS);
        let plan = FftPlanner::new().plan_fft_forward(fft::COLUMNS as usize);
        for (row, found) in (0..).zip(found.chunks(fft::COLUMNS as usize)) {
            let numbers = (0..fft::COLUMNS).map(|column| fft::number(row, column));
            let mut right: Vec<Complex<f64>> = numbers
                .map(|[re, im]| Complex::new(re.into(), im.into()))
                .collect();
            let norm = right.iter().map(Complex::norm_sqr).sum::<f64>().sqrt();
            plan.process(&mut right);
            for (found, right) in found.iter().zip(&right) {
                let [re, im] = found.map(f64::from);
                let error = (Complex::new(re, im) - right).norm();
                assert!(error < 1e-4 * norm, "{devices}: {found:?}, {right}");
            }
        }
    }
}

#[test]
fn the_example_accelerates_bodies() {
    const COUNT: u64 = 1001;
    let cpu = format!("{}:1", cpu_device().info.name);
    let all: Vec<[f32; 4]> = (0..COUNT).map(|number| bodies::body(0, number)).collect();
    for devices in ["host:1", &format!("{cpu}=own"), &format!("host:1,{cpu}")] {
        let program = bodies::bodies(COUNT).expect("the kernel is there");
        let results = cluster(1, devices).run(program).expect("it runs");
        let found = results.to_vec::<[f32; 4]>().expect("vectors");
        let found = found.expect("this is the first node");
        assert_eq!(found.len(), all.len());
        for (found, own) in found.iter().zip(&all) {
            let (mut right, mut size) = ([0.0; 3], 0.0);
            for other in &all {
                let away = [0, 1, 2].map(|axis| f64::from(other[axis]) - f64::from(own[axis]));
                let squared = away.iter().map(|along| along * along).sum::<f64>() + 1e-6;
                let strength = f64::from(other[3]) / squared.powf(1.5);
                (right.iter_mut().zip(away)).for_each(|(right, along)| *right += strength * along);
                size += strength * squared.sqrt();
            }
            for (found, right) in found.iter().zip(right) {
                let error = (f64::from(*found) - right).abs();
                assert!(error < 1e-4 * size, "{devices}: {found}, {right}");
            }
        }
    }
}

#[test]
fn the_example_counts_words() {
    let text = String::from_utf8_lossy(word_count::TEXT);
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    let count = |word| words.clone().filter(|found| *found == word).count() as u64;
    let right = word_count::WORDS.map(count);
    assert!(right.iter().all(|count| *count > 0));
    for nodes in 1..=3 {
        let results = cluster(nodes, "host:2").run(word_count::word_count());
        let counts = results.expect("it runs").to_vec::<u64>().expect("counts");
        assert_eq!(counts.expect("this is the first node"), right);
    }
}

#[test]
fn the_example_adds_up_what_comes_before() {
    for (count, parts) in [(1, 1), (7, 7), (5, 9), (1001, 1), (100_003, 13)] {
        let right: Vec<i64> = (0..count)
            .scan(0, |sum, place| {
                *sum += prefix_sum::number(place);
                Some(*sum)
            })
            .collect();
        for nodes in 1..=3 {
            let program = prefix_sum::prefix_sum(count, parts);
            let results = cluster(nodes, "host:2").run(program).expect("it runs");
            let found = results.to_vec::<i64>().expect("integers");
            assert!(found.as_ref() == Some(&right), "{count}, {parts}, {nodes}");
        }
    }
}

/// A simulated machine, the host's cores, and an OpenCL device with memory of its own beside
/// them.
fn sessions() -> [(&'static str, Session); 3] {
    let both = format!("host:1,{}:1=own", cpu_device().info.name);
    [
        ("k40", Session::simulate("k40").expect("it is shipped")),
        ("host", Session::open_devices("host:2").expect("it is here")),
        ("both", Session::open_devices(&both).expect("both are here")),
    ]
}

#[test]
fn the_example_of_a_session_computes() {
    for (devices, mut session) in sessions() {
        session::run(&mut session).unwrap_or_else(|error| panic!("{devices}: {error}"));
    }
}

#[test]
fn the_example_of_a_policy_adds() {
    for (devices, mut session) in sessions() {
        let (results, sum) = policy::run(&mut session, 16).expect("it runs");
        assert_eq!(sum, 120.0, "{devices}");
        assert_eq!(results.run().policy, "relative");
        assert_eq!(results.run().shares().iter().sum::<f64>(), 1.0);
    }
}

#[test]
fn the_example_of_a_balancer_is_right() {
    for (devices, mut session) in sessions() {
        let run = balancer::run(&mut session, 200).expect("it runs");
        assert!(run.verification.is_some() && !run.is_wrong(), "{devices}");
        assert_eq!(run.policy, "proportional");
        assert!(
            (run.shares().iter().sum::<f64>() - 1.0).abs() < 1e-9,
            "{devices}"
        );
    }
}
