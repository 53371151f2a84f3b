//! The versions of Azure's interface for container groups: a date, and perhaps `-preview`. They compare as text.

use cudock_base::Date;

/// The oldest that is read with all its fields.
pub const OLDEST: &str = "2021-09-01";

/// The newest that is read with all its fields.
pub const NEWEST: &str = "2026-07-01";

pub(crate) fn is_version(text: &str) -> bool {
    text.strip_suffix("-preview").unwrap_or(text).parse::<Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dates_and_order_like_dates() {
        for text in ["2021-09-01", "2024-05-01-preview"] {
            assert!(is_version(text), "{text}");
        }
        for text in
            ["", "2021-9-1", "2021-13-01", "2021-01-32", "2021-09-01-beta", "v1", "2021-0--1", "20210901"]
        {
            assert!(!is_version(text), "{text}");
        }
        assert!("2019-12-01" < OLDEST && OLDEST < NEWEST && NEWEST < "2026-07-01-preview");
    }

    #[test]
    fn the_range_read_is_the_one_of_the_tables() {
        let facts = cudock_facts::Facts::embedded();
        let services = facts.services();
        let aci = services.service.iter().find(|service| service.id == "aci").unwrap();
        let versions = || aci.api_versions.iter().map(String::as_str);
        assert_eq!((versions().min(), versions().max()), (Some(OLDEST), Some(NEWEST)));
    }
}
