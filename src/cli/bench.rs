//! `pdawl bench`: compares runs that differ in some options, in turns.
//!
//! Each run is a `pdawl run` in a process of its own, so it is what a user gets, opens its devices
//! for itself, and leaves the next one nothing.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ArgMatches;
use clap::parser::ValueSource;
use indicatif::ProgressBar;
use pdawl_api::executable;
use pdawl_api::machine::Device;
use pdawl_api::report::{Bench, BenchRun};
use pdawl_api::session::part_lists;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::args::Format;
use super::exec::attended;
use super::failure::Failure;
use super::size::integer;
use super::{interrupt, terminal};

const EXAMPLES: &str = "Examples:\n  pdawl bench --vary strategy=cpu,gpu,dawl run stencil --size \
                        8192\n  \
                        pdawl bench --vary n=10,40 --vary policy=eager,locality \\\n      run tasks \
                        --set matmul2d --machine v100x2 --devices gpu0,gpu1\n  \
                        pdawl bench --vary nodes=1,2,4,8 run lu --size 32768 --cluster four\n  \
                        pdawl bench --parts run lu --size 8192 --machine v100x4\n  \
                        pdawl bench --repeats 9 --case '--policy heft' --case '--policy clustering \
                        --search' \\\n      run transformer --heads 16 --beta 512 --format json";

#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// An option of the run, and its values, of which each has a run: strategy=cpu,dawl
    ///
    /// Several options are multiplied; the last one varies first. Values that have commas are
    /// separated by semicolons: 'strategy=cpu;fixed:0.2,0.8'
    #[arg(long, value_name = "OPTION=LIST")]
    vary: Vec<Vary>,

    /// Words of the run that others do not have: '--batch --policy clustering'. Give it once for
    /// each such run
    #[arg(long = "case", value_name = "WORDS", allow_hyphen_values = true)]
    cases: Vec<String>,

    /// Compare the run by default with runs on parts of its devices
    ///
    /// Each device by itself, one of those that are alike; 1, 2, 4 ... and all GPUs, alone and with
    /// the host; and all.
    #[arg(long)]
    parts: bool,

    /// How often each run is made, in turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = integer(1..=u32::MAX))]
    repeats: u32,

    /// The run, as `pdawl run` takes it. Its --format says how the comparison is printed
    #[arg(value_name = "run WORKLOAD", required = true, num_args = 1..,
          trailing_var_arg = true, allow_hyphen_values = true)]
    run: Vec<String>,

    /// Later runs are to know what these took, and no turn begins that is not expected to end in
    /// this time. Otherwise none knows of another.
    #[arg(skip)]
    training: Option<Duration>,
}

/// An option and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Vary {
    name: String,
    values: Vec<String>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, list) = (text.split_once('='))
            .ok_or_else(|| "write OPTION=LIST, such as strategy=cpu,dawl".to_owned())?;
        let separator = if list.contains(';') { ';' } else { ',' };
        let mut values: Vec<String> = Vec::new();
        for value in list.split(separator).map(str::trim) {
            if value.is_empty() {
                return Err(format!("a value of {name} is missing"));
            }
            if values.iter().any(|known| known == value) {
                return Err(format!("{value} is named twice"));
            }
            values.push(value.to_owned());
        }
        Ok(Self {
            name: name.trim().trim_start_matches("--").to_owned(),
            values,
        })
    }
}

/// A run that is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Compared {
    /// What differs from other runs, by name.
    values: BTreeMap<String, String>,
    /// The words of these.
    words: Vec<String>,
}

/// The names of what `--case` and `--parts` vary, and of the run in which devices are not named.
const CASE: &str = "case";
const DEVICES: &str = "devices";
const DEFAULT: &str = "default";

impl Args {
    /// Parts of the devices of a run, from which later runs learn.
    pub fn training(run: Vec<String>, repeats: u32, budget: Duration) -> Self {
        Self {
            parts: true,
            repeats,
            run,
            training: Some(budget),
            ..Self::default()
        }
    }

    /// What is varied, by name, with its values; the last one varies first.
    fn dimensions(&self) -> Vec<(&str, &[String])> {
        let options = self.vary.iter();
        let mut all: Vec<_> = options.map(|of| (&*of.name, &of.values[..])).collect();
        if !self.cases.is_empty() {
            all.push((CASE, &self.cases));
        }
        all
    }

    /// All runs, in the order of the report.
    fn runs(&self) -> Vec<Compared> {
        let mut runs = vec![Compared::default()];
        if self.parts {
            runs[0]
                .values
                .insert(DEVICES.to_owned(), DEFAULT.to_owned());
        }
        for (name, values) in self.dimensions() {
            let with = |run: &Compared, value: &String| {
                let mut run = run.clone();
                match name {
                    CASE => run
                        .words
                        .extend(value.split_whitespace().map(str::to_owned)),
                    option => run.words.push(format!("--{option}={value}")),
                }
                run.values.insert(name.to_owned(), value.clone());
                run
            };
            let all = runs
                .iter()
                .flat_map(|run| values.iter().map(move |v| (run, v)));
            runs = all.map(|(run, value)| with(run, value)).collect();
        }
        runs
    }

