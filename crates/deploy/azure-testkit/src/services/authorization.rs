//! Role assignments and what they allow.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::resource::Resource;
use crate::resources::target::{Target, is_within};
use crate::state::identity::Caller;
use crate::time::utc;
use crate::wire::answer::Answer;

const KIND: &str = "microsoft.authorization/roleassignments";
const OWNER: &str = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635";
/// Everything but role assignments and locks themselves.
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";

impl Cloud {
    /// 403 if the caller may not do this.
    pub(crate) fn deny(&self, caller: &Caller, key: &str, verb: &str) -> Option<Answer> {
        let Caller::Identity(principal) = caller else { return None };
        let is_allowed = self.keys_of(KIND).iter().any(|assignment| {
            let assignment = &self.resources[assignment];
            let role = assignment.property("roleDefinitionId").as_str().unwrap_or_default();
            let role = role.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
            let covers = match role.as_str() {
                OWNER => true,
                CONTRIBUTOR => !key.contains("/providers/microsoft.authorization/"),
                _ => false,
            };
            assignment.property("principalId") == principal.as_str()
                && assignment.started.is_some_and(|effective| effective <= self.now)
                && covers
                && is_within(key, &assignment.target.parent_key())
        });
        (!is_allowed).then(|| {
            let message = format!(
                "The client '{principal}' with object id '{principal}' does not have authorization to perform action \
                 '{verb}' over scope '{key}' or the scope is invalid."
            );
            Answer::error(403, "AuthorizationFailed", message)
        })
    }

    pub(crate) fn refuse_role_assignment(
        &self,
        target: &Target,
        body: &Value,
        caller: &Caller,
    ) -> Option<Answer> {
        if *caller == Caller::User && !self.settings.may_assign_roles {
            let message = format!(
                "The client does not have authorization to perform action \
                 'Microsoft.Authorization/roleAssignments/write' over scope '{}'.",
                target.id
            );
            return Some(Answer::error(403, "AuthorizationFailed", message));
        }
        let (properties, principal) =
            (&body["properties"], body["properties"]["principalId"].as_str().unwrap_or_default());
        let exists = self
            .resources
            .values()
            .any(|resource| resource.principal() == Some(principal) && !is_assignment(&resource.target));
        if !exists || properties["principalType"].as_str() != Some("ServicePrincipal") {
            // A principal that is some seconds old is found only if its type is named.
            let message = format!(
                "Principal {} does not exist in the directory {}.",
                principal.replace('-', ""),
                crate::state::identity::TENANT
            );
            return Some(Answer::error(400, "PrincipalNotFound", message));
        }
        let same = |key: &String| {
            let other = &self.resources[key];
            other.property("principalId") == principal
                && other.target.parent_key() == target.parent_key()
                && other.property("roleDefinitionId") == &properties["roleDefinitionId"]
        };
        if let Some(old) = self.find(&target.key) {
            return (old.property("principalId") != principal).then(|| {
                let message =
                    "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.";
                Answer::error(400, "RoleAssignmentUpdateNotPermitted", message)
            });
        }
        let exists = self.keys_of(KIND).iter().any(same);
        exists.then(|| Answer::error(409, "RoleAssignmentExists", "The role assignment already exists."))
    }

    /// It takes effect later.
    pub(crate) fn role_assignment_created(&mut self, target: &Target) {
        if !is_assignment(target) {
            return;
        }
        let delay = self.random.below(self.settings.role_delay + 1);
        let scope = target.id.rsplit_once("/providers/").map_or("", |(scope, _)| scope).to_owned();
        let now = utc(self.now);
        let effective = self.now + delay;
        self.update(&target.key, |assignment| {
            assignment.started = Some(effective);
            for (name, value) in
                [("scope", json!(scope)), ("createdOn", json!(now)), ("updatedOn", json!(now))]
            {
                assignment.set(name, value);
            }
        });
    }

    /// Whether it is history that costs nothing: a deployment's, or a role of a principal that is gone.
    pub(crate) fn is_record(&self, resource: &Resource) -> bool {
        let is_deployment = resource.target.kind == "microsoft.resources/deployments";
        is_deployment || self.is_orphan(resource)
    }

    fn is_orphan(&self, resource: &Resource) -> bool {
        is_assignment(&resource.target)
            && !self.resources.values().any(|other| {
                !is_assignment(&other.target)
                    && other.principal() == resource.property("principalId").as_str()
            })
    }

    /// `GET …/permissions`: the permissions of the signed-in user.
    pub(crate) fn permissions(&self) -> Answer {
        let denied = if self.settings.may_assign_roles {
            json!([])
        } else {
            json!(["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"])
        };
        Answer::list(vec![
            json!({"actions": ["*"], "notActions": denied, "dataActions": [], "notDataActions": []}),
        ])
    }
}

fn is_assignment(target: &Target) -> bool {
    target.kind == KIND
}
