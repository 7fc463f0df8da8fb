use npyz::NpyHeader;

use super::*;

/// A file with this header and these bytes after it.
fn file(header: &str, numbers: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.npy");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn header(descr: &str, fortran: bool, shape: &str) -> String {
    let fortran = if fortran { "True" } else { "False" };
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

fn numbers(of: impl Iterator<Item = u32>) -> Vec<u8> {
    of.flat_map(|number| (number as f32).to_le_bytes())
        .collect()
}

/// Rows 1 and 2, columns 1 to 3 of the matrix whose number (r, c) is 10 r + c.
const PART: [f32; 6] = [11.0, 12.0, 13.0, 21.0, 22.0, 23.0];

#[test]
fn both_orders_give_the_same_part() {
    let by_rows = numbers((0..4).flat_map(|r| (0..5).map(move |c| 10 * r + c)));
    let by_columns = numbers((0..5).flat_map(|c| (0..4).map(move |r| 10 * r + c)));
    for (fortran, numbers) in [(false, by_rows), (true, by_columns)] {
        let (_folder, path) = file(&header("<f4", fortran, "(4, 5)"), &numbers);
        let matrix = NpyMatrix::open(&path).unwrap();
        assert_eq!((matrix.rows(), matrix.columns()), (4, 5));
        assert_eq!(matrix.precision(), Precision::F32);
        let mut part = vec![0; 24];
        matrix.read(1..3, 1..4, &mut part).unwrap();
        let part: Vec<f32> = bytemuck::pod_collect_to_vec(&part);
        assert_eq!(part, PART, "{fortran}");
    }
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.npy");
    let mut bytes = Vec::new();
    write_header(&mut bytes, (2, 3), Precision::F64).unwrap();
    // NumPy wants the numbers aligned.
    assert_eq!(bytes.len() % 64, 0);
    let all = [1.0, 2.0, 3.0, 4.0, 5.0, 6.5];
    bytes.extend(all.iter().flat_map(|number: &f64| number.to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    let matrix = NpyMatrix::open(&path).unwrap();
    assert_eq!(matrix.precision(), Precision::F64);
    let mut read = vec![0; 48];
    matrix.read(0..2, 0..3, &mut read).unwrap();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, f64>(&read), all);
}

/// Other programs, and NumPy's `open_memmap`, write types and shapes in other ways.
#[test]
fn types_and_shapes_have_several_forms() {
    for descr in ["=f4", "f4", "float32", "single", "<f4"] {
        for shape in [
            "(2, 3)",
            "(np.int64(2), np.int64(3))",
            "(2L, np.uint32(3L))",
        ] {
            let (_folder, path) = file(&header(descr, false, shape), &numbers(0..6));
            let read = NpyMatrix::open(&path);
            let is_long = shape.contains("3L)");
            assert_eq!(read.is_err(), is_long, "{descr} {shape}: {read:?}");
            if let Ok(matrix) = read {
                assert_eq!((matrix.rows(), matrix.columns()), (2, 3));
                assert_eq!(matrix.precision(), Precision::F32);
            }
        }
    }
    let (_folder, path) = file(&header("int64", false, "(2, 3)"), &[0; 48]);
    let error = NpyMatrix::open(&path).unwrap_err().to_string();
    assert!(error.contains("type '<i8'"), "{error}");
    for (text, part) in [
        (
            "version https://git-lfs.github.com/spec/v1\n",
            "git lfs pull",
        ),
        ("<!DOCTYPE html>", "HTML"),
        ("\n<html>", "HTML"),
        ("1 2 3", "it begins with \"1 2 3\""),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = NpyMatrix::open(&path).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// The pixels of an image, and complex numbers, are elements of several numbers.
#[test]
fn elements_may_have_several_numbers() {
    let all = numbers(0..24);
    let (_folder, path) = file(&header("<f4", false, "(2, 4, 3)"), &all);
    let image = NpyMatrix::open_image(&path).unwrap();
    assert_eq!((image.rows(), image.columns(), image.per()), (2, 4, 3));
    let mut part = vec![0; 24];
    image.read(1..2, 1..3, &mut part).unwrap();
    assert_eq!(part, all[15 * 4..21 * 4]);
    let error = NpyMatrix::open_complex(&path).unwrap_err().to_string();
    assert!(error.contains("complex64 (<c8) are needed"), "{error}");

    for (fortran, begin) in [(false, 6), (true, 4)] {
        let (_folder, path) = file(&header("<c8", fortran, "(2, 3)"), &numbers(0..12));
        let complex = NpyMatrix::open_complex(&path).unwrap();
        assert_eq!(
            (complex.rows(), complex.columns(), complex.per()),
            (2, 3, 2)
        );
        let mut one = vec![0; 8];
        // Row 1 begins after three elements by rows; column 1 after two by columns.
        let column = if fortran { 1 } else { 0 };
        let row = if fortran { 0 } else { 1 };
        complex
            .read(row..row + 1, column..column + 1, &mut one)
            .unwrap();
        assert_eq!(one, numbers(begin..begin + 2), "{fortran}");
        assert!(NpyMatrix::open(&path).is_err());
    }
}

/// Number (r, c, k) of a grid or an image, and (r, c) of a flat grid, is its index in C order.
#[test]
fn grids_and_images_in_fortran_order_are_turned() {
    let turned = |shape: [u32; 3]| {
        let [rows, columns, per] = shape;
        let by_columns = (0..per).flat_map(move |k| {
            (0..columns).flat_map(move |c| (0..rows).map(move |r| (r * columns + c) * per + k))
        });
        numbers(by_columns)
    };
    for (shape, text) in [([3, 5, 4], "(3, 5, 4)"), ([5, 4, 1], "(5, 4)")] {
        let big: Vec<u8> = turned(shape)
            .chunks(4)
            .flat_map(|n| [n[3], n[2], n[1], n[0]])
            .collect();
        for (descr, bytes) in [("<f4", turned(shape)), (">f4", big)] {
            let (_folder, path) = file(&header(descr, true, text), &bytes);
            for open in [NpyMatrix::open_grid, NpyMatrix::open_image] {
                let grid = open(&path).unwrap();
                let [rows, columns, per] = shape.map(u64::from);
                assert_eq!(
                    (grid.rows(), grid.columns(), grid.per()),
                    (rows, columns, per)
                );
                let mut part = vec![0; (2 * columns * per * 4) as usize];
                grid.read(1..3, 0..columns, &mut part).unwrap();
                let first = (columns * per) as u32;
                assert_eq!(part, numbers(first..3 * first), "{descr} {text}");
            }
        }
    }
}

#[test]
fn headers_of_all_types_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.npy");
    let mut bytes = Vec::new();
    write_array_header(&mut bytes, &[1, 2], ElementType::Complex).unwrap();
    bytes.extend(numbers(0..4));
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(NpyMatrix::open_complex(&path).unwrap().columns(), 2);
    let mut bytes = Vec::new();
    write_array_header(&mut bytes, &[7], ElementType::I32).unwrap();
    let header = NpyHeader::from_reader(&bytes[..]).unwrap();
    assert_eq!(header.shape(), [7]);
    assert_eq!(header.dtype().descr(), "'<i4'");
}

#[test]
fn wrong_files_are_reported() {
    let four = numbers(0..4);
    let nested = format!("{{'descr': {}", "(".repeat(1500));
    let large = format!("({0}, {0})", 1_u64 << 40);
    for (header, part) in [
        (
            header("<f4", false, "(4,)"),
            "array of 1 dimensions, shape [4]",
        ),
        (header("<f4", false, "(1, 2, 2)"), "array of 3 dimensions"),
        (header("<i4", false, "(2, 2)"), "numbers of type '<i4'"),
        (
            header("<i4", false, "(2, 2)"),
            "astype(\"float64\") converts",
        ),
        (header("<i8", false, "(2, 2)"), "above 2^53"),
        (header("<f2", false, "(2, 2)"), "float64"),
        (header("<f16", false, "(2, 2)"), "rounds to 15 digits"),
        (header("<c8", false, "(2, 2)"), "matrix.real"),
        (
            header("<f4", false, "(2, 3)"),
            "says 2 x 3 numbers of type f32, and 16 bytes follow",
        ),
        (header("<f8", false, "(2, 2)"), "is truncated"),
        (header("<f4", false, &large), "is truncated"),
        (header("<f4", false, "(-1, 2)"), "is not an NPY file"),
        ("{'descr': '<f4'}".to_owned(), "is not an NPY file"),
        (
            "{'descr': '<f4', (".to_owned(),
            "its header is `{'descr': '<f4', (`",
        ),
        (nested, "is not an NPY file"),
        ("x".repeat(3000), "is not an NPY file"),
    ] {
        let (_folder, path) = file(&header, &four);
        let error = NpyMatrix::open(&path).unwrap_err().to_string();
        assert!(error.contains(part), "{header}: {error}");
        assert!(error.contains("m.npy"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "1 2 3").unwrap();
    let error = NpyMatrix::open(&text).unwrap_err().to_string();
    assert!(error.contains("is not an NPY file"), "{error}");
    let error = NpyMatrix::open(folder.path()).unwrap_err().to_string();
    assert!(!error.is_empty());
    let none = NpyMatrix::open(&folder.path().join("none")).unwrap_err();
    assert!(matches!(none, NpyError::Read { .. }));
}

/// The same numbers in the other byte order, real and complex, in both orders.
#[test]
fn both_byte_orders_give_the_same_numbers() {
    for (type_char, size, complex) in [('f', 4, false), ('f', 8, false), ('c', 4, true)] {
        for fortran in [false, true] {
            let count = if complex { 12 } else { 6 };
            let of = |big: bool| -> Vec<u8> {
                let number = |number: u32| match (size, big) {
                    (4, true) => (number as f32 + 0.1).to_be_bytes().to_vec(),
                    (4, false) => (number as f32 + 0.1).to_le_bytes().to_vec(),
                    (_, true) => (f64::from(number) + 0.1).to_be_bytes().to_vec(),
                    (_, false) => (f64::from(number) + 0.1).to_le_bytes().to_vec(),
                };
                (0..count).flat_map(number).collect()
            };
            let bytes = if complex { 8 } else { size };
            let part = |order: char, big: bool| {
                let descr = format!("{order}{type_char}{bytes}");
                let (_folder, path) = file(&header(&descr, fortran, "(2L, 3L)"), &of(big));
                let matrix = match complex {
                    true => NpyMatrix::open_complex(&path).unwrap(),
                    false => NpyMatrix::open(&path).unwrap(),
                };
                assert_eq!((matrix.rows(), matrix.columns()), (2, 3));
                let mut part = vec![0; 4 * bytes];
                matrix.read(0..2, 1..3, &mut part).unwrap();
                part
            };
            assert_eq!(part('>', true), part('<', false), "{type_char}{bytes}");
        }
    }
}

/// A file that cannot be read twice, as a shell's `<(command)` gives one.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    let through = |bytes: Vec<u8>| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let writing = std::thread::spawn(move || writer.write_all(&bytes));
        let opened = NpyMatrix::open(&path);
        drop(reader);
        // What follows the numbers is not read, and its writer may fail.
        let _ = writing.join().unwrap();
        opened
    };
    let mut bytes = Vec::new();
    write_header(&mut bytes, (300, 500), Precision::F32).unwrap();
    bytes.extend(numbers(0..150_000));
    let matrix = through(bytes.clone()).unwrap();
    let mut last = vec![0; 8];
    matrix.read(299..300, 498..500, &mut last).unwrap();
    assert_eq!(last, numbers(149_998..150_000));
    bytes.truncate(5000);
    let error = through(bytes).unwrap_err().to_string();
    assert!(error.contains("is truncated"), "{error}");
    let error = through(Vec::new()).unwrap_err().to_string();
    assert!(error.contains("it is empty"), "{error}");
}

#[test]
fn changed_files_are_opened_or_refused() {
    let whole = |descr: &str, fortran: bool, shape: &str| {
        let (_folder, path) = file(&header(descr, fortran, shape), &numbers(0..48));
        std::fs::read(path).unwrap()
    };
    let inputs = [
        whole("<f4", false, "(4, 5)"),
        whole(">f8", true, "(2, 3)"),
        whole("c8", false, "(np.int64(3), 3)"),
        whole("float32", false, "(3, 4, 4)"),
        whole("<f8", false, "(7L,)"),
    ];
    let words = [
        "np.int64(",
        ")",
        "L",
        "'",
        "float64",
        "{",
        "[('a', '<f8')]",
        "True",
        "(",
        ",",
    ];
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.npy");
    crate::changed::changed(&inputs, &words, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let all = [
            NpyMatrix::open(&path),
            NpyMatrix::open_image(&path),
            NpyMatrix::open_complex(&path),
            NpyMatrix::open_vector(&path),
            NpyMatrix::open_grid(&path),
        ];
        for matrix in all.into_iter().flatten() {
            let (rows, columns) = (matrix.rows().min(4), matrix.columns().min(4));
            let numbers = rows * columns * matrix.per();
            let mut part = vec![0; (numbers * matrix.precision().bytes()) as usize];
            matrix.read(0..rows, 0..columns, &mut part).unwrap();
        }
    });
}
