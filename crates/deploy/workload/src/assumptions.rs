//! The values that are assumed by default: the rows of `data/assumptions.toml`.

use std::sync::LazyLock;

use cudock_base::Arch;
use cudock_facts::tables::DataAccess;
use cudock_project::{ByteSize, RequestRate, TimeSpan};
use serde::Deserialize;

const TABLE: &str = include_str!("../data/assumptions.toml");

/// One row. Its `reason` and `source` are for readers of the table.
#[derive(Debug, Deserialize)]
pub(crate) struct Assumed<T> {
    /// The key of `cudock.toml` that overrides it.
    pub(crate) key: String,
    pub(crate) value: T,
    /// The value as a report shows it.
    pub(crate) shown: String,
    /// How to give the value instead.
    pub(crate) note: String,
}

/// The hours of the day, as opposed to the night.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Daytime {
    pub(crate) from: u8,
    pub(crate) to: u8,
}

/// The table. A row may have no value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assumptions {
    pub(crate) duration: Assumed<TimeSpan>,
    pub(crate) rate: Assumed<RequestRate>,
    pub(crate) daytime: Assumed<Daytime>,
    pub(crate) fill: Assumed<u8>,
    pub(crate) cold_starts: Assumed<bool>,
    pub(crate) measured_on: Assumed<Option<String>>,
    pub(crate) architecture: Assumed<Arch>,
    pub(crate) storage: Assumed<String>,
    pub(crate) access: Assumed<DataAccess>,
    pub(crate) read_size: Assumed<ByteSize>,
    pub(crate) data_rate: Assumed<Option<u64>>,
    pub(crate) spot: Assumed<bool>,
    pub(crate) evictions: Assumed<f64>,
    pub(crate) checkpoint_every: Assumed<Option<TimeSpan>>,
    pub(crate) image_size: Assumed<ByteSize>,
    pub(crate) unpacked_factor: Assumed<u64>,
    pub(crate) ready: Assumed<TimeSpan>,
    pub(crate) jit: Assumed<TimeSpan>,
}

#[allow(clippy::expect_used, reason = "a test parses the embedded table")]
static ASSUMPTIONS: LazyLock<Assumptions> =
    LazyLock::new(|| toml::from_str(TABLE).expect("the embedded table is valid"));

pub(crate) fn assumptions() -> &'static Assumptions {
    &ASSUMPTIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_parses_and_every_row_has_a_reason_and_a_source() {
        assert_eq!(assumptions().fill.value, 70);
        let table: toml::Table = TABLE.parse().unwrap();
        assert_eq!(table.len(), 18);
        for (name, row) in &table {
            for field in ["key", "shown", "note", "reason", "source"] {
                let text = row.get(field).and_then(toml::Value::as_str).unwrap_or_default();
                assert!(!text.is_empty(), "{name} has no {field}");
            }
        }
    }

    #[test]
    fn values_are_shown_as_they_are() {
        let all = assumptions();
        assert_eq!(all.fill.shown, format!("{} %", all.fill.value));
        assert_eq!(all.rate.shown, format!("{} all day", all.rate.value.0));
        assert_eq!(all.evictions.shown, format!("{} per hour", all.evictions.value));
        assert_eq!(all.image_size.shown, cudock_base::text::format::fixed_bytes(all.image_size.value.0));
        assert_eq!(
            all.unpacked_factor.note,
            format!("assumed: {} times the compressed size", all.unpacked_factor.value)
        );
        for row in [&all.duration, &all.ready, &all.jit] {
            let seconds = row.value.0.as_secs();
            assert!(row.shown == format!("{seconds} s") || row.shown == format!("{} h", seconds / 3600));
        }
        let Daytime { from, to } = all.daytime.value;
        assert_eq!(all.daytime.shown, format!("the day lasts from {from:02}:00 to {to:02}:00 UTC"));
    }
}
