//! Turns `data/` into the compact form that is embedded in the program.
//!
//! The same types read the data files here and the embedded form at run time, so a row that does not fit stops
//! the build with its place, and start-up parses no text.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[allow(dead_code, unreachable_pub, clippy::wildcard_imports, unused_imports)]
#[path = "src/tables/mod.rs"]
mod tables;
#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "src/version/mod.rs"]
mod version;

use tables::TableFile;

fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("data");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=data");
    println!("cargo::rerun-if-changed=src/tables");
    println!("cargo::rerun-if-changed=src/version");

    pack::<tables::Gpus>(&data, &out)?;
    pack::<tables::Drivers>(&data, &out)?;
    pack::<tables::Toolkits>(&data, &out)?;
    pack::<tables::Components>(&data, &out)?;
    pack::<tables::ForwardCompat>(&data, &out)?;
    pack::<tables::Images>(&data, &out)?;
    pack::<tables::Frameworks>(&data, &out)?;
    pack::<tables::Messages>(&data, &out)?;
    pack::<tables::FindingPages>(&data, &out)?;
    pack::<tables::Sizes>(&data, &out)?;
    pack::<tables::Services>(&data, &out)?;
    pack::<tables::StorageTable>(&data, &out)?;
    pack::<tables::Meters>(&data, &out)?;
    pack::<tables::Runtimes>(&data, &out)?;
    pack::<tables::Packages>(&data, &out)?;

    let prices = data.join("azure_prices.csv");
    let parsed = tables::Prices::parse(&fs::read_to_string(&prices)?)
        .map_err(|error| format!("{}:{error}", prices.display()))?;
    fs::write(out.join("azure_prices.bin"), postcard::to_stdvec(&parsed)?)?;
    Ok(())
}

fn pack<T: TableFile>(data: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let file = data.join(format!("{}.toml", T::NAME));
    let table: T =
        toml::from_str(&fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?)
            .map_err(|error| format!("{}: {error}", file.display()))?;
    fs::write(out.join(format!("{}.bin", T::NAME)), postcard::to_stdvec(&table)?)?;
    Ok(())
}
