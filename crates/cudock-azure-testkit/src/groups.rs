//! The subscription and what was in it before the test.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cloud::Cloud;
use crate::target::{SUBSCRIPTION, Target};

/// The group of everything that exists before a test.
pub(crate) const SHARED_GROUP: &str = "shared";
/// The object id of the identity that may delete resources.
const REAPER_PRINCIPAL: &str = "99999999-0000-4000-8000-000000000001";

impl Cloud {
    /// Creates what users have before they deploy: a Machine Learning workspace, a Batch account, a Container Apps
    /// environment, and an identity that may delete everything.
    pub(crate) fn seed(&mut self) {
        let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{SHARED_GROUP}");
        let in_group = |path: &str| format!("{group}/providers/{path}");
        let role = "Microsoft.Authorization/roleAssignments/99999999-0000-4000-8000-000000000002";
        let contributor = "Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c";
        for (id, body) in [
            (group.clone(), json!({})),
            (
                in_group("Microsoft.MachineLearningServices/workspaces/workspace"),
                json!({"properties": {"discoveryUrl": format!("{}/discovery", self.base)}}),
            ),
            (
                in_group("Microsoft.Batch/batchAccounts/sharedbatch"),
                json!({"properties": {"accountEndpoint": "sharedbatch.eastus.batch.azure.com"}}),
            ),
            (in_group("Microsoft.App/managedEnvironments/environment"), json!({})),
            (
                in_group("Microsoft.ManagedIdentity/userAssignedIdentities/reaper"),
                json!({"properties": {"principalId": REAPER_PRINCIPAL}}),
            ),
            (
                format!("/subscriptions/{SUBSCRIPTION}/providers/{role}"),
                json!({"properties": {
                    "principalId": REAPER_PRINCIPAL,
                    "roleDefinitionId": format!("/subscriptions/{SUBSCRIPTION}/providers/{contributor}"),
                }}),
            ),
        ] {
            self.seed_resource(&id, body);
        }
    }

    pub(crate) fn seed_resource(&mut self, id: &str, mut body: Value) {
        let target = Target::parse(id).unwrap();
        body["location"] = json!("eastus");
        self.store(&target, &body);
        if target.kind == "microsoft.batch/batchaccounts" {
            self.batch_account_created(&target);
        }
        let now = self.now;
        self.update(&target.key, |resource| {
            resource.set_state("Succeeded");
            resource.is_seeded = true;
            resource.visible_from = now;
            resource.started = Some(now);
        });
    }

    /// `PATCH` of a group: its tags.
    pub(crate) fn patch(&mut self, target: &Target, body: &Value) -> Answer {
        if self.find(&target.key).is_none_or(|resource| resource.is_deleting) {
            return Self::not_found(target);
        }
        if let Some(tags) = body["tags"].as_object() {
            let tags = json!(tags);
            self.update(&target.key, |resource| resource.body["tags"] = tags);
        }
        Answer::json(200, self.render_key(&target.key))
    }
}

/// The subscription.
pub(crate) fn subscription() -> Value {
    json!({
        "id": format!("/subscriptions/{SUBSCRIPTION}"), "subscriptionId": SUBSCRIPTION,
        "tenantId": crate::sign_in::TENANT, "displayName": "Stand-in", "state": "Enabled",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01", "quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off",
        },
        "authorizationSource": "RoleBased",
    })
}
