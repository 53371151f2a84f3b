//! The subscription and what was in it before the test.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::target::{SUBSCRIPTION, Target};
use crate::services::machine_learning::run_history_host;
use crate::wire::answer::Answer;

/// The group of everything that exists before a test.
pub(crate) const SHARED_GROUP: &str = "shared";
/// The Batch account in it.
pub(crate) const SHARED_BATCH: &str = "sharedbatch";
/// The size of the nodes that exist: services spell it in any case.
const SHARED_NODES: &str = "Standard_NC24ads_A100_v4";
/// The object id of the identity that may delete resources.
const REAPER_PRINCIPAL: &str = "99999999-0000-4000-8000-000000000001";

impl Cloud {
    /// Creates what users have before they deploy: a Machine Learning workspace with a cluster, a Batch account with a pool, a
    /// Container Apps environment, and an identity that may delete everything.
    pub(crate) fn seed(&mut self) {
        let region = self.settings.shared_region;
        let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{SHARED_GROUP}");
        let in_group = |path: &str| format!("{group}/providers/{path}");
        let role = "Microsoft.Authorization/roleAssignments/99999999-0000-4000-8000-000000000002";
        let contributor = "Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c";
        for (id, body) in [
            (group.clone(), json!({})),
            (
                in_group("Microsoft.MachineLearningServices/workspaces/workspace"),
                json!({"properties": {"discoveryUrl": format!("https://{}/discovery", run_history_host(region))}}),
            ),
            (
                in_group("Microsoft.MachineLearningServices/workspaces/workspace/computes/gpus"),
                json!({"properties": {"computeType": "AmlCompute", "computeLocation": region, "properties": {
                    "vmSize": SHARED_NODES.to_ascii_uppercase(), "vmPriority": "Dedicated",
                    "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT2M"},
                }}}),
            ),
            (in_group(&format!("Microsoft.Batch/batchAccounts/{SHARED_BATCH}")), json!({"properties": {}})),
            (
                in_group("Microsoft.App/managedEnvironments/environment"),
                json!({"properties": {"workloadProfiles": [
                    {"name": "Consumption", "workloadProfileType": "Consumption"},
                    {"name": "t4", "workloadProfileType": "Consumption-GPU-NC8as-T4"},
                ]}}),
            ),
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
        let account = in_group(&format!("Microsoft.Batch/batchAccounts/{SHARED_BATCH}")).to_ascii_lowercase();
        let pool = json!({"id": "always-on", "vmSize": SHARED_NODES.to_ascii_lowercase(), "targetDedicatedNodes": 2});
        self.seed_pool(&account, pool);
    }

    pub(crate) fn seed_resource(&mut self, id: &str, mut body: Value) {
        let target = Target::parse(id).unwrap();
        body["location"] = json!(self.settings.shared_region);
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
        "tenantId": crate::state::identity::TENANT, "displayName": "Stand-in", "state": "Enabled",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01", "quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off",
        },
        "authorizationSource": "RoleBased",
    })
}
