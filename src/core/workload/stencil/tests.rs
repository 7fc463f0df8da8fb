use super::*;
use crate::matrix::npy::{ElementType, write_array_header};

#[test]
fn impossible_sizes_are_refused() {
    let new = |nx, ny, nz| Stencil::new(nx, ny, nz, Precision::F64, 0).err();
    assert_eq!(
        new(2, 9, None),
        Some(StencilError::TooSmall {
            axis: "nx",
            value: 2
        })
    );
    assert!(matches!(
        new(9, 1 << 40, None),
        Some(StencilError::TooLarge { axis: "ny", .. })
    ));
    let big = u64::from(u32::MAX / 2);
    assert!(matches!(
        new(big, big, Some(big)),
        Some(StencilError::Overflow(_))
    ));
    assert_eq!(new(3, 3, Some(3)), None);
}

#[test]
fn any_range_of_the_first_version_can_be_written_alone() {
    let stencil = Stencil::new(7, 5, None, Precision::F64, 3).unwrap();
    let mut whole = vec![0u8; 7 * 5 * 8];
    stencil.initial(0..5, &mut whole).unwrap();
    let mut part = vec![0u8; 2 * 7 * 8];
    stencil.initial(2..4, &mut part).unwrap();
    assert_eq!(part, whole[2 * 56..4 * 56]);
    let values: &[f64] = bytemuck::cast_slice(&whole);
    assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
    let mean = values.iter().sum::<f64>() / 35.0;
    assert!((0.3..0.7).contains(&mean), "{mean}");
}

#[test]
fn one_step_equals_a_manual_computation() {
    let stencil = Stencil::new(3, 3, None, Precision::F64, 1).unwrap();
    let mut bytes = vec![0u8; 72];
    stencil.initial(0..3, &mut bytes).unwrap();
    let mut grid: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
    let mean = (grid[1] + grid[7] + grid[3] + grid[5] + grid[4]) / 5.0;
    grid[4] = (((grid[1] + grid[7]) + (grid[3] + grid[5])) + grid[4]) * 0.2;
    assert!((grid[4] - mean).abs() < 1e-15);
    let verified = |grid: &[f64]| {
        let compared = stencil.verify(1, None, bytemuck::cast_slice(grid));
        (compared.error, compared.right)
    };
    assert_eq!(verified(&grid), (0.0, true));
    grid[4] = f64::from_bits(grid[4].to_bits() + 1);
    assert!(!verified(&grid).1);
    grid[0] = f64::NAN;
    assert!(verified(&grid).0.is_nan());
}

#[test]
fn one_step_with_coefficients_equals_a_manual_computation() {
    let of = [0.5, 0.25, -0.125, 2.0, 0.0625];
    let stencil = Stencil::new(3, 3, None, Precision::F64, 1).unwrap();
    let mean = stencil.clone();
    let stencil = stencil.with_coefficients(&of).unwrap();
    assert_eq!(stencil.codelet().name, "stencil5-f64-weighted");
    assert_eq!(stencil.cost(&(0..3)).flops, 81.0);
    let mut grid = vec![0.0; 9];
    stencil
        .initial(0..3, bytemuck::cast_slice_mut(&mut grid))
        .unwrap();
    let [cc, cn, cs, cw, ce] = of;
    let terms = [
        grid[4] * cc,
        grid[1] * cn,
        grid[7] * cs,
        grid[3] * cw,
        grid[5] * ce,
    ];
    grid[4] = terms.iter().sum();
    // Products with powers of two and sums of numbers of 24 bits are exact.
    let verified = |of: &Stencil, grid: &[f64]| {
        let compared = of.verify(1, None, bytemuck::cast_slice(grid));
        (compared.error, compared.right)
    };
    assert_eq!(verified(&stencil, &grid), (0.0, true));
    assert!(!verified(&mean, &grid).1);

    let solid = Stencil::new(3, 3, Some(3), Precision::F64, 1).unwrap();
    let of = [0.5, 0.25, -0.125, 2.0, 0.0625, 4.0, -1.0];
    let solid = solid.with_coefficients(&of).unwrap();
    assert_eq!(solid.cost(&(0..1)).flops, 9.0 * 13.0);
    let mut grid = vec![0.0; 27];
    solid
        .initial(0..3, bytemuck::cast_slice_mut(&mut grid))
        .unwrap();
    let points = [13, 10, 16, 12, 14, 4, 22];
    grid[13] = (points.iter().zip(of)).map(|(at, of)| grid[*at] * of).sum();
    assert_eq!(verified(&solid, &grid), (0.0, true));
}

