//! Contents of spaces in NPY files, which every node must see.

use std::sync::Arc;

use super::{Fill, FillError};
use crate::codelet::Element;
use crate::matrix::npy::NpyMatrix;

/// The elements of a file: a node reads those of its blocks, and no others.
pub fn of_file(matrix: NpyMatrix) -> Fill {
    Arc::new(move |block, bytes| {
        let read = matrix.read(block.rows.clone(), block.columns.clone(), bytes);
        read.map_err(|error| FillError(error.to_string()))
    })
}

/// The numbers of a file as `element` has them: those of a file of singles are rounded.
pub fn rounded(matrix: NpyMatrix, element: Element) -> Fill {
    if matrix.element() == element {
        return of_file(matrix);
    }
    let singles = of_file(matrix);
    Arc::new(move |block, bytes| {
        let mut given = vec![0.0f32; bytes.len() / element.bytes() as usize];
        singles(block, bytemuck::cast_slice_mut(&mut given))?;
        element.store(given.into_iter().map(f64::from), bytes);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::cluster::space::Block;
    use crate::codelet::Precision;
    use crate::matrix::npy::write_header;

    #[test]
    fn a_block_is_read_and_a_file_that_has_shrunk_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let mut bytes = Vec::new();
        write_header(&mut bytes, (3, 4), Precision::F32).expect("memory");
        bytes.extend((0..12u8).flat_map(|number| f32::from(number).to_ne_bytes()));
        std::fs::write(&path, &bytes).expect("a file");
        let fill = of_file(NpyMatrix::open(&path).expect("a matrix"));
        let block = Block::new(1..3, 2..4);
        let mut found = vec![0; 16];
        fill(&block, &mut found).expect("it is there");
        let found: Vec<f32> = bytemuck::pod_collect_to_vec(&found);
        assert_eq!(found, [6.0, 7.0, 10.0, 11.0]);

        let file = File::options().write(true).open(&path).expect("the file");
        file.set_len(bytes.len() as u64 - 8).expect("it shrinks");
        let error = fill(&block, &mut [0; 16]).expect_err("it is too short");
        assert!(error.to_string().contains("a.npy"), "{error}");
    }
}
