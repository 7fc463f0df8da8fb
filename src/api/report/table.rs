//! Tables in text reports.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A table without borders. Columns for which `right` holds are aligned to the right.
pub fn plain(header: &[&str], right: impl Fn(usize) -> bool) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.to_vec());
    for column in 0..header.len() {
        if let Some(column_mut) = table.column_mut(column) {
            column_mut.set_padding((if column == 0 { 2 } else { 1 }, 1));
            if right(column) {
                column_mut.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table
}
