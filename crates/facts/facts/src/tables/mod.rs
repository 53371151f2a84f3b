//! The rows of each table, as the data files write them.
//!
//! These types are used three times: by the build script, which turns `data/` into the embedded form; at run time to
//! read that form; and at run time to read a user's overlay. So each field is defined once, and a data file that does
//! not match does not build.

/// Calls a macro with every TOML table: accessor, type, file name, description, and what finishes it after an overlay.
macro_rules! for_each_table {
    ($callback:ident) => {
        $callback! {
            gpus: Gpus = "gpus", "GPUs and chips.";
            drivers: Drivers = "drivers", "Driver branches, minor-version compatibility and architectures.";
            toolkits: Toolkits = "toolkits", "Toolkits, their releases and SONAMEs.";
            components: Components = "components", "Library versions by toolkit release.";
            forward_compat: ForwardCompat = "forward_compat", "cuda-compat packages.";
            images: Images = "images", "nvidia/cuda and framework images.";
            frameworks: Frameworks = "frameworks", "Framework builds.";
            packages: Packages = "packages", "Packages with and without GPU code." => index_names;
            messages: Messages = "messages", "Error messages, and those of families and CUDA's error numbers." => expand;
            findings: FindingPages = "findings", "Pages of finding codes.";
            sizes: Sizes = "azure_sizes", "Azure's GPU sizes.";
            services: Services = "azure_services", "Azure's services.";
            storage: StorageTable = "azure_storage", "Azure's storage.";
            quotas: Quotas = "azure_quotas", "Names of Azure's quotas.";
            meters: Meters = "azure_meters", "Azure's meters, start times and limits.";
            runtimes: Runtimes = "runtimes", "Wheels of inference libraries.";
            opened_libraries: OpenedLibraries = "opened_libraries", "Libraries that others open at run time.";
        }
    };
}
pub(crate) use for_each_table;

mod azure;
mod findings;
mod frameworks;
mod gpus;
mod header;
mod images;
mod messages;
mod meters;
mod opened_libraries;
mod packages;
mod prices;
mod quotas;
mod runtimes;
mod toolkits;

pub use azure::*;
pub use findings::*;
pub use frameworks::*;
pub use gpus::*;
pub use header::{Header, TableFile, TableRow, TableRule, merge};
pub use images::*;
pub use messages::*;
pub use meters::*;
pub use opened_libraries::*;
pub use packages::*;
pub use prices::*;
pub use quotas::*;
pub use runtimes::*;
pub use toolkits::*;
