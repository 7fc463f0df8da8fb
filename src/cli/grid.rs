//! The arguments that describe a stencil's grid, and the stencil that they give.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use pdawl_api::codelet::stencil::{Dimensions, Precision};
use pdawl_api::matrix::npy::NpyMatrix;
use pdawl_api::quantity::Bytes;
use pdawl_api::report::Workload;
use pdawl_api::session::divided::PlansSupersteps;
use pdawl_api::workload::stencil::{Stencil, StencilError, check_finite};
use pdawl_api::workload::{Divisible, Supersteps};

use super::cluster::is_first;
use super::failure::Failure;
use super::saves::KeptArray;
use super::size::{ByteSize, integer};

/// The default number of points along an axis, in 2-D and 3-D: 2^24 points in all.
const DEFAULT_2D: u64 = 4096;
const DEFAULT_3D: u64 = 256;

/// A stencil's grid and steps.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct Grid {
    /// Read the first version from an NPY file, an array of rows or of planes; its outermost
    /// points keep their values
    ///
    /// The array's shape is the grid's: (rows, points of a row), or (planes, rows, points of
    /// a row). Over nodes all must see the file.
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    pub input: Option<PathBuf>,

    /// Factors of a point and its neighbours, 5 in 2-D or 7 in 3-D: CENTRE,NORTH,SOUTH,WEST,
    /// EAST,BELOW,ABOVE [default: the mean of all]
    ///
    /// The next version of a point is the sum of the products. North is the row before in
    /// the file, west the point before, below the plane before.
    #[arg(long, value_name = "NUMBERS", allow_hyphen_values = true)]
    coefficients: Option<Coefficients>,

    /// Points along each axis [default: 4096 in 2-D, 256 in 3-D, or what fits
    /// into memory]
    #[arg(long, value_name = "N", conflicts_with_all = ["nx", "ny", "nz"], value_parser = points)]
    size: Option<u64>,

    /// Points of a row
    #[arg(long, value_name = "N", requires = "ny", value_parser = points)]
    nx: Option<u64>,

    /// Rows (of a plane in 3-D)
    #[arg(long, value_name = "N", requires = "nx", value_parser = points)]
    ny: Option<u64>,

    /// Planes; the grid is then 3-D
    #[arg(long, value_name = "N", requires = "nx", value_parser = points)]
    nz: Option<u64>,

    /// 2: 5-point, 3: 7-point [default: 3 with --nz, else 2]
    #[arg(long, value_name = "2|3", value_parser = integer(2u8..=3))]
    dims: Option<u8>,

    /// Steps
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = integer(1..=u32::MAX))]
    pub steps: u32,

    /// Steps between two barriers: a device computes its units, and halos as wide as so many
    /// steps need, before anything moves
    ///
    /// auto chooses the number that was fastest in earlier runs, or that is predicted to be
    /// (docs/supersteps.md) [default: auto where the GPUs of one machine do not hold the grid and no
    /// strategy, model or fault is named, else 1]
    #[arg(long, value_name = "K|auto", value_parser = superstep)]
    superstep: Option<Superstep>,

    /// Floating-point type [default: that of the file, or f64]
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,

    /// Seed of the initial data, and of a simulation's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    pub seed: u64,

    /// When the run ends before its last step.
    #[arg(skip)]
    until: Option<Until>,

    /// Keeps the last version, if it is wanted.
    #[arg(skip)]
    pub result: Option<KeptArray>,
}

/// A run ends once no point changes more in a step that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    pub change: f64,
    /// The steps after each multiple of which that is.
    pub every: u32,
}

/// Steps between two barriers.
#[derive(Clone, Copy, Debug)]
pub enum Superstep {
    Of(u32),
    Auto,
}

/// Parses a number of steps, or `auto`.
fn superstep(text: &str) -> Result<Superstep, String> {
    match text.trim() {
        "auto" => Ok(Superstep::Auto),
        number => match number.parse() {
            Ok(steps) if steps > 0 => Ok(Superstep::Of(steps)),
            _ => Err("this is no number of steps; write 1 or more, or auto".to_owned()),
        },
    }
}

/// A floating-point type.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum PrecisionArg {
    #[default]
    F64,
    F32,
}

impl From<PrecisionArg> for Precision {
    fn from(arg: PrecisionArg) -> Self {
        match arg {
            PrecisionArg::F64 => Self::F64,
            PrecisionArg::F32 => Self::F32,
        }
    }
}

/// Parses a number of points. Whether a stencil can have it depends on the other
/// axes, and is checked later.
pub fn points(text: &str) -> Result<u64, String> {
    let wrong = "this is not a number of points; write a whole number of at least 3, such as 4096";
    text.trim().parse().map_err(|_| wrong.to_owned())
}