    /// The words that all runs have, without `--format`.
    fn common(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut given = self.run.iter();
        while let Some(word) = given.next() {
            match word.as_str() {
                "--format" => _ = given.next(),
                word if word.starts_with("--format=") => {}
                word => words.push(word.to_owned()),
            }
        }
        words
    }
}

/// Runs the subcommand. `global` are the options that precede it, which its runs have, too.
pub fn run(args: &Args, global: &[String]) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    if args.run[0] != "run" {
        return Err(Failure::usage(
            format!("runs are compared, and `{}` is none", args.run[0]),
            "run WORKLOAD, as `pdawl run` takes it",
        ));
    }
    let runs = args.runs();
    let mut format = Format::Text;
    // What is wrong in any of them is refused before the first.
    for run in &runs {
        let words = ["pdawl"]
            .into_iter()
            .chain(args.run.iter().map(String::as_str));
        let words = words.chain(run.words.iter().map(String::as_str));
        let matches = super::command().try_get_matches_from(words)?;
        let matches = innermost(&matches);
        format = matches.get_one("format").copied().unwrap_or_default();
        let mut unkept = ["strategy", "model", "fault"].into_iter();
        if let Some(option) = unkept.find(|option| is_given(matches, option))
            && args.training.is_some()
        {
            return Err(Failure::usage(
                format!("--{option}: what such runs take is not kept"),
                format!("the run without --{option}"),
            ));
        }
        if args.parts && is_given(matches, DEVICES) {
            return Err(Failure::usage(
                "--parts names the devices of each run, and --devices does so, too",
                "one of both",
            ));
        }
    }
    let length = u64::from(args.repeats) * runs.len() as u64;
    let mut turns = Turns {
        args,
        common: [global, &args.common()].concat(),
        ended: runs.into_iter().map(|run| (run, Vec::new())).collect(),
        bar: terminal::progress(format, length, "runs"),
    };
    let outcome = turns.run(stop);
    turns.bar.finish_and_clear();
    let varied = args.dimensions().into_iter().map(|(name, _)| name);
    let parts = args.parts.then_some(DEVICES);
    let mut bench = Bench {
        command: args.common().join(" "),
        varied: varied.chain(parts).map(str::to_owned).collect(),
        repeats: args.repeats,
        runs: (turns.ended.into_iter())
            .filter_map(|(run, reports)| BenchRun::of(run.values, reports))
            .collect(),
        interrupted: stop.load(Ordering::Relaxed),
    };
    match (parts, args.dimensions().last()) {
        (Some(_), _) => bench.compare(DEFAULT),
        (None, Some((_, [first, ..]))) => bench.compare(first),
        _ => {}
    }
    // What ran before a failure is kept.
    if outcome.is_ok() || !bench.runs.is_empty() {
        terminal::print_report(format, &bench, Bench::render)?;
    }
    outcome?;
    match bench.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Runs that are made in turns.
struct Turns<'a> {
    args: &'a Args,
    /// The words that all have.
    common: Vec<String>,
    /// The runs, with their reports.
    ended: Vec<(Compared, Vec<Value>)>,
    bar: ProgressBar,
}

impl Turns<'_> {
    /// Makes all turns, as far as a signal, a failure or the time lets it.
    fn run(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        let (began, repeats, training) = (Instant::now(), self.args.repeats, self.args.training);
        for turn in 0..repeats {
            let before = began.elapsed();
            let mut place = 0;
            while place < self.ended.len() {
                let run = &self.ended[place].0;
                let words = [&self.common[..], &run.words].concat();
                let Some(report) = once(&words, training.is_some(), stop)? else {
                    return Ok(());
                };
                let is_default = run.values.get(DEVICES).is_some_and(|of| of == DEFAULT);
                if is_default && turn == 0 {
                    let parts = self.parts(run, &report)?;
                    self.bar.inc_length(u64::from(repeats) * parts.len() as u64);
                    let parts = parts.into_iter().map(|part| (part, Vec::new()));
                    self.ended.splice(place + 1..place + 1, parts);
                }
                self.ended[place].1.push(report);
                place += 1;
                self.bar.inc(1);
            }
            let expected = began.elapsed() * 2 - before;
            if turn + 1 < repeats && training.is_some_and(|budget| expected > budget) {
                let made = turn + 1;
                terminal::warn(&format!(
                    "the budget was enough for {made} of {repeats} turns"
                ));
                break;
            }
        }
        Ok(())
    }

    /// Runs on the parts of a run's devices.
    fn parts(&self, run: &Compared, report: &Value) -> Result<Vec<Compared>, Failure> {
        let machine = &report["machine"];
        let devices: Vec<Device> =
            serde_json::from_value(machine["devices"].clone()).unwrap_or_default();
        let words = self.common.join(" ");
        if devices.len() < 2 {
            return Err(Failure::usage(
                format!("`{words}` has no parts: it has one device, or no machine"),
                "a run on several devices, or --machine NAME of a machine with some",
            ));
        }
        let policy = report["policy"].as_str().unwrap_or_default();
        let are_kept = machine["simulated"] == false
            && ["locality", "dawl", "pdawl"].contains(&policy)
            && devices.iter().any(|device| !device.shares_host_memory);
        if self.args.training.is_some() && !are_kept {
            return Err(Failure::usage(
                format!(
                    "nothing is kept of `{words}`, nor of any run that is simulated, has no GPU \
                     with memory of its own, or has another policy than by default"
                ),
                "another run, or `pdawl bench --parts`, which compares all runs",
            ));
        }
        let of_part = |list: String| {
            let mut part = run.clone();
            part.words.push(format!("--devices={list}"));
            part.values.insert(DEVICES.to_owned(), list);
            part
        };
        Ok(part_lists(&devices).into_iter().map(of_part).collect())
    }
}

