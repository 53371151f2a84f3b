//! The packages that others need, as in distroless images: nothing is installed, so that what only maintainer scripts
//! need is left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::control::{DebPackage, Relation};

/// Dependencies that only maintainer scripts use, which never run in an image: the package, or any with `*`, and what it
/// need not bring.
const SCRIPTS_ONLY: &[(&str, &str)] = &[
    ("*", "debconf"),
    ("*", "debconf-2.0"),
    ("*", "dpkg"),
    ("*", "init-system-helpers"),
    ("*", "install-info"),
    ("ca-certificates", "openssl"),
];

/// Packages by name, and by what they provide. Of several versions, the newest counts.
#[derive(Default)]
pub struct PackageSet {
    packages: BTreeMap<String, DebPackage>,
    /// The archive of each package.
    archives: BTreeMap<String, String>,
    providers: BTreeMap<String, BTreeSet<String>>,
}

/// A package of a closure, with the reason why it is there.
#[derive(Debug, PartialEq, Eq)]
pub struct Needed<'a> {
    pub package: &'a DebPackage,
    pub archive: &'a str,
    pub reason: String,
    /// The wanted package that it is there for.
    pub root: &'a str,
}

/// A dependency that no package satisfies.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsatisfied {
    pub by: String,
    pub relation: String,
}

impl PackageSet {
    pub fn add(&mut self, package: DebPackage, archive: &str) {
        let is_older = |known: &DebPackage| known.version >= package.version;
        if self.packages.get(&package.name).is_some_and(is_older) {
            return;
        }
        for provided in &package.provides {
            self.providers.entry(provided.name.clone()).or_default().insert(package.name.clone());
        }
        self.archives.insert(package.name.clone(), archive.to_owned());
        self.packages.insert(package.name.clone(), package);
    }

    pub fn get(&self, name: &str) -> Option<&DebPackage> {
        self.packages.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.packages.keys()
    }

    /// Wanted packages and everything that they depend on, by name.
    pub fn closure<'a>(&'a self, wanted: &'a [(String, String)]) -> Result<Vec<Needed<'a>>, Unsatisfied> {
        let mut found: BTreeMap<&str, Needed<'a>> = BTreeMap::new();
        // Wanted packages are there before alternatives are chosen among them.
        let mut queue = VecDeque::new();
        for (name, reason) in wanted {
            let unknown = || Unsatisfied { by: reason.clone(), relation: name.clone() };
            let package = self.packages.get(name).ok_or_else(unknown)?;
            if !found.contains_key(package.name.as_str()) {
                found.insert(&package.name, self.needed(package, reason.clone(), name));
                queue.push_back((package, name.as_str()));
            }
        }
        while let Some((package, root)) = queue.pop_front() {
            for alternatives in &package.depends {
                if alternatives.iter().any(|one| is_for_scripts(&package.name, &one.name)) {
                    continue;
                }
                let is_there = |one: &Relation| {
                    self.satisfying(one).iter().any(|name| found.contains_key(name.name.as_str()))
                };
                if alternatives.iter().any(is_there) {
                    continue;
                }
                let chosen = alternatives.iter().find_map(|one| self.satisfying(one).into_iter().next());
                let Some(chosen) = chosen else {
                    let text: Vec<String> = alternatives.iter().map(ToString::to_string).collect();
                    return Err(Unsatisfied { by: package.name.clone(), relation: text.join(" | ") });
                };
                found.insert(&chosen.name, self.needed(chosen, package.name.clone(), root));
                queue.push_back((chosen, root));
            }
        }
        Ok(found.into_values().collect())
    }

    fn needed<'a>(&'a self, package: &'a DebPackage, reason: String, root: &'a str) -> Needed<'a> {
        let archive = self.archives.get(&package.name).map_or("", String::as_str);
        Needed { package, archive, reason, root }
    }

    /// The package of the name, else those that provide it, by name.
    fn satisfying(&self, relation: &Relation) -> Vec<&DebPackage> {
        let named = self.packages.get(&relation.name).filter(|package| relation.accepts(&package.version));
        let provides = |package: &&DebPackage| {
            package.provides.iter().any(|provided| {
                let has_version = provided.version.as_ref().map(|(_, version)| relation.accepts(version));
                provided.name == relation.name && has_version.unwrap_or(relation.version.is_none())
            })
        };
        let others = self.providers.get(&relation.name).into_iter().flatten();
        let others = others.filter_map(|name| self.packages.get(name)).filter(provides);
        named.into_iter().chain(others).collect()
    }
}

