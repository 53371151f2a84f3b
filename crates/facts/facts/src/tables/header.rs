use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::version::Date;

/// The header of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The day the table was last compared with its sources.
    pub as_of: Date,
    /// Drops the embedded rows instead of adding to them; for overlays.
    #[serde(default)]
    pub replace: bool,
    /// URLs of sources by the names that rows use.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl Header {
    /// The URLs of a row's sources.
    pub fn resolve<'a>(&'a self, keys: &'a [String]) -> impl Iterator<Item = &'a str> {
        keys.iter().map(|key| self.sources.get(key).map_or(key.as_str(), String::as_str))
    }
}

/// A row with a key and sources.
pub trait TableRow {
    /// The unique key: a newer row replaces the older one with the same key.
    fn key(&self) -> String;
    /// Keys of [`Header::sources`], or URLs.
    fn sources(&self) -> &[String];
}

/// One data file.
pub trait TableFile: Sized + Serialize + DeserializeOwned {
    /// Its name without `.toml`.
    const NAME: &'static str;
    fn header(&self) -> &Header;
    /// Merges a newer file: rows with the same key are replaced, others added.
    fn overlay(&mut self, newer: Self);
    /// Every row with the name of its list.
    fn rows(&self) -> Vec<(&'static str, &dyn TableRow)>;
}

/// Replaces rows with the same key, and appends the others.
pub fn merge<T: TableRow>(rows: &mut Vec<T>, newer: Vec<T>) {
    for row in newer {
        let key = row.key();
        match rows.iter_mut().find(|old| old.key() == key) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
}

/// A rule that applies to a whole table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRule {
    pub id: String,
    /// The rule, in one or two sentences.
    pub text: String,
    pub source: Vec<String>,
}

impl TableRow for TableRule {
    fn key(&self) -> String {
        self.id.clone()
    }

    fn sources(&self) -> &[String] {
        &self.source
    }
}

/// Defines a data file: its header, its lists, which a file may leave out, with the keys of their rows, and what lookups
/// derive from them.
macro_rules! table_file {
    (
        $(#[$doc:meta])*
        pub struct $type:ident = $name:literal {
            $($(#[$list_doc:meta])* pub $list:ident: Vec<$row:ty> $(by |$it:ident| $key:expr)?,)+
            $(cache $cache:ident: $cache_type:ty,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $type {
            pub table: $crate::tables::Header,
            $(
                $(#[$list_doc])*
                #[serde(default)]
                pub $list: Vec<$row>,
            )+
            $(
                #[serde(skip)]
                pub(crate) $cache: $cache_type,
            )?
        }

        $($(
            impl $crate::tables::TableRow for $row {
                fn key(&self) -> String {
                    let $it = self;
                    $key
                }

                fn sources(&self) -> &[String] {
                    &self.source
                }
            }
        )?)+

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

            fn rows(&self) -> Vec<(&'static str, &dyn $crate::tables::TableRow)> {
                let mut rows: Vec<(&'static str, &dyn $crate::tables::TableRow)> = Vec::new();
                $(rows.extend(self.$list.iter().map(|row| (stringify!($list), row as &dyn $crate::tables::TableRow)));)+
                rows
            }
        }
    };
}
pub(super) use table_file;