/// The options of a command's last subcommand.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    match matches.subcommand() {
        Some((_, inner)) => innermost(inner),
        None => matches,
    }
}

/// Whether an option is given that the command may not have.
fn is_given(matches: &ArgMatches, option: &str) -> bool {
    let source = matches.try_contains_id(option).is_ok_and(|has| has);
    source && matches.value_source(option) == Some(ValueSource::CommandLine)
}

/// The report of a run in a process of its own, of which later ones know if it `is_kept`; `None` if
/// it was interrupted.
fn once(words: &[String], is_kept: bool, stop: &AtomicBool) -> Result<Option<Value>, Failure> {
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let unable = |error: std::io::Error| {
        Failure::failed(
            format!("this program cannot start itself: {error}"),
            "the same where processes may be started",
        )
    };
    let mut process = executable::again().map_err(unable)?;
    process.args(words).args(["--format", "json"]);
    process.env("PDAWL_ROWS", if is_kept { "all" } else { "off" });
    process.stdin(Stdio::null()).stdout(Stdio::piped());
    let (_, output) = attended(&mut process).map_err(unable)?;
    // A signal may have ended the run before this process has noted it.
    let code = output.status.code();
    let signal = output.status.signal().or(code.map(|code| code - 128));
    if [SIGINT, SIGTERM, SIGHUP].map(Some).contains(&signal) {
        stop.store(true, Ordering::Relaxed);
    }
    // An interrupted run is not one of its options, though it may have a report.
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let report = serde_json::from_slice(&output.stdout);
    match (output.status.success(), report) {
        (true, Ok(report)) => Ok(Some(report)),
        _ => {
            terminal::error(
                &format!("pdawl {}: {}", words.join(" "), output.status),
                None,
            );
            let code = code.and_then(|code| u8::try_from(code).ok());
            Err(Failure::Program(code.filter(|code| *code > 0).unwrap_or(1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(text: &str) -> Result<Vary, String> {
        text.parse()
    }

    fn args(vary_: &[&str], cases: &[&str], run: &str) -> Args {
        Args {
            vary: vary_.iter().map(|text| vary(text).unwrap()).collect(),
            cases: cases.iter().map(|words| (*words).to_owned()).collect(),
            repeats: 1,
            run: run.split_whitespace().map(str::to_owned).collect(),
            ..Args::default()
        }
    }

    #[test]
    fn values_are_separated_by_commas_or_semicolons() {
        let values = |text| vary(text).unwrap().values;
        assert_eq!(values("n=5, 10"), ["5", "10"]);
        assert_eq!(
            values("--strategy=cpu;fixed:0.2,0.5,0.3"),
            ["cpu", "fixed:0.2,0.5,0.3"]
        );
        assert!(vary("strategy").unwrap_err().contains("OPTION=LIST"));
        assert!(vary("n=5,").unwrap_err().contains("missing"));
        assert!(vary("n=5,5").unwrap_err().contains("5 is named twice"));
    }

    #[test]
    fn options_are_multiplied_and_the_last_varies_first() {
        let args = args(&["n=5,10"], &["--policy heft", "--batch"], "run some");
        let words: Vec<String> = args.runs().iter().map(|run| run.words.join(" ")).collect();
        assert_eq!(
            words,
            [
                "--n=5 --policy heft",
                "--n=5 --batch",
                "--n=10 --policy heft",
                "--n=10 --batch"
            ]
        );
        assert_eq!(args.runs()[1].values[CASE], "--batch");
        assert_eq!(args.runs()[1].values["n"], "5");
    }

    #[test]
    fn the_format_is_that_of_the_comparison() {
        let args = args(&[], &[], "run some --format json --size 3 --format=text");
        assert_eq!(args.common(), ["run", "some", "--size", "3"]);
        assert_eq!(args.runs(), [Compared::default()]);
    }
}
