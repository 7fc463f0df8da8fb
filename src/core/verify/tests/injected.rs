//! Errors that tests inject into right results, of every kind that a device, a copy or a wrong
//! index makes.
//!
//! `PDAWL_TEST_SEED` chooses them, and `PDAWL_TEST_INJECTIONS` how many of each kind.

use fastrand::Rng;

/// A kind of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two of these are exchanged.
    Rows,
    Columns,
    Tiles,
    Numbers,
    /// A number is changed.
    Sign,
    Thousandth,
    Zero,
    NotANumber,
    /// A tile is a thousandth greater, or transposed.
    ScaledTile,
    TransposedTile,
    /// All numbers have the accuracy of TF32, and of half precision.
    Tf32,
    Half,
}

pub(crate) const KINDS: [Kind; 12] = [
    Kind::Rows,
    Kind::Columns,
    Kind::Tiles,
    Kind::Numbers,
    Kind::Sign,
    Kind::Thousandth,
    Kind::Zero,
    Kind::NotANumber,
    Kind::ScaledTile,
    Kind::TransposedTile,
    Kind::Tf32,
    Kind::Half,
];

/// What is found of a result.
pub(crate) type Judges<'a, T> = Box<dyn Fn(&[f32]) -> T + 'a>;

/// A right result of singles, and its check.
pub(crate) struct Case<'a> {
    pub name: &'static str,
    pub rows: usize,
    pub columns: usize,
    /// Singles of a number.
    pub parts: usize,
    pub right: Vec<f32>,
    /// Whether a result is taken for right.
    pub accepts: Judges<'a, bool>,
    /// How far a result differs from the right one, as a multiple of the bound that the docs
    /// state.
    pub excess: Judges<'a, f64>,
    /// By how much one wrong number, several that may hide one another, and those of several
    /// rows must exceed the bound to be found with a probability of 1 - 2^-20.
    pub needed: [f64; 3],
}

/// A random seed, or that of the environment; printed so that a failure can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("PDAWL_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..1 << 40));
    println!("PDAWL_TEST_SEED={seed}");
    seed
}

/// Injects errors of each kind into results that `make` makes, a few into each, and counts
/// what escapes.
pub(crate) fn inject(make: &dyn Fn(u64) -> Case<'static>) {
    let count: usize = std::env::var("PDAWL_TEST_INJECTIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(12);
    let mut random = Rng::with_seed(seed());
    let mut escaped = Vec::new();
    for kind in KINDS {
        let (mut injected, mut tried) = (0, 0);
        // Some errors are too small, and some kinds have no error of a result's form.
        while injected < count && tried < 10 * count {
            let case = make(random.u64(..1 << 40));
            assert!((case.accepts)(&case.right), "{}: a false alarm", case.name);
            for _ in 0..4 {
                tried += 1;
                let mut wrong = case.right.clone();
                change(kind, &mut wrong, &case, &mut random);
                let needed = match kind {
                    Kind::Sign | Kind::Thousandth | Kind::Zero => case.needed[0],
                    Kind::Tiles | Kind::ScaledTile | Kind::TransposedTile => case.needed[2],
                    _ => case.needed[1],
                };
                let is_accuracy = matches!(kind, Kind::Tf32 | Kind::Half);
                let differs = wrong
                    .iter()
                    .zip(&case.right)
                    .any(|(one, other)| one != other);
                let counts = match kind {
                    Kind::NotANumber => true,
                    _ => differs && (is_accuracy || (case.excess)(&wrong) > needed),
                };
                if counts {
                    injected += 1;
                    if (case.accepts)(&wrong) {
                        escaped.push((case.name, kind));
                    }
                }
            }
        }
        println!("{kind:?}: {injected} injected of {tried}");
    }
    assert!(escaped.is_empty(), "{escaped:?} of {count} each");
}

/// Changes a result.
fn change(kind: Kind, of: &mut [f32], case: &Case, random: &mut Rng) {
    let (rows, columns, parts) = (case.rows, case.columns, case.parts);
    let place = |row: usize, column: usize| (row * columns + column) * parts;
    let swap = |of: &mut [f32], one: usize, other: usize| {
        (0..parts).for_each(|part| of.swap(one + part, other + part));
    };
    let side = (rows.min(columns) / 4).max(1);
    let tile = |random: &mut Rng| [random.usize(..rows / side), random.usize(..columns / side)];
    let in_tile = move |[row, column]: [usize; 2], y: usize, x: usize| {
        place(row * side + y, column * side + x)
    };
    let places = (0..side).flat_map(move |y| (0..side).map(move |x| (y, x)));
    // Zeros of a triangular matrix are no part of the result.
    let mut numbers = (0..1000).map(|_| random.usize(..of.len()));
    let number = numbers.find(|at| of[*at] != 0.0).expect("a number");
    match kind {
        Kind::Rows => {
            let (one, other) = (random.usize(..rows), random.usize(..rows));
            (0..columns).for_each(|at| swap(of, place(one, at), place(other, at)));
        }
        Kind::Columns => {
            let (one, other) = (random.usize(..columns), random.usize(..columns));
            (0..rows).for_each(|at| swap(of, place(at, one), place(at, other)));
        }
        Kind::Tiles => {
            let (one, other) = (tile(random), tile(random));
            places.for_each(|(y, x)| swap(of, in_tile(one, y, x), in_tile(other, y, x)));
        }
        Kind::Numbers => {
            let other = random.usize(..of.len());
            of.swap(number, other);
        }
        Kind::Sign => of[number] = -of[number],
        Kind::Thousandth => of[number] *= 1.001,
        Kind::Zero => of[number] = 0.0,
        Kind::NotANumber => of[number] = f32::NAN,
        Kind::ScaledTile => {
            let one = tile(random);
            for (y, x) in places {
                let at = in_tile(one, y, x);
                of[at..at + parts]
                    .iter_mut()
                    .for_each(|part| *part *= 1.001);
            }
        }
        Kind::TransposedTile => {
            let one = tile(random);
            for (y, x) in places.filter(|(y, x)| y < x) {
                swap(of, in_tile(one, y, x), in_tile(one, x, y));
            }
        }
        Kind::Tf32 => of.iter_mut().for_each(|number| *number = tf32(*number)),
        Kind::Half => {
            let half = |number| half::f16::from_f32(number).to_f32();
            of.iter_mut().for_each(|number| *number = half(*number));
        }
    }
}

/// A single rounded to 11 bits.
pub(crate) fn tf32(number: f32) -> f32 {
    f32::from_bits((number.to_bits() + (1 << 12)) & !((1 << 13) - 1))
}
