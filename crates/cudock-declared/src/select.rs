//! Which extras and groups of a project an installer takes.

use std::collections::BTreeSet;

use cudock_base::Span;

use super::{Declared, DeclaredPackage};

/// The extras and groups of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Groups {
    /// The project's own name, which its extras may ask for extras of.
    pub(super) project: Option<String>,
    pub(super) extras: BTreeSet<String>,
    /// Groups that are taken unless the installer is told otherwise.
    pub(super) default: BTreeSet<String>,
    /// A group or extra, and one that it includes.
    pub(super) includes: Vec<(String, String)>,
}

/// What an installer was told to take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Selection {
    /// Only groups, and not the project's own dependencies.
    pub(super) only_groups: bool,
    /// `*` for all of them.
    pub(super) extras: BTreeSet<String>,
    /// `*` for all of them.
    pub(super) groups: BTreeSet<String>,
    pub(super) without: BTreeSet<String>,
    /// Whether groups that are on by default are taken.
    pub(super) default_groups: bool,
}

impl Selection {
    /// The extras and groups that are taken, with those they include.
    pub(super) fn chosen(&self, groups: &Groups, all: &BTreeSet<String>) -> BTreeSet<String> {
        let mut chosen: BTreeSet<String> = all
            .iter()
            .filter(|name| {
                let asked = if groups.extras.contains(*name) {
                    self.extras.contains("*") || self.extras.contains(*name)
                } else {
                    let default = self.default_groups && groups.default.contains(*name);
                    self.groups.contains("*") || self.groups.contains(*name) || default
                };
                asked && !self.without.contains(*name)
            })
            .cloned()
            .collect();
        // Each round adds one group at least, so there are no more rounds than groups.
        while let Some((_, included)) = groups
            .includes
            .iter()
            .find(|(from, included)| chosen.contains(from) && !chosen.contains(included))
        {
            chosen.insert(included.clone());
        }
        chosen
    }

    /// Leaves only the packages that are taken.
    pub(super) fn apply(&self, declared: &mut Declared) {
        let all: BTreeSet<String> =
            declared.packages.iter().filter_map(|package| package.group.clone()).collect();
        let named =
            declared.groups.includes.iter().flat_map(|(from, included)| [from.clone(), included.clone()]);
        let all = all.into_iter().chain(named).collect();
        let chosen = self.chosen(&declared.groups, &all);
        let project = declared.groups.project.clone();
        let takes = |package: &DeclaredPackage| match &package.group {
            None => !self.only_groups,
            Some(group) => chosen.contains(group),
        };
        declared.packages.retain(|package| takes(package) && Some(&package.name) != project.as_ref());
    }
}

/// Groups that hold tools of developers, which no program needs when it runs.
const FOR_DEVELOPERS: [&str; 14] = [
    "ci",
    "dev",
    "develop",
    "development",
    "doc",
    "docs",
    "format",
    "lint",
    "test",
    "testing",
    "tests",
    "typecheck",
    "types",
    "typing",
];

impl Declared {
    /// Leaves what is installed without a word about extras and groups, and notes that there are others.
    pub fn keep_default_groups(&mut self) {
        let all: BTreeSet<String> =
            self.packages.iter().filter_map(|package| package.group.clone()).collect();
        let selection = Selection { default_groups: true, ..Selection::default() };
        let chosen = selection.chosen(&self.groups, &all);
        let others =
            all.iter().filter(|name| !chosen.contains(*name) && !FOR_DEVELOPERS.contains(&name.as_str()));
        let names = others.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        selection.apply(self);
        if !names.is_empty() {
            self.note(Span::START, format!("whether the extras or groups {names} are installed is not told"));
        }
    }
}
