//! The names of everything a deployment creates, derived from its run id.

use cudock_base::bug::Parts;
use std::fmt::Display;

use cudock_base::{Digest, Timestamp};
use serde::Serialize;

use crate::deployment::DeploymentIdentity;
use crate::run_names::{group_name, reaper_group_name};
use crate::services::error::TranslationError;
use crate::spec::DeploymentSpec;

/// Names and ids within a subscription.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) subscription: &'a str,
    pub(crate) run_id: &'a str,
}

impl<'a> Names<'a> {
    pub(crate) fn of_spec(spec: &'a DeploymentSpec) -> Self {
        Self { subscription: &spec.subscription, run_id: &spec.run_id }
    }

    pub(crate) fn of_identity(identity: &'a DeploymentIdentity) -> Self {
        Self { subscription: &identity.subscription, run_id: &identity.run_id }
    }

    /// A name for what must be unique in a region or workspace: `cudock-0123456789ab`.
    pub(crate) fn unique(self) -> String {
        group_name(self.run_id)
    }

    /// The same without a dash, for names of letters and digits only.
    pub(crate) fn unique_letters(self) -> String {
        format!("cudock{}", self.run_id)
    }

    pub(crate) fn group(self) -> String {
        self.unique()
    }

    pub(crate) fn reaper_group(self) -> String {
        reaper_group_name(self.run_id)
    }

    pub(crate) fn subscription_id(self) -> String {
        format!("/subscriptions/{}", self.subscription)
    }

    pub(crate) fn group_id(self) -> String {
        self.id_of_group(&self.group())
    }

    pub(crate) fn reaper_group_id(self) -> String {
        self.id_of_group(&self.reaper_group())
    }

    pub(crate) fn id_of_group(self, group: &str) -> String {
        format!("/subscriptions/{}/resourceGroups/{group}", self.subscription)
    }

    /// The id of a resource in the deployment's group: `Microsoft.Compute/virtualMachines/main`.
    pub(crate) fn resource(self, type_and_name: &str) -> String {
        format!("{}/providers/{type_and_name}", self.group_id())
    }

    /// The id of an existing resource that is given as `GROUP/NAME`.
    pub(crate) fn existing(self, existing: Existing<'_>, resource_type: &str) -> String {
        format!("{}/providers/{resource_type}/{}", self.id_of_group(existing.group), existing.name)
    }

    /// The record of the deployment that creates both groups.
    pub(crate) fn record_id(self) -> String {
        format!("{}/providers/Microsoft.Resources/deployments/{}", self.subscription_id(), self.unique())
    }

    pub(crate) fn role_definition(self, role: &str) -> String {
        format!("{}/providers/Microsoft.Authorization/roleDefinitions/{role}", self.subscription_id())
    }

    /// A UUID that is always the same for a purpose in this run, so that a repeated request changes nothing.
    pub(crate) fn uuid(self, purpose: &str) -> String {
        let digest = Digest::sha256_of(format!("{}/{}/{purpose}", self.subscription, self.run_id).as_bytes());
        let hex = digest.hex();
        let part = |from: usize, to: usize| hex.part(from..to);
        // Version 8 is for own schemes, and the variant's first bits are 10.
        format!("{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
    }
}

/// An existing resource as `GROUP/NAME`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Existing<'a> {
    pub(crate) group: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Existing<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (group, name) = text.split_once('/')?;
        (is_name(group) && is_name(name)).then_some(Self { group, name })
    }

    pub(crate) fn required(text: &'a str, what: impl Display) -> Result<Self, TranslationError> {
        Self::parse(text)
            .ok_or_else(|| TranslationError::new(format!("`{text}` is not {what} as GROUP/NAME")))
    }
}

/// Whether it can stand in a path as one segment.
pub(crate) fn is_name(text: &str) -> bool {
    let is_allowed = |letter: char| letter.is_alphanumeric() || "-_.()".contains(letter);
    !text.is_empty() && text.chars().count() <= 90 && text.chars().all(is_allowed)
}

/// The tags of every resource and group.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Tags {
    #[serde(rename = "cudock-run")]
    pub(crate) run: String,
    #[serde(rename = "cudock-name")]
    pub(crate) name: String,
    #[serde(rename = "cudock-owner")]
    pub(crate) owner: String,
    #[serde(rename = "cudock-state", skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(rename = "cudock-delete-after")]
    pub(crate) delete_after: String,
}

impl Tags {
    pub(crate) fn new(spec: &DeploymentSpec) -> Self {
        Self {
            run: spec.run_id.clone(),
            name: spec.name.clone(),
            owner: spec.owner.clone(),
            state: spec.state.clone(),
            delete_after: whole_seconds(spec.expires),
        }
    }
}

/// RFC 3339 in UTC, without a fraction.
pub(crate) fn whole_seconds(time: Timestamp) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_stable_and_differs_by_purpose() {
        let names = Names { subscription: "s", run_id: "0123456789ab" };
        let uuid = names.uuid("group");
        assert_eq!(uuid, names.uuid("group"));
        assert_ne!(uuid, names.uuid("reaper"));
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
    }

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        for text in ["g/n", "My_Group(1)/a.b-c"] {
            assert!(Existing::parse(text).is_some(), "{text}");
        }
        for text in ["", "g", "g/", "/n", "g/n/m", "g/n?x", "g/../n", "g/%2e", "g/a b"] {
            assert!(Existing::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn times_have_whole_seconds() {
        let time = Timestamp::parse("2026-11-17T03:04:05.678Z").unwrap();
        assert_eq!(whole_seconds(time), "2026-11-17T03:04:05Z");
    }
}
