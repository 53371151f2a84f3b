use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::version::Date;

/// What every table says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The day the table was last held against its sources.
    pub as_of: Date,
    /// In an overlay: leave the embedded rows out instead of adding to them.
    #[serde(default)]
    pub replace: bool,
    /// Short names of sources, for the rows to refer to.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl Header {
    /// A row's source keys as the addresses they stand for.
    pub fn resolve<'a>(&'a self, keys: &'a [String]) -> impl Iterator<Item = &'a str> {
        keys.iter().map(|key| self.sources.get(key).map_or(key.as_str(), String::as_str))
    }
}

/// A row with a name of its own in its table, and its sources.
pub trait Row {
    /// What makes two rows speak of the same thing: a newer row with this key takes the place of the older.
    fn key(&self) -> String;
    /// Keys of [`Header::sources`], or addresses.
    fn sources(&self) -> &[String];
}

/// One data file.
pub trait TableFile: Sized + Serialize + DeserializeOwned {
    /// Its name without `.toml`.
    const NAME: &'static str;
    /// Its header.
    fn header(&self) -> &Header;
    /// Takes the rows of a newer file of the same kind: same key replaces, new key is added.
    fn overlay(&mut self, newer: Self);
    /// Every row, for the checks that hold for all tables.
    fn rows(&self) -> Vec<(&'static str, &dyn Row)>;
}

/// Puts newer rows in the place of older ones with the same key, and the rest behind them.
pub fn merge<T: Row>(rows: &mut Vec<T>, newer: Vec<T>) {
    for row in newer {
        let key = row.key();
        match rows.iter_mut().find(|old| old.key() == key) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
}

/// A rule that goes with a table and is no row of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// The rule, in one or two sentences.
    pub text: String,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Writes [`Row`] for a type: its key, and that its sources are in `source`.
macro_rules! row {
    ($type:ty, |$row:ident| $key:expr) => {
        impl $crate::tables::Row for $type {
            fn key(&self) -> String {
                let $row = self;
                $key
            }

            fn sources(&self) -> &[String] {
                &self.source
            }
        }
    };
}
pub(super) use row;

/// Writes [`TableFile`] for a type with a `table` header and the named row lists.
macro_rules! table_file {
    ($type:ty, $name:literal, [$($list:ident),+ $(,)?]) => {
        impl $crate::tables::TableFile for $type {
            const NAME: &'static str = $name;

            fn header(&self) -> &$crate::tables::Header {
                &self.table
            }

            fn overlay(&mut self, newer: Self) {
                if newer.table.replace {
                    *self = newer;
                    return;
                }
                self.table.as_of = newer.table.as_of;
                self.table.sources.extend(newer.table.sources);
                $($crate::tables::merge(&mut self.$list, newer.$list);)+
            }

            fn rows(&self) -> Vec<(&'static str, &dyn $crate::tables::Row)> {
                let mut rows: Vec<(&'static str, &dyn $crate::tables::Row)> = Vec::new();
                $(rows.extend(self.$list.iter().map(|row| (stringify!($list), row as &dyn $crate::tables::Row)));)+
                rows
            }
        }
    };
}
pub(super) use table_file;

row!(Rule, |row| row.id.clone());
