//! Selects the extras and groups of a project that an installer takes.

use std::collections::BTreeSet;

use cudock_base::Span;

use super::{Declared, is_listed};

/// The extras and groups of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Groups {
    /// The project's own name: its extras may require other extras of itself.
    pub(super) project: Option<String>,
    pub(super) extras: BTreeSet<String>,
    /// Groups that are installed by default.
    pub(super) default: BTreeSet<String>,
    /// A group or extra, and one that it includes.
    pub(super) includes: Vec<(String, String)>,
}

/// The extras and groups that an installer is asked to take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Selection {
    /// Whether the project's own dependencies are left out.
    pub(super) only_groups: bool,
    /// `*` for all of them.
    pub(super) extras: BTreeSet<String>,
    /// `*` for all of them.
    pub(super) groups: BTreeSet<String>,
    pub(super) without: BTreeSet<String>,
    /// Whether default groups are taken.
    pub(super) default_groups: bool,
}

impl Selection {
    /// The extras and groups that are taken, with those they include.
    pub(super) fn chosen(&self, groups: &Groups, all: &BTreeSet<String>) -> BTreeSet<String> {
        let mut chosen: BTreeSet<String> = all
            .iter()
            .filter(|name| {
                let requested = if groups.extras.contains(*name) {
                    self.extras.contains("*") || self.extras.contains(*name)
                } else {
                    let default = self.default_groups && groups.default.contains(*name);
                    self.groups.contains("*") || self.groups.contains(*name) || default
                };
                requested && !self.without.contains(*name)
            })
            .cloned()
            .collect();
        // Each iteration adds a group, so there are no more iterations than groups.
        while let Some((_, included)) = groups
            .includes
            .iter()
            .find(|(from, included)| chosen.contains(from) && !chosen.contains(included))
        {
            chosen.insert(included.clone());
        }
        chosen
    }

    /// Keeps only the packages that are taken.
    pub(super) fn apply(&self, mut declared: Declared) -> Declared {
        let groups = &declared.groups;
        let of_packages = declared.packages.iter().filter_map(|package| package.group.clone());
        let included = groups.includes.iter().flat_map(|(from, included)| [from.clone(), included.clone()]);
        let chosen = self.chosen(groups, &of_packages.chain(included).collect());
        declared.packages.retain(|package| {
            let is_chosen = package.group.as_ref().map_or(!self.only_groups, |group| chosen.contains(group));
            is_chosen && Some(&package.name) != groups.project.as_ref()
        });
        declared
    }
}

/// Groups of development tools, which no program needs at run time.
const DEVELOPMENT_GROUPS: &str = "
    ci dev develop development doc docs format lint test testing tests typecheck types typing";

impl Declared {
    /// Keeps what is installed by default, and notes other extras and groups.
    pub fn keep_default_groups(&mut self) {
        let all: BTreeSet<String> =
            self.packages.iter().filter_map(|package| package.group.clone()).collect();
        let selection = Selection { default_groups: true, ..Selection::default() };
        let chosen = selection.chosen(&self.groups, &all);
        let others =
            all.iter().filter(|name| !chosen.contains(*name) && !is_listed(DEVELOPMENT_GROUPS, name));
        let names = others.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        *self = selection.apply(std::mem::take(self));
        if !names.is_empty() {
            let note = format!("cannot determine whether extras or groups {names} are installed");
            self.note(Span::START, note);
        }
    }
}
