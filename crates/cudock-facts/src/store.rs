use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Serialize;

use crate::overlay::{Overlay, OverlayError};
use crate::tables::{
    Components, FindingPages, ForwardCompat, Frameworks, Gpus, Images, Messages, Meters, Packages, Prices,
    Runtimes, Services, Sizes, StorageTable, TableFile, Toolkits,
};
use crate::tables::{Drivers, Header};
use crate::version::Date;

/// After so many days a table is called stale in reports.
pub const STALE_AFTER_DAYS: i32 = 180;

/// The tables: the embedded ones, with a user's laid over them.
///
/// A table is decoded when it is first asked for, so a program pays for what it looks up and for nothing else.
#[derive(Debug, Default)]
pub struct Facts {
    overlay: Option<Overlay>,
    gpus: OnceLock<Gpus>,
    drivers: OnceLock<Drivers>,
    toolkits: OnceLock<Toolkits>,
    components: OnceLock<Components>,
    forward_compat: OnceLock<ForwardCompat>,
    images: OnceLock<Images>,
    frameworks: OnceLock<Frameworks>,
    messages: OnceLock<Messages>,
    findings: OnceLock<FindingPages>,
    sizes: OnceLock<Sizes>,
    services: OnceLock<Services>,
    storage: OnceLock<StorageTable>,
    meters: OnceLock<Meters>,
    runtimes: OnceLock<Runtimes>,
    packages: OnceLock<Packages>,
    prices: OnceLock<Prices>,
}

/// One line about a table.
#[derive(Debug, Clone, Serialize)]
pub struct TableSummary {
    /// Its name, which is also the name of its file.
    pub name: &'static str,
    /// The day it was last held against its sources.
    pub as_of: Date,
    /// How many rows it has.
    pub rows: usize,
    /// How many sources it names.
    pub sources: usize,
    /// The overlay file that changed it.
    pub overlay: Option<PathBuf>,
}

impl TableSummary {
    /// Whether the table is too old on that day to be trusted without a word.
    pub fn is_stale(&self, today: Date) -> bool {
        today.days_since(self.as_of) > STALE_AFTER_DAYS
    }
}

/// Writes one accessor: the embedded bytes, decoded once, under the overlay's rows.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident, $type:ty, $file:literal) => {
        $(#[$doc])*
        pub fn $name(&self) -> &$type {
            self.$name.get_or_init(|| {
                let mut table: $type = decode(include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".bin")));
                if let Some(newer) = self.overlay.as_ref().and_then(|overlay| overlay.$name.clone()) {
                    table.overlay(newer.table);
                }
                table
            })
        }
    };
}

impl Facts {
    /// The tables this program was built with.
    pub fn embedded() -> Self {
        Self::default()
    }

    /// The same with the files of `directory` laid over them: a file is named after its table, its rows replace
    /// those with the same key and add to the rest, and `replace = true` in its header drops the rest.
    ///
    /// All files are read and checked here, so that a mistake in one is told before anything rests on it.
    pub fn with_overlay(directory: &Path) -> Result<Self, OverlayError> {
        let facts = Self { overlay: Some(Overlay::read(directory)?), ..Self::default() };
        match &facts.overlay {
            Some(overlay) => overlay.check_against(&facts)?,
            None => unreachable!("the overlay was just set"),
        }
        Ok(facts)
    }

    table!(
        /// The cards.
        gpus, Gpus, "gpus"
    );
    table!(
        /// Driver branches, minor-version compatibility, generations of cards.
        drivers, Drivers, "drivers"
    );
    table!(
        /// Toolkits, their releases and SONAMEs.
        toolkits, Toolkits, "toolkits"
    );
    table!(
        /// Library versions by toolkit release.
        components, Components, "components"
    );
    table!(
        /// cuda-compat packages.
        forward_compat, ForwardCompat, "forward_compat"
    );
    table!(
        /// nvidia/cuda images.
        images, Images, "images"
    );
    table!(
        /// Framework builds.
        frameworks, Frameworks, "frameworks"
    );
    /// Error messages and CUDA's error numbers. Members of families are messages of their own here.
    pub fn messages(&self) -> &Messages {
        self.messages.get_or_init(|| {
            let mut table: Messages = decode(include_bytes!(concat!(env!("OUT_DIR"), "/messages.bin")));
            if let Some(newer) = self.overlay.as_ref().and_then(|overlay| overlay.messages.clone()) {
                table.overlay(newer.table);
            }
            table.expand();
            table
        })
    }

