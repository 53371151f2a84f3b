//! The versions of Azure's interface for container groups.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A version: a date, and perhaps `-preview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion {
    year: u16,
    month: u8,
    day: u8,
    preview: bool,
}

/// The oldest that is read with all its fields.
pub const OLDEST: ApiVersion = ApiVersion { year: 2021, month: 9, day: 1, preview: false };

/// The newest that is read with all its fields.
pub const NEWEST: ApiVersion = ApiVersion { year: 2026, month: 7, day: 1, preview: false };

impl FromStr for ApiVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (date, preview) = match text.strip_suffix("-preview") {
            Some(date) => (date, true),
            None => (text, false),
        };
        if date.len() != 10 || !date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
            return Err(());
        }
        let mut parts = date.split('-');
        let mut part = |digits: usize| parts.next().filter(|part| part.len() == digits).ok_or(());
        let year = part(4)?.parse().map_err(drop)?;
        let month = part(2)?.parse().map_err(drop)?;
        let day = part(2)?.parse().map_err(drop)?;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(());
        }
        Ok(Self { year, month, day, preview })
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preview = if self.preview { "-preview" } else { "" };
        write!(f, "{:04}-{:02}-{:02}{preview}", self.year, self.month, self.day)
    }
}

impl Serialize for ApiVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dates_and_order_like_dates() {
        for text in ["2021-09-01", "2024-05-01-preview"] {
            assert_eq!(text.parse::<ApiVersion>().unwrap().to_string(), text);
        }
        for text in
            ["", "2021-9-1", "2021-13-01", "2021-01-32", "2021-09-01-beta", "v1", "2021-0--1", "20210901"]
        {
            assert_eq!(text.parse::<ApiVersion>(), Err(()), "{text}");
        }
        assert!(OLDEST < NEWEST);
        assert!("2019-12-01".parse::<ApiVersion>().unwrap() < OLDEST);
    }

    #[test]
    fn the_range_read_is_the_one_of_the_tables() {
        let facts = cudock_facts::Facts::embedded();
        let services = facts.services();
        let aci = services.service.iter().find(|service| service.id == "aci").unwrap();
        let versions: Vec<ApiVersion> =
            aci.api_versions.iter().map(|version| version.parse().unwrap()).collect();
        assert_eq!(versions.iter().min(), Some(&OLDEST));
        assert_eq!(versions.iter().max(), Some(&NEWEST));
    }
}
