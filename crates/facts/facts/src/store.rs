//! The tables, decoded on first use.

use std::path::PathBuf;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::Serialize;

use crate::overlay::Overlay;
use crate::tables::{self, Header, Prices, TableFile, for_each_table};
use crate::version::Date;

/// The age at which reports call a table stale.
pub const STALE_AFTER_DAYS: i32 = 180;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TableSummary {
    pub name: &'static str,
    /// The day it was last compared with its sources.
    pub as_of: Date,
    pub rows: usize,
    pub sources: usize,
    pub overlay: Option<PathBuf>,
}

impl TableSummary {
    /// Whether reports warn about the table's age on that day.
    pub fn is_stale(&self, today: Date) -> bool {
        today.days_since(self.as_of) > STALE_AFTER_DAYS
    }
}

macro_rules! define_facts {
    ($($name:ident: $type:ident = $file:literal, $doc:literal $(=> $finish:ident)?;)*) => {
        /// The tables: the embedded ones, with a user's overlay.
        ///
        /// A table is decoded when it is first used, so a program only pays for what it looks up.
        #[derive(Debug, Default)]
        pub struct Facts {
            overlay: Option<Overlay>,
            $($name: OnceLock<tables::$type>,)*
            prices: OnceLock<Prices>,
        }

        impl Facts {
            $(
                #[doc = $doc]
                pub fn $name(&self) -> &tables::$type {
                    self.$name.get_or_init(|| {
                        let mut table: tables::$type =
                            decode(include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".bin")));
                        if let Some(layer) = self.overlay.as_ref().and_then(|overlay| overlay.$name.clone()) {
                            table.overlay(layer.table);
                        }
                        $(table.$finish();)?
                        table
                    })
                }
            )*

            /// A table's age and size, by its name.
            pub fn table(&self, name: &str) -> Option<TableSummary> {
                Some(match name {
                    $($file => {
                        let Header { as_of, sources, .. } = self.$name().header();
                        self.summary($file, *as_of, self.$name().rows().len(), sources.len())
                    })*
                    Prices::NAME => {
                        let prices = self.prices();
                        self.summary(Prices::NAME, prices.newest(), prices.rows().count(), prices.sources.len())
                    }
                    _ => return None,
                })
            }

            /// All tables with their ages. Decodes everything.
            pub fn tables(&self) -> Vec<TableSummary> {
                let with_prices = |name| {
                    let prices = (name == tables::Sizes::NAME).then_some(Prices::NAME);
                    [Some(name), prices].into_iter().flatten()
                };
                [$($file),*].into_iter().flat_map(with_prices).filter_map(|name| self.table(name)).collect()
            }
        }
    };
}

for_each_table!(define_facts);

impl Facts {
    pub fn embedded() -> Self {
        Self::default()
    }

    /// The embedded tables with an overlay that has not been checked.
    pub(crate) fn unchecked(overlay: Overlay) -> Self {
        Self { overlay: Some(overlay), ..Self::default() }
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    /// Prices of Azure's GPU sizes. An overlay replaces the whole table: prices of two days do not mix.
    pub fn prices(&self) -> &Prices {
        self.prices.get_or_init(|| match self.overlay.as_ref().and_then(|overlay| overlay.prices.clone()) {
            Some(layer) => layer.table,
            None => decode(include_bytes!(concat!(env!("OUT_DIR"), "/azure_prices.bin"))),
        })
    }

    fn summary(&self, name: &'static str, as_of: Date, rows: usize, sources: usize) -> TableSummary {
        let overlay = self.overlay.as_ref().and_then(|overlay| overlay.file_of(name));
        TableSummary { name, as_of, rows, sources, overlay }
    }
}

#[allow(clippy::expect_used, reason = "the build script wrote these bytes with the same types")]
fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("an embedded table decodes")
}