    table!(
        /// Pages of finding codes.
        findings, FindingPages, "findings"
    );
    table!(
        /// Azure's GPU sizes.
        sizes, Sizes, "azure_sizes"
    );
    table!(
        /// Azure's services.
        services, Services, "azure_services"
    );
    table!(
        /// Azure's storage.
        storage, StorageTable, "azure_storage"
    );
    table!(
        /// Azure's meters, start times and limits.
        meters, Meters, "azure_meters"
    );
    table!(
        /// Wheels of inference libraries.
        runtimes, Runtimes, "runtimes"
    );
    table!(
        /// Packages that use a GPU, and packages that do not.
        packages, Packages, "packages"
    );

    /// Prices of Azure's GPU sizes. An overlay takes the whole table's place: prices of two days do not mix.
    pub fn prices(&self) -> &Prices {
        self.prices.get_or_init(|| match self.overlay.as_ref().and_then(|overlay| overlay.prices.clone()) {
            Some(newer) => newer.table,
            None => decode(include_bytes!(concat!(env!("OUT_DIR"), "/azure_prices.bin"))),
        })
    }

    /// All tables with their ages. Decodes everything.
    pub fn tables(&self) -> Vec<TableSummary> {
        TABLES.iter().filter_map(|name| self.table(name)).collect()
    }

    /// One table with its age, by its name.
    pub fn table(&self, name: &str) -> Option<TableSummary> {
        let overlay = self.overlay.as_ref();
        Some(match name {
            "gpus" => summary(self.gpus(), overlay),
            "drivers" => summary(self.drivers(), overlay),
            "toolkits" => summary(self.toolkits(), overlay),
            "components" => summary(self.components(), overlay),
            "forward_compat" => summary(self.forward_compat(), overlay),
            "images" => summary(self.images(), overlay),
            "frameworks" => summary(self.frameworks(), overlay),
            "messages" => summary(self.messages(), overlay),
            "findings" => summary(self.findings(), overlay),
            "azure_sizes" => summary(self.sizes(), overlay),
            "azure_services" => summary(self.services(), overlay),
            "azure_storage" => summary(self.storage(), overlay),
            "azure_meters" => summary(self.meters(), overlay),
            "runtimes" => summary(self.runtimes(), overlay),
            "packages" => summary(self.packages(), overlay),
            Prices::NAME => {
                let prices = self.prices();
                TableSummary {
                    name: Prices::NAME,
                    as_of: prices.newest(),
                    rows: prices.rows().count(),
                    sources: prices.sources.len(),
                    overlay: overlay.and_then(|overlay| overlay.file_of(Prices::NAME)),
                }
            }
            _ => return None,
        })
    }
}

/// The tables' names, in the order reports list them.
const TABLES: [&str; 16] = [
    "gpus",
    "drivers",
    "toolkits",
    "components",
    "forward_compat",
    "images",
    "frameworks",
    "packages",
    "messages",
    "findings",
    "azure_sizes",
    "azure_prices",
    "azure_services",
    "azure_storage",
    "azure_meters",
    "runtimes",
];

fn summary<T: TableFile>(table: &T, overlay: Option<&Overlay>) -> TableSummary {
    let Header { as_of, sources, .. } = table.header();
    TableSummary {
        name: T::NAME,
        as_of: *as_of,
        rows: table.rows().len(),
        sources: sources.len(),
        overlay: overlay.and_then(|overlay| overlay.file_of(T::NAME)),
    }
}

#[allow(clippy::expect_used, reason = "the build script wrote these bytes with the same types")]
fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("an embedded table decodes")
}
