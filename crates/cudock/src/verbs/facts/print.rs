//! Answers for people.

use cudock_lookup::{Sheet, View};

use crate::output::{self, BOLD, DIM, line, styled};
use crate::table::Table;

pub(super) fn print(view: View) {
    match view {
        View::List(list) => Table::list(&list.columns, list.rows).print(),
        View::Sheets(sheets) => {
            for (index, sheet) in sheets.iter().enumerate() {
                if index > 0 {
                    line("");
                }
                print_sheet(sheet);
            }
        }
    }
}

fn print_sheet(sheet: &Sheet) {
    line(styled(BOLD, &sheet.title));
    let column = sheet.fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in &sheet.fields {
        for (index, part) in value.lines().enumerate() {
            let name = if index == 0 { *name } else { "" };
            line(output::wrapped(&format!("  {name:column$}  "), part));
        }
    }
    for source in &sheet.sources {
        line(styled(DIM, &format!("  {:column$}  {source}", "source")));
    }
}
