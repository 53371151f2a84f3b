//! The packages that are installed in the end: of several requests for a package, the one that prevails.

use std::collections::HashMap;
use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::base::Base;
use cudock_manifests::{Declared, DeclaredPackage};

/// The packages after all steps, with the framework of the base image first, and without notes.
pub(super) fn effective(declared: &Declared, base: Option<&Base>) -> Declared {
    let of_base = base.and_then(|base| base.package.as_ref());
    let of_base = of_base.filter(|package| !declared.upgraded.contains(&package.name));
    let mut settled: Vec<DeclaredPackage> = Vec::new();
    let mut places: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for package in of_base.into_iter().chain(&declared.packages) {
        let name = if package.name == "pytorch" { "torch" } else { package.name.as_str() };
        let place = *places.entry((name, package.group.as_deref())).or_insert(settled.len());
        let Some(earlier) = settled.get_mut(place) else {
            settled.push(package.clone());
            continue;
        };
        if stands(earlier, package) {
            // Extras add further packages to those already installed.
            for extra in &package.extras {
                if !earlier.extras.contains(extra) {
                    earlier.extras.push(extra.clone());
                }
            }
        } else {
            *earlier = package.clone();
        }
    }
    declared.with_packages(settled)
}

/// Whether what is installed satisfies a later request.
fn stands(earlier: &DeclaredPackage, later: &DeclaredPackage) -> bool {
    match (&earlier.exact, &later.exact, &later.range) {
        (Some(own), Some(wanted), _) => {
            own == wanted
                || !wanted.is_local() && own.clone().without_local() == *wanted && later.tag.is_none()
        }
        (_, Some(_), _) => false,
        (Some(own), None, Some(range)) => {
            let own = own.clone().without_local();
            VersionSpecifiers::from_str(range).is_ok_and(|range| range.contains(&own))
        }
        (_, None, None) => true,
        (None, None, Some(_)) => earlier.range.is_some() && earlier.range == later.range,
    }
}
