//! Converts `data/` to the compact form that is embedded in the program.
//!
//! The same types read the data files here and the embedded form at run time, so an invalid row fails the build with its
//! position, and no text is parsed at startup.

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

    macro_rules! pack_tables {
        ($($name:ident: $type:ident = $file:literal, $doc:literal $(=> $finish:ident)?;)*) => {
            $(pack::<tables::$type>(&data, &out)?;)*
        };
    }
    tables::for_each_table!(pack_tables);

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
