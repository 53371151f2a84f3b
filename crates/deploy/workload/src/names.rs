//! Checks names against the fact tables.

use cudock_facts::services::AzureOffering;
use std::collections::BTreeSet;

use cudock_base::UsageError;
use cudock_base::text::suggest;
use cudock_facts::lookup::NameMatch;

use crate::builder::WorkloadBuilder;
use crate::origin::Origin;

impl WorkloadBuilder<'_> {
    /// The ids of all names of a list, once each. `find` returns those of one name, or else similar names.
    fn ids<'n>(
        &self,
        (names, given): (&[String], Origin),
        noun: &str,
        find: impl Fn(&str) -> Result<Vec<String>, Vec<&'n str>>,
    ) -> Result<Vec<String>, UsageError> {
        let mut ids: Vec<String> = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let entry = number.to_string();
            let found = find(name).map_err(|near| self.unknown(given, Some(&entry), noun, name, &near))?;
            for id in found {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        Ok(ids)
    }

    fn unknown(
        &self,
        given: Origin,
        entry: Option<&str>,
        noun: &str,
        name: &str,
        near: &[&str],
    ) -> UsageError {
        self.invalid_entry(given, entry, format!("unknown {noun} `{name}`"), near.first().copied())
    }

    /// Regions as the tables spell them: those that have a price or a profile.
    pub(crate) fn regions(&self, names: (&[String], Origin)) -> Result<Vec<String>, UsageError> {
        let profiles = self.facts.services().profile.iter().flat_map(|profile| &profile.regions);
        let priced = self.facts.prices().regions();
        let known: BTreeSet<&str> = priced.chain(profiles.map(String::as_str)).collect();
        self.ids(names, "region", |name| {
            let folded = suggest::normalize(name);
            let near = || suggest::nearest(&folded, known.iter().copied());
            if known.contains(folded.as_str()) { Ok(vec![folded]) } else { Err(near()) }
        })
    }

    /// The ids of the GPUs with these names: `A100` has two.
    pub(crate) fn gpus(&self, names: (&[String], Origin)) -> Result<Vec<String>, UsageError> {
        self.ids(names, "GPU", |name| match self.facts.gpus().find(name) {
            NameMatch::NotFound(near) => Err(near),
            found => Ok(found.rows().into_iter().map(|row| row.id.clone()).collect()),
        })
    }

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
            NameMatch::NotFound(near) => Err(self.unknown(given, part, "GPU", name, &near)),
        }
    }

    pub(crate) fn storage(&self, name: &str, given: Origin) -> Result<String, UsageError> {
        let known = || self.facts.storage().storage.iter().map(|row| row.id.as_str());
        let id = known().find(|id| id.eq_ignore_ascii_case(name)).map(str::to_owned);
        id.ok_or_else(|| self.unknown(given, None, "storage", name, &suggest::nearest(name, known())))
    }

    /// The ids of services: `ml` has three.
    pub(crate) fn services(&self, names: (&[String], Origin)) -> Result<Vec<String>, UsageError> {
        self.ids(names, "service", |name| {
            let kinds = AzureOffering::named(&name.to_ascii_lowercase());
            if kinds.is_empty() {
                let known = AzureOffering::ALL.iter().flat_map(|kind| [kind.id(), kind.service().id()]);
                return Err(suggest::nearest(name, known));
            }
            Ok(kinds.into_iter().map(|kind| kind.id().to_owned()).collect())
        })
    }

    /// Sizes and profiles as the tables spell them.
    pub(crate) fn sizes(&self, names: (&[String], Origin)) -> Result<Vec<String>, UsageError> {
        let profiles = || self.facts.services().profile.iter().map(|profile| profile.name.as_str());
        self.ids(names, "size or profile", |name| {
            let profile = profiles().find(|profile| profile.eq_ignore_ascii_case(name));
            let size = || self.facts.sizes().find(name).one().map(|size| size.name.as_str());
            let all = || self.facts.sizes().size.iter().map(|size| size.name.as_str());
            let found = profile.or_else(size).map(|name| vec![name.to_owned()]);
            found.ok_or_else(|| suggest::nearest(name, all().chain(profiles())))
        })
    }
}