#[test]
fn wrong_coefficients_are_named() {
    let with = |nz, precision, of: &[f64]| {
        let stencil = Stencil::new(3, 3, nz, precision, 1).unwrap();
        let error = stencil.with_coefficients(of).err();
        error.map_or_else(String::new, |error| error.to_string())
    };
    assert_eq!(
        with(None, Precision::F64, &[1.0; 7]),
        "7 coefficients, and a 2-D stencil has 5: centre, north, south, west, east"
    );
    assert!(with(Some(3), Precision::F64, &[1.0; 5]).ends_with("east, below, above"));
    let large = [0.0, 0.0, 1e300, 0.0, 0.0];
    assert_eq!(with(None, Precision::F64, &large), "");
    let error = with(None, Precision::F32, &large);
    assert!(
        error.contains("of south, 1e300,") && error.ends_with("in f32"),
        "{error}"
    );
    assert!(with(None, Precision::F64, &[f64::NAN; 5]).contains("of centre, NaN"));
}

/// A file of the grid whose point `index` is `index`, and its numbers.
fn file(shape: &[u64], precision: Precision) -> (tempfile::TempDir, NpyMatrix, Vec<f64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grid.npy");
    let mut bytes = Vec::new();
    write_array_header(&mut bytes, shape, ElementType::Real(precision)).unwrap();
    let numbers: Vec<f64> = (0..shape.iter().product()).map(|n: u64| n as f64).collect();
    for number in &numbers {
        match precision {
            Precision::F64 => bytes.extend(number.to_ne_bytes()),
            Precision::F32 => bytes.extend((*number as f32).to_ne_bytes()),
        }
    }
    std::fs::write(&path, bytes).unwrap();
    let file = NpyMatrix::open_grid(&path).unwrap();
    (folder, file, numbers)
}

#[test]
fn units_of_a_file_are_read_alone() {
    let (_folder, flat, numbers) = file(&[5, 7], Precision::F64);
    let flat = Stencil::of_file(flat).unwrap();
    assert_eq!(flat.shape(), (7, 5, None));
    let mut rows = vec![0.0; 14];
    flat.initial(2..4, bytemuck::cast_slice_mut(&mut rows))
        .unwrap();
    assert_eq!(rows, numbers[14..28]);

    let (_folder, solid, numbers) = file(&[3, 4, 6], Precision::F32);
    let solid = Stencil::of_file(solid).unwrap();
    assert_eq!(solid.shape(), (6, 4, Some(3)));
    let mut plane = vec![0f32; 24];
    solid
        .initial(1..2, bytemuck::cast_slice_mut(&mut plane))
        .unwrap();
    assert!(
        plane
            .iter()
            .map(|of| f64::from(*of))
            .eq(numbers[24..48].iter().copied())
    );
}

#[test]
fn a_file_that_is_not_finite_or_has_shrunk_is_reported() {
    for (shape, place) in [
        (&[300, 4001][..], "row 123, column 1001 (counted"),
        (&[9, 8, 7], "plane 2, row 3, column 4 (counted"),
    ] {
        for (precision, value, name) in [
            (Precision::F64, f64::NAN, "NaN"),
            (Precision::F32, f64::NEG_INFINITY, "-inf"),
        ] {
            let (folder, whole, _) = file(shape, precision);
            check_finite(&whole).unwrap();
            let index = match shape {
                [_, nx] => 123 * nx + 1001,
                _ => (2 * 8 + 3) * 7 + 4,
            };
            let path = folder.path().join("grid.npy");
            let mut bytes = std::fs::read(&path).unwrap();
            let numbers = shape.iter().product::<u64>() * precision.bytes();
            let at = bytes.len() - numbers as usize + (index * precision.bytes()) as usize;
            match precision {
                Precision::F64 => bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes()),
                Precision::F32 => {
                    bytes[at..at + 4].copy_from_slice(&(value as f32).to_ne_bytes());
                }
            }
            std::fs::write(&path, &bytes).unwrap();
            let wrong = NpyMatrix::open_grid(&path).unwrap();
            let error = check_finite(&wrong).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
            assert!(error.contains(&format!("is {name},")), "{error}");

            let stencil = Stencil::of_file(wrong).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - 8]).unwrap();
            let units = stencil.units();
            let mut all = vec![0; (units * stencil.unit_bytes()) as usize];
            let error = stencil.initial(0..units, &mut all).unwrap_err().to_string();
            assert!(error.contains("grid.npy"), "{error}");
        }
    }
}
