use std::sync::Arc;

use super::*;
use crate::matrices::{awkward, matrix};

#[test]
fn only_a_square_matrix_can_be_iterated() {
    let options = Options {
        form: Form::Iteration,
        ..Options::default()
    };
    let wide = Arc::new(matrix(5, &[2, 2, 1], 1));
    assert_eq!(
        Spmv::new("wide", wide, options).err(),
        Some(SpmvError::NotSquare {
            rows: 3,
            columns: 5
        })
    );
    assert!(Spmv::new("square", Arc::new(matrix(3, &[2, 2, 1], 1)), options).is_ok());
}

#[test]
fn any_units_can_be_written_alone() {
    for (name, matrix) in awkward() {
        let options = Options {
            unit_weight: Some(50),
            ..Options::default()
        };
        let spmv = Spmv::new(name, Arc::new(matrix), options).unwrap();
        let arranged = spmv.arrangement();
        let write = |units: Range<u64>| {
            let entries = arranged.entries(&units);
            let rows = arranged.rows(&units);
            let count = (entries.end - entries.start) as usize;
            let mut columns = vec![u32::MAX; count];
            let mut values = vec![f64::NAN; count];
            let mut ends = vec![u16::MAX; (rows.end - rows.start) as usize];
            let bytes = bytemuck::cast_slice_mut(&mut values);
            spmv.write_columns(units.clone(), &mut columns);
            spmv.write_values(units.clone(), bytes);
            spmv.write_ends(units, &mut ends);
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            (columns, bits, ends)
        };
        let whole = write(0..arranged.units());
        let mut pieced = (Vec::new(), Vec::new(), Vec::new());
        let mut from = 0;
        while from < arranged.units() {
            let to = (from + 3).min(arranged.units());
            let (mut columns, mut values, mut ends) = write(from..to);
            pieced.0.append(&mut columns);
            pieced.1.append(&mut values);
            pieced.2.append(&mut ends);
            from = to;
        }
        assert!(whole == pieced, "{name}");
    }
}

#[test]
fn the_costs_of_units_add_up_to_the_matrix() {
    let spmv = Spmv::new("", Arc::new(matrix(997, &[7; 997], 3)), Options::default()).unwrap();
    let units = spmv.arrangement().units();
    assert!(units > 10);
    let whole = spmv.cost(&(0..units));
    assert_eq!(whole.flops, 2.0 * 7.0 * 997.0);
    assert_eq!(whole.bytes, 997.0 * (7.0 * 12.0 + 2.0 + 8.0 + 8.0));
    let parts: f64 = (0..units)
        .map(|unit| spmv.cost(&(unit..unit + 1)).bytes)
        .sum();
    assert!((parts / whole.bytes - 1.0).abs() < 1e-9);
}