fn is_for_scripts(package: &str, dependency: &str) -> bool {
    SCRIPTS_ONLY.iter().any(|(of, name)| (*of == "*" || *of == package) && *name == dependency)
}

#[cfg(test)]
mod tests {
    use cudock_base::{Arch, Digest};

    use super::super::control::stanzas;
    use super::*;

    fn set(text: &str) -> PackageSet {
        let mut set = PackageSet::default();
        let hash = Digest::sha256_of(b"").hex().to_owned();
        stanzas(text, |fields| {
            let mut fields = fields.clone();
            let file = format!("pool/{}.deb", fields["package"]);
            for (name, value) in [
                ("architecture", Arch::X86_64.oci_name()),
                ("filename", &file),
                ("size", "1"),
                ("sha256", &hash),
            ] {
                fields.insert(name.to_owned(), value.to_owned());
            }
            set.add(DebPackage::read(&fields, Arch::X86_64).unwrap(), "debian");
        });
        set
    }

    fn closure(text: &str, wanted: &[&str]) -> Result<Vec<String>, Unsatisfied> {
        let wanted: Vec<_> = wanted.iter().map(|name| ((*name).to_owned(), "[image]".to_owned())).collect();
        let set = set(text);
        let needed = set.closure(&wanted)?;
        Ok(needed.iter().map(|needed| format!("{} < {}", needed.package.name, needed.reason)).collect())
    }

    #[test]
    fn dependencies_are_followed_and_cycles_end() {
        let text = "Package: a\nVersion: 1\nDepends: b (>= 1), c\n\nPackage: b\nVersion: 2\nPre-Depends: a\n\n\
                    Package: c\nVersion: 1\nDepends: debconf\n\nPackage: d\nVersion: 1\n";
        assert_eq!(closure(text, &["a"]).unwrap(), ["a < [image]", "b < a", "c < a"]);
    }

    #[test]
    fn an_alternative_that_is_there_comes_before_the_first() {
        let text =
            "Package: a\nVersion: 1\nDepends: x | y\n\nPackage: x\nVersion: 1\n\nPackage: y\nVersion: 1\n";
        assert_eq!(closure(text, &["a"]).unwrap(), ["a < [image]", "x < a"]);
        assert_eq!(closure(text, &["a", "y"]).unwrap(), ["a < [image]", "y < [image]"]);
    }

    #[test]
    fn a_provided_name_counts_with_its_version_only() {
        let text = "Package: a\nVersion: 1\nDepends: virtual (>= 2)\n\nPackage: p\nVersion: 9\nProvides: virtual\n\n\
                    Package: q\nVersion: 1\nProvides: virtual (= 3)\n";
        assert_eq!(closure(text, &["a"]).unwrap(), ["a < [image]", "q < a"]);
        let plain = text.replace("virtual (>= 2)", "virtual");
        assert_eq!(closure(&plain, &["a"]).unwrap(), ["a < [image]", "p < a"]);
    }

    #[test]
    fn the_newest_version_counts_and_what_is_missing_is_named() {
        let text =
            "Package: a\nVersion: 1\nDepends: b (>= 2)\n\nPackage: b\nVersion: 2\n\nPackage: b\nVersion: 1\n";
        assert_eq!(closure(text, &["a"]).unwrap(), ["a < [image]", "b < a"]);
        let newer = text.replace(">= 2", ">= 3");
        let error = closure(&newer, &["a"]).unwrap_err();
        assert_eq!((error.by.as_str(), error.relation.as_str()), ("a", "b (>= 3)"));
        assert_eq!(closure(text, &["zz"]).unwrap_err().by, "[image]");
    }
}
