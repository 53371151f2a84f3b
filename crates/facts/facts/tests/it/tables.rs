//! The embedded tables keep the rules that make look-ups safe.

use cudock_facts::{Facts, check};

#[test]
fn the_embedded_tables_break_no_rule() {
    let violations = check::all(&Facts::embedded());
    let shown: Vec<String> = violations
        .iter()
        .map(|violation| {
            format!("{} {} {}: {}", violation.table, violation.list, violation.key, violation.message)
        })
        .collect();
    assert!(violations.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn no_table_is_empty_or_without_sources() {
    for table in Facts::embedded().tables() {
        assert!(table.rows > 0, "{} has no rows", table.name);
        assert!(table.sources > 0, "{} names no source", table.name);
    }
}
