//! Prints rows as text.

use cudock_base::Date;
use cudock_base::text::format::count;
use cudock_base::text::table::TextTable;
use cudock_facts::sheets::{Sheet, View};

use crate::output::{self, BOLD, DIM, line, styled};

pub(crate) fn print(view: View, verbose: bool) {
    match view {
        View::List(list) => output::table(&TextTable::list(&list.columns, list.rows)),
        View::Sheets(sheets) => {
            for (index, sheet) in sheets.iter().enumerate() {
                if index > 0 {
                    line("");
                }
                print_sheet(sheet, verbose);
            }
        }
    }
}

fn print_sheet(sheet: &Sheet, verbose: bool) {
    line(styled(BOLD, &sheet.title));
    let column = sheet.fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in &sheet.fields {
        for (index, part) in value.lines().enumerate() {
            let name = if index == 0 { *name } else { "" };
            line(output::wrapped(&format!("  {name:column$}  "), part));
        }
    }
    if verbose {
        for source in &sheet.sources {
            line(styled(DIM, &format!("  {:column$}  {source}", "source")));
        }
    } else if !sheet.sources.is_empty() {
        let text = format!("{}{} (--verbose)", count(sheet.sources.len(), "source"), newest(&sheet.sources));
        line(styled(DIM, &format!("  {text}")));
    }
}

/// `, newest 2026-08-21`, if sources end with their date.
fn newest(sources: &[String]) -> String {
    let date = |source: &String| source.get(source.len().checked_sub(10)?..)?.parse::<Date>().ok();
    let newest = sources.iter().filter_map(date).max();
    newest.map_or_else(String::new, |date| format!(", newest {date}"))
}
