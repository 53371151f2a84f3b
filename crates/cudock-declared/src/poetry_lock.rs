//! `poetry.lock`: the versions that Poetry chose.

use std::str::FromStr;

use pep440_rs::Version;

use super::requirement::{index_tag, normalise, tag_of_version};
use super::toml_tree::{self, Lines, list, table, text};
use super::{DeclaredPackage, Fault, Manager, tag};

/// The locked packages.
pub(super) fn read(input: &str) -> Result<Vec<DeclaredPackage>, Fault> {
    let lines = Lines::of(input);
    let root = toml_tree::parse(input, &lines)?;
    let mut packages = Vec::new();
    for value in list(&root, "package") {
        let Some(package) = value.get_ref().as_table() else { continue };
        let (Some(name), Some(version)) = (text(package, "name"), text(package, "version")) else { continue };
        let Ok(version) = Version::from_str(version) else { continue };
        let name = normalise(name);
        let source = table(package, &["source"]).and_then(|source| text(source, "url"));
        let of_source = source.and_then(tag::of_address);
        packages.push(DeclaredPackage {
            tag: tag_of_version(&version).or_else(|| index_tag(&name, of_source.as_deref())),
            name,
            extras: Vec::new(),
            exact: Some(version),
            range: None,
            manager: Manager::Pip,
            group: None,
            exclusive: false,
            file: None,
            span: lines.span(value.span()),
        });
    }
    Ok(packages)
}