/// A limit of memory: so many grids must fit into it.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBudget {
    pub memory: ByteSize,
    pub grids: u64,
}

impl MemoryBudget {
    /// The budget that allows the smaller grid.
    pub fn tighter(self, other: Self) -> Self {
        let each = |budget: &Self| budget.memory.0 / budget.grids.max(1);
        match each(&other) < each(&self) {
            true => other,
            false => self,
        }
    }
}

impl Grid {
    /// The same grid, which keeps its last version if it is wanted.
    pub fn keeping(&self, wanted: bool) -> Self {
        Self {
            result: wanted.then(KeptArray::default),
            ..self.clone()
        }
    }

    /// The same grid, whose steps may end before the last one.
    pub fn ending(self, until: Option<Until>) -> Self {
        Self { until, ..self }
    }

    /// The change of a point with which its steps end.
    pub fn tolerance(&self) -> Option<f64> {
        self.until.map(|until| until.change)
    }

    /// The stencil that the arguments describe. The default shrinks until it fits.
    ///
    /// # Errors
    /// Axes that contradict each other, that a stencil cannot have, or that do not
    /// fit into memory, a file without a grid of this size, and coefficients that do not
    /// suit.
    pub fn stencil(&self, budget: MemoryBudget) -> Result<Stencil, Failure> {
        let stencil = self.ruled(self.fitting(budget)?)?;
        Ok(match &self.result {
            Some(result) => stencil.with_sink(result.sink()),
            None => stencil,
        })
    }

    /// The grid that fits into memory.
    fn fitting(&self, budget: MemoryBudget) -> Result<Stencil, Failure> {
        let MemoryBudget { memory, grids } = budget;
        let grids = grids + u64::from(self.result.is_some());
        let fits = |stencil: &Stencil| needed(stencil, grids) <= memory.0;
        if self.size.is_none() && self.nx.is_none() && self.input.is_none() {
            let mut edge = self.default_edge();
            let mut stencil = self.with_edge(edge)?;
            while !fits(&stencil) && edge > 3 {
                edge = (edge / 2).max(3);
                stencil = self.with_edge(edge)?;
            }
            return Ok(stencil);
        }
        let stencil = match &self.input {
            Some(path) => self.of_file(path)?,
            None => self.explicit()?,
        };
        if !fits(&stencil) {
            return Err(Failure::failed(
                format!(
                    "{grids} grids of {} need {} of host memory, and {} may be used",
                    self.workload(&stencil).title,
                    Bytes(needed(&stencil, grids)),
                    Bytes(memory.0)
                ),
                "a smaller grid (--size), --precision f32, or a larger --host-memory where there is one",
            ));
        }
        Ok(stencil)
    }

    /// Checks whether the arguments agree, without regard to memory and to the file.
    ///
    /// # Errors
    /// As [`Self::stencil`], except for memory and the file.
    pub fn check(&self) -> Result<(), Failure> {
        if let Some(Superstep::Of(superstep)) = self.superstep
            && superstep > self.steps
        {
            let steps = self.steps;
            return Err(Failure::usage(
                format!("--superstep {superstep} is more than the steps, --steps {steps}"),
                format!("--superstep from 1 to {steps}"),
            ));
        }
        match self.input {
            // Only the file knows the grid.
            Some(_) => Ok(()),
            None => self.ruled(self.explicit()?).map(drop),
        }
    }

    /// The stencil with the coefficients, if there are some.
    fn ruled(&self, stencil: Stencil) -> Result<Stencil, Failure> {
        let Some(Coefficients(coefficients)) = &self.coefficients else {
            return Ok(stencil);
        };
        let ruled = stencil.with_coefficients(coefficients);
        ruled.map_err(|error| {
            let remedy = match error {
                StencilError::Coefficients { .. } => "as many, or --dims for the other grid",
                _ => "numbers that the grid's precision has",
            };
            Failure::usage(format!("--coefficients: {error}"), remedy)
        })
    }

    /// The grid of a file. The first node looks at all numbers, the others at their own.
    fn of_file(&self, path: &Path) -> Result<Stencil, Failure> {
        let file = NpyMatrix::open_grid(path).map_err(Failure::of)?;
        let shown = path.display();
        let has = file.precision();
        if let Some(asked) = self.precision.map(Precision::from)
            && asked != has
        {
            return Err(Failure::usage(
                format!("--precision {}: {shown} has {}", asked.name(), has.name()),
                format!("--precision {}, or none", has.name()),
            ));
        }
        if let Some(option) = self.unlike(file.grid_shape()) {
            let shape = shape_in_words(file.grid_shape());
            return Err(Failure::usage(
                format!("{option}: {shown} has {shape} points"),
                "the command without it, since the file has the size",
            ));
        }
        if is_first() {
            check_finite(&file).map_err(Failure::of)?;
        }
        Stencil::of_file(file)
            .map_err(|error| Failure::failed(format!("{shown}: {error}"), "a smaller grid"))
    }

