//! Checks names against the fact tables.

use std::collections::BTreeSet;

use cudock_base::{UsageError, suggest};
use cudock_facts::lookup::NameMatch;
use cudock_plan::ServiceKind;

use crate::builder::{Origin, WorkloadBuilder};

impl WorkloadBuilder<'_> {
    /// Regions as the tables spell them.
    pub(crate) fn regions(&self, names: &[String], given: Origin) -> Result<Vec<String>, UsageError> {
        let known: BTreeSet<&str> = self.known_regions();
        let region = |(number, name): (usize, &String)| {
            let folded = suggest::normalize(name);
            if known.contains(folded.as_str()) {
                return Ok(folded);
            }
            let near = suggest::nearest(&folded, known.iter().copied());
            let problem = format!("unknown region `{name}`");
            Err(self.invalid_entry(given, Some(&number.to_string()), problem, near.first().copied()))
        };
        names.iter().enumerate().map(region).collect()
    }

    /// Regions that have a price or a profile.
    fn known_regions(&self) -> BTreeSet<&str> {
        let profiles = self.facts.services().profile.iter().flat_map(|profile| &profile.regions);
        self.facts.prices().regions().chain(profiles.map(String::as_str)).collect()
    }

    /// The ids of the GPUs with these names: `A100` has two.
    pub(crate) fn gpus(&self, names: &[String], given: Origin) -> Result<Vec<String>, UsageError> {
        let mut ids: Vec<String> = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let rows = match self.facts.gpus().find(name) {
                NameMatch::NotFound(near) => {
                    let problem = format!("unknown GPU `{name}`");
                    return Err(self.invalid_entry(
                        given,
                        Some(&number.to_string()),
                        problem,
                        near.first().copied(),
                    ));
                }
                found => found.rows(),
            };
            for row in rows {
                if !ids.contains(&row.id) {
                    ids.push(row.id.clone());
                }
            }
        }
        Ok(ids)
    }

    /// The id of one GPU.
    pub(crate) fn one_gpu(
        &self,
        name: &str,
        given: Origin,
        part: Option<&str>,
    ) -> Result<String, UsageError> {
        match self.facts.gpus().find(name) {
            NameMatch::One(row) => Ok(row.id.clone()),
            NameMatch::Several(rows) => {
                let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
                let problem = format!("`{name}` is ambiguous: it matches several GPUs: {}", ids.join(", "));
                Err(self.invalid_entry(given, part, problem, None))
            }
            NameMatch::NotFound(near) => {
                let problem = format!("unknown GPU `{name}`");
                Err(self.invalid_entry(given, part, problem, near.first().copied()))
            }
        }
    }

    /// The id of a kind of storage.
    pub(crate) fn storage(&self, name: &str, given: Origin) -> Result<String, UsageError> {
        let known = || self.facts.storage().storage.iter().map(|row| row.id.as_str());
        if let Some(id) = known().find(|id| id.eq_ignore_ascii_case(name)) {
            Ok(id.to_owned())
        } else {
            let near = suggest::nearest(name, known());
            let problem = format!("unknown storage `{name}`");
            Err(self.invalid(given, problem, near.first().copied()))
        }
    }

    /// The ids of services: `ml` has three.
    pub(crate) fn services(&self, names: &[String], given: Origin) -> Result<Vec<String>, UsageError> {
        let mut ids: Vec<String> = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let kinds = ServiceKind::named(&name.to_ascii_lowercase());
            if kinds.is_empty() {
                let known = ServiceKind::ALL.iter().flat_map(|kind| [kind.id(), kind.table_id()]);
                let near = suggest::nearest(name, known);
                let problem = format!("unknown service `{name}`");
                return Err(self.invalid_entry(
                    given,
                    Some(&number.to_string()),
                    problem,
                    near.first().copied(),
                ));
            }
            for kind in kinds {
                if !ids.iter().any(|id| id == kind.id()) {
                    ids.push(kind.id().to_owned());
                }
            }
        }
        Ok(ids)
    }

    /// Sizes and profiles as the tables spell them.
    pub(crate) fn sizes(&self, names: &[String], given: Origin) -> Result<Vec<String>, UsageError> {
        let size = |(number, name): (usize, &String)| {
            let profiles = &self.facts.services().profile;
            if let Some(profile) = profiles.iter().find(|profile| profile.name.eq_ignore_ascii_case(name)) {
                return Ok(profile.name.clone());
            }
            match self.facts.sizes().find(name) {
                NameMatch::One(size) => Ok(size.name.clone()),
                NameMatch::Several(_) | NameMatch::NotFound(_) => {
                    let all = self.facts.sizes().size.iter().map(|size| size.name.as_str());
                    let known = all.chain(profiles.iter().map(|profile| profile.name.as_str()));
                    let near = suggest::nearest(name, known);
                    let problem = format!("unknown size or profile `{name}`");
                    Err(self.invalid_entry(given, Some(&number.to_string()), problem, near.first().copied()))
                }
            }
        };
        names.iter().enumerate().map(size).collect()
    }
}
