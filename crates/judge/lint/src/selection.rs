//! The rules that apply, and their severities.

use std::collections::BTreeMap;

use cudock_base::text::suggest;
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_project::{Lint, ManifestText, ProjectError};

use crate::rules::RULES;

/// Stands for every rule in `disable`.
const EVERY_RULE: &str = "all";

/// The rules that apply, and their severities. By default all do, at their own severity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Whether only `enabled` rules apply.
    is_closed: bool,
    disabled: Vec<String>,
    enabled: Vec<String>,
    severities: BTreeMap<String, Severity>,
}

impl Selection {
    pub(crate) const ALL: &Self =
        &Self { is_closed: false, disabled: Vec::new(), enabled: Vec::new(), severities: BTreeMap::new() };

    /// Reads `[lint]`. An unknown rule is an error at its place in the file.
    pub(crate) fn read(facts: &Facts, lint: &Lint, text: &ManifestText) -> Result<Self, ProjectError> {
        let code = |name: &str, key: &str| {
            code(facts, name).ok_or_else(|| {
                let known = rules().flat_map(|rule| [rule.code, rule.name]);
                let near = suggest::closest(name, known).map(str::to_owned);
                text.key_error(key, format!("unknown rule `{name}`"), near)
            })
        };
        let codes = |list: &str, names: &[String]| -> Result<Vec<String>, ProjectError> {
            let is_rule = |name: &String| list != "disable" || name != EVERY_RULE;
            let named = names.iter().enumerate().filter(|(_, name)| is_rule(name));
            named.map(|(index, name)| code(name, &format!("lint.{list}.{index}"))).collect()
        };
        let severities = lint
            .severity
            .iter()
            .map(|(name, severity)| Ok((code(name, &format!("lint.severity.{name}"))?, *severity)));
        Ok(Self {
            is_closed: lint.disable.iter().any(|name| name == EVERY_RULE),
            disabled: codes("disable", &lint.disable)?,
            enabled: codes("enable", &lint.enable)?,
            severities: severities.collect::<Result<_, ProjectError>>()?,
        })
    }

    /// Whether findings of a code are reported.
    pub(crate) fn has(&self, code: &str) -> bool {
        let lists = |codes: &[String]| codes.iter().any(|listed| listed == code);
        lists(&self.enabled) || !self.is_closed && !lists(&self.disabled)
    }

    pub(crate) fn severity(&self, finding: &Finding) -> Severity {
        self.severities.get(finding.code).copied().unwrap_or(finding.severity)
    }
}

fn rules() -> impl Iterator<Item = &'static crate::Rule> {
    RULES.iter().flat_map(|group| group.iter())
}

/// The code of a rule that is named by its code or name.
fn code(facts: &Facts, name: &str) -> Option<String> {
    let of_rule = rules().find(|rule| rule.name == name || rule.code == name).map(|rule| rule.code);
    // Findings for a target have the codes of `cudock check`.
    let page = || facts.findings().get(name).map(|page| page.code.as_str());
    of_rule.or_else(page).map(str::to_owned)
}