    /// The options that ask for another grid than one of this shape.
    fn unlike(&self, (nx, ny, nz): (u64, u64, Option<u64>)) -> Option<&'static str> {
        let differs = |asked: Option<u64>, has: u64| asked.is_some_and(|asked| asked != has);
        let axes = [Some(nx), Some(ny), nz].into_iter().flatten();
        let found = [
            (
                "--size",
                axes.into_iter().any(|has| differs(self.size, has)),
            ),
            ("--nx", differs(self.nx, nx)),
            ("--ny", differs(self.ny, ny)),
            ("--nz", self.nz.is_some() && self.nz != nz),
            (
                "--nx and --ny without --nz",
                self.nx.is_some() && self.nz.is_none() && nz.is_some(),
            ),
            (
                "--dims",
                self.dims.is_some_and(|dims| (dims == 3) != nz.is_some()),
            ),
        ];
        let unlike = found.into_iter().find(|(_, differs)| *differs);
        unlike.map(|(option, _)| option)
    }

    /// How the steps are divided into supersteps; with `auto` of one step, until they
    /// are planned.
    pub fn supersteps(&self) -> Supersteps {
        let size = match self.superstep {
            Some(Superstep::Of(size)) => size,
            Some(Superstep::Auto) | None => 1,
        };
        let supersteps = Supersteps::new(self.steps, size);
        match self.until {
            Some(until) => supersteps.with_period(until.every),
            None => supersteps,
        }
    }

    /// Whether pdawl is to choose the steps between two barriers.
    pub fn plans_supersteps(&self) -> PlansSupersteps {
        match self.superstep {
            Some(Superstep::Of(_)) => PlansSupersteps::Never,
            Some(Superstep::Auto) => PlansSupersteps::Always,
            None => PlansSupersteps::IfUsual,
        }
    }

    fn explicit(&self) -> Result<Stencil, Failure> {
        match (self.size, self.nx, self.ny) {
            (Some(edge), ..) => self.with_edge(edge),
            (None, Some(nx), Some(ny)) => match (self.dims, self.nz) {
                (Some(2), Some(_)) => Err(Failure::usage(
                    "--nz makes the grid 3-D, and --dims says 2",
                    "leave one of them out",
                )),
                (Some(3), None) => Err(Failure::usage(
                    "--dims 3 with --nx and --ny needs --nz as well",
                    "--nz N, or --size N for a cube",
                )),
                (_, nz) => self.build(nx, ny, nz),
            },
            _ => self.with_edge(self.default_edge()),
        }
    }

    fn default_edge(&self) -> u64 {
        match self.dims {
            Some(3) => DEFAULT_3D,
            _ => DEFAULT_2D,
        }
    }

    fn with_edge(&self, edge: u64) -> Result<Stencil, Failure> {
        self.build(edge, edge, (self.dims == Some(3)).then_some(edge))
    }

    fn build(&self, nx: u64, ny: u64, nz: Option<u64>) -> Result<Stencil, Failure> {
        let precision = self.precision.unwrap_or_default();
        Stencil::new(nx, ny, nz, precision.into(), self.seed)
            .map_err(|error| Failure::usage(error, "another --size, or --nx, --ny and --nz"))
    }

    /// The workload, for reports.
    pub fn workload(&self, stencil: &Stencil) -> Workload {
        let input = self.input.as_ref().map(|path| path.display().to_string());
        let until = self.until.map(|until| until.change);
        Workload::of_stencil(stencil, self.supersteps(), until, (input, self.seed))
    }
}

fn shape_in_words((nx, ny, nz): (u64, u64, Option<u64>)) -> String {
    let third = nz.map_or_else(String::new, |nz| format!(" x {nz}"));
    format!("{nx} x {ny}{third}")
}

/// Bytes of a number of grids.
fn needed(stencil: &Stencil, grids: u64) -> u64 {
    let grid = stencil.units().saturating_mul(stencil.unit_bytes());
    grid.saturating_mul(grids)
}

/// The factors of a point and its neighbours, 5 in 2-D or 7 in 3-D.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients(pub Vec<f64>);

