//! Reads `poetry.lock`.

use std::str::FromStr;

use pep440_rs::Version;

use crate::pip::requirement::{index_tag, normalize, tag_of_version};
use crate::toml_tree::{self, Lines, list, table, text};
use crate::{DeclaredPackage, PositionedError, tag};

pub(crate) fn read(input: &str) -> Result<Vec<DeclaredPackage>, PositionedError> {
    let lines = Lines::new(input);
    let root = toml_tree::parse(input, &lines)?;
    let mut packages = Vec::new();
    for value in list(&root, "package") {
        let Some(package) = value.get_ref().as_table() else { continue };
        let (Some(name), Some(version)) = (text(package, "name"), text(package, "version")) else { continue };
        let Ok(version) = Version::from_str(version) else { continue };
        let name = normalize(name);
        let source = table(package, &["source"]).and_then(|source| text(source, "url"));
        let of_source = source.and_then(tag::from_url);
        packages.push(DeclaredPackage {
            tag: tag_of_version(&version).or_else(|| index_tag(&name, of_source.as_deref())),
            exact: Some(version),
            ..DeclaredPackage::new(name, lines.span(value.span()))
        });
    }
    Ok(packages)
}