impl FromStr for Coefficients {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<&str> = text.split(',').map(str::trim).collect();
        let [flat, solid] = [Dimensions::Two, Dimensions::Three].map(Dimensions::neighbourhood);
        if ![flat.len(), solid.len()].contains(&numbers.len()) {
            return Err(format!(
                "{} numbers; write {} in 2-D ({}) or {} in 3-D (those, {})",
                numbers.len(),
                flat.len(),
                flat.join(", "),
                solid.len(),
                solid[flat.len()..].join(", ")
            ));
        }
        let parsed = numbers.iter().zip(solid).map(|(number, point)| {
            let wrong = |why: &str| format!("the coefficient of {point}, '{number}', {why}");
            let parsed: f64 = (number.parse()).map_err(|_| wrong("is not a number"))?;
            match parsed.is_finite() {
                true => Ok(parsed),
                false => Err(wrong("is not finite")),
            }
        });
        Ok(Self(parsed.collect::<Result<_, String>>()?))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        grid: Grid,
    }

    const MUCH: ByteSize = ByteSize(1 << 40);

    fn shape(line: &str, memory: ByteSize) -> Result<(u64, u64, Option<u64>), String> {
        let words = ["pdawl"].into_iter().chain(line.split_whitespace());
        let command = crate::with_negative_numbers(Line::command());
        let matches = command.try_get_matches_from(words);
        let line = matches.and_then(|matches| Line::from_arg_matches(&matches));
        let line = line.map_err(|error| error.to_string())?;
        match line.grid.stencil(MemoryBudget { memory, grids: 2 }) {
            Ok(stencil) => Ok(stencil.shape()),
            Err(Failure::Usage { what, .. } | Failure::Failed { what, .. }) => Err(what),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn shapes() {
        for (line, expected) in [
            ("", (4096, 4096, None)),
            ("--dims 3", (256, 256, Some(256))),
            ("--size 17", (17, 17, None)),
            ("--size 17 --dims 3", (17, 17, Some(17))),
            ("--nx 17 --ny 4099", (17, 4099, None)),
            ("--nx 5 --ny 6 --nz 7", (5, 6, Some(7))),
            ("--nx 5 --ny 6 --nz 7 --dims 3", (5, 6, Some(7))),
        ] {
            assert_eq!(shape(line, MUCH), Ok(expected), "{line}");
        }
    }

    #[test]
    fn the_default_shrinks_until_it_fits_and_a_wish_does_not() {
        let little = ByteSize(16 << 20);
        assert_eq!(shape("", little), Ok((1024, 1024, None)));
        let message = shape("--size 4096", little).unwrap_err();
        assert_eq!(
            message,
            "2 grids of stencil 4096 x 4096 f64 need 256 MiB of host memory, \
             and 16.0 MiB may be used"
        );
    }

    #[test]
    fn what_is_no_grid() {
        for (line, part) in [
            ("--size 2", "at least 3"),
            ("--size 4000000000", "at most"),
            ("--nx 2000000000 --ny 2000000000 --nz 2000000000", "bytes"),
            ("--nx 5", "--ny"),
            ("--nz 5", "--nx"),
            ("--size 5 --nx 5 --ny 5", "cannot be used with"),
            ("--nx 5 --ny 5 --dims 3", "needs --nz"),
            ("--nx 5 --ny 5 --nz 5 --dims 2", "--dims says 2"),
            ("--dims 4", "2..=3"),
            ("--steps 0", "1.."),
            ("--superstep 0", "no number of steps"),
            ("--superstep 1.5", "no number of steps"),
            ("--size -3", "not a number of points"),
            ("--size 1e30", "not a number of points"),
            ("--coefficients 1,2", "2 numbers; write 5"),
            (
                "--dims 3 --size 9 --coefficients 1,2,3,4,5",
                "5 coefficients, and a 3-D stencil has 7",
            ),
            (
                "--size 9 --coefficients -1,2,3,4,5,6,7",
                "7 coefficients, and a 2-D stencil has 5",
            ),
            (
                "--size 9 --precision f32 --coefficients 0,1e99,3,4,5",
                "of north, 1e99, is not finite in f32",
            ),
            ("--input a.npy --seed 3", "cannot be used with"),
            ("--nx 4.5 --ny 5", "not a number of points"),
        ] {
            let message = shape(line, MUCH).unwrap_err();
            assert!(message.contains(part), "{line}: {message}");
        }
    }

    #[test]
    fn five_or_seven_finite_numbers() {
        let of = |text: &str| text.parse::<Coefficients>();
        assert_eq!(
            of("-1, .5,2e-3,0,1"),
            Ok(Coefficients(vec![-1.0, 0.5, 0.002, 0.0, 1.0]))
        );
        assert_eq!(of("1,2,3,4,5,6,7").unwrap().0.len(), 7);
        for (text, part) in [
            (
                "1,2,3",
                "3 numbers; write 5 in 2-D (centre, north, south, west, east) or 7",
            ),
            ("1,2,3,4,5,6", "6 numbers"),
            ("", "1 numbers"),
            ("1,2,x,4,5", "of south, 'x', is not a number"),
            ("1,2,3,4,5,6,nan", "of above, 'nan', is not finite"),
            ("inf,2,3,4,5", "of centre, 'inf', is not finite"),
            ("1,2,3,4,", "of east, '', is not a number"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
