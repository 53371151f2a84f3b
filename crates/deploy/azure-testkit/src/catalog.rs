//! The entitlements of a subscription: providers, regions, sizes, quota, permissions.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::groups;
use crate::resources::target::{SUBSCRIPTION, Target};
use crate::wire::answer::Answer;

/// Sizes with vCPUs, GPUs and family.
const SIZES: [(&str, u64, u64, &str); 10] = [
    ("Standard_NC4as_T4_v3", 4, 1, "Standard NCASv3_T4 Family"),
    ("Standard_NC8as_T4_v3", 8, 1, "Standard NCASv3_T4 Family"),
    ("Standard_NC16as_T4_v3", 16, 1, "Standard NCASv3_T4 Family"),
    ("Standard_NC24ads_A100_v4", 24, 1, "StandardNCADSA100v4Family"),
    ("Standard_NC40ads_H100_v5", 40, 1, "StandardNCadsH100v5Family"),
    ("Standard_NV36ads_A10_v5", 36, 1, "StandardNVADSA10v5Family"),
    ("Standard_ND96isr_H100_v5", 96, 8, "standardNDSH100v5Family"),
    ("Standard_D2s_v3", 2, 0, "standardDSv3Family"),
    ("Standard_D4s_v5", 4, 0, "standardDSv5Family"),
    ("Standard_DS1_v2", 1, 0, "standardDSv2Family"),
];
const NAMESPACES: [&str; 13] = [
    "Microsoft.App",
    "Microsoft.Authorization",
    "Microsoft.Batch",
    "Microsoft.Compute",
    "Microsoft.ContainerInstance",
    "Microsoft.ContainerRegistry",
    "Microsoft.Logic",
    "Microsoft.MachineLearningServices",
    "Microsoft.ManagedIdentity",
    "Microsoft.Network",
    "Microsoft.OperationalInsights",
    "Microsoft.Quota",
    "Microsoft.Storage",
];
pub(crate) const REGIONS: [&str; 4] = ["eastus", "westeurope", "westus3", "swedencentral"];

/// The cores and the family of a size. Sizes that are not listed have the first number in their name as cores.
pub(crate) fn size(name: &str) -> Option<(u64, &'static str)> {
    if let Some((_, cores, _, family)) = SIZES.iter().find(|(size, ..)| size.eq_ignore_ascii_case(name)) {
        return Some((*cores, family));
    }
    let rest = name.to_ascii_lowercase();
    let digits: String = rest
        .strip_prefix("standard_")?
        .chars()
        .skip_while(|character| !character.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    Some((digits.parse().ok()?, "other"))
}

pub(crate) fn families() -> Vec<&'static str> {
    let mut families: Vec<&str> = SIZES.iter().map(|(.., family)| *family).collect();
    families.dedup();
    families
}

impl Cloud {
    /// Requests that read what the subscription may use. None if it is another request.
    pub(crate) fn catalog(
        &mut self,
        method: &str,
        target: &Target,
        body: &Value,
        query: &str,
    ) -> Option<Answer> {
        let kind = target.kind.as_str();
        Some(match (method, kind, target.tail.as_deref()) {
            ("GET", "subscriptions", None) => Answer::json(200, groups::subscription()),
            ("GET", "subscriptions", Some("locations")) => Answer::list(REGIONS.iter().map(|name| json!({
                "id": format!("/subscriptions/{SUBSCRIPTION}/locations/{name}"), "name": name, "displayName": name,
                "metadata": {"regionType": "Physical"},
            })).collect()),
            ("GET", "subscriptions", Some("providers")) => {
                Answer::list(NAMESPACES.iter().map(|name| self.provider(name)).collect())
            }
            ("GET", namespace, None) if !namespace.contains('/') && namespace.starts_with("microsoft.") => {
                Answer::json(200, self.provider(&target.type_name))
            }
            ("POST", namespace, Some("register")) if !namespace.contains('/') => {
                self.settings.unregistered.retain(|name| !name.eq_ignore_ascii_case(namespace));
                Answer::json(200, self.provider(&target.type_name))
            }
            ("GET", "microsoft.authorization", Some("permissions")) => self.permissions(),
            ("GET", "microsoft.compute", Some("skus")) => Answer::list(skus(query)),
            ("GET", "microsoft.compute/locations", Some("usages")) => Answer::list(self.usages()),
            ("GET", "microsoft.containerinstance/locations", Some("usages")) => Answer::list(vec![json!({
                "unit": "Count", "currentValue": 0, "limit": 100,
                "name": {"value": "ContainerGroups", "localizedValue": "Container Groups"},
            })]),
            ("GET", "microsoft.app/locations", Some("usages")) => Answer::list(vec![json!({
                "name": {"value": "ManagedEnvironmentCount", "localizedValue": "Managed Environment Count"},
                "usage": 0, "currentValue": 0, "limit": 50,
            })]),
            ("GET", "microsoft.app/locations", Some("availablemanagedenvironmentsworkloadprofiletypes")) => {
                Answer::list(vec![json!({
                    "name": "Consumption-GPU-NC8as-T4",
                    "properties": {"category": "GPU-Consumption", "cores": 8, "memoryGiB": 56, "gpus": 1},
                })])
            }
            ("GET", "microsoft.app/managedenvironments", Some("usages")) => Answer::list(
                ["ManagedEnvironmentConsumptionT4Gpus", "ManagedEnvironmentConsumptionNCA100Gpus"]
                    .iter()
                    .map(|name| json!({"name": {"value": name, "localizedValue": name}, "usage": 0, "currentValue": 0, "limit": 5}))
                    .collect(),
            ),
            ("GET", "microsoft.batch/locations", Some("quotas")) => Answer::json(200, json!({"accountQuota": 3})),
            ("GET", "microsoft.batch/locations", Some("virtualmachineskus")) => {
                Answer::list(SIZES.iter().map(|(name, _, _, family)| json!({"name": name, "familyName": family})).collect())
            }
            ("GET", "microsoft.machinelearningservices/locations", Some("usages")) => Answer::list(self.ml_usages()),
            ("GET", "microsoft.machinelearningservices/locations", Some("vmsizes")) => Answer::list(
                SIZES
                    .iter()
                    .map(|(name, cores, gpus, family)| json!({"name": name, "family": family, "vCPUs": cores, "gpus": gpus}))
                    .collect(),
            ),
            ("GET", "microsoft.insights/eventtypes", _) => {
                let filter = query.split('&').find_map(|field| field.strip_prefix("$filter="));
                self.activity_log(&filter.unwrap_or_default().replace('+', " "))
            }
            ("POST", "microsoft.resourcegraph", Some("resources")) => self.resource_graph(body),
            ("POST", "microsoft.costmanagement", Some("query")) => self.cost(target),
            _ => return None,
        })
    }

    fn provider(&self, namespace: &str) -> Value {
        let is_missing = self.settings.unregistered.iter().any(|name| name.eq_ignore_ascii_case(namespace));
        let state = if is_missing { "NotRegistered" } else { "Registered" };
        json!({
            "id": format!("/subscriptions/{SUBSCRIPTION}/providers/{namespace}"), "namespace": namespace,
            "resourceTypes": [], "registrationState": state, "registrationPolicy": "RegistrationRequired",
        })
    }

    /// Used cores and limits, as Compute lists them.
    pub(crate) fn usages(&self) -> Vec<Value> {
        let names = ["cores", "lowPriorityCores"].into_iter().chain(families());
        names
            .map(|name| {
                json!({
                    "unit": "Count", "currentValue": self.used_cores(name), "limit": self.settings.quota_of(name),
                    "name": {"value": name, "localizedValue": name},
                })
            })
            .collect()
    }

    fn ml_usages(&self) -> Vec<Value> {
        let row = |kind: &str, name: &str, limit: u64| {
            json!({
                "id": format!("/subscriptions/{SUBSCRIPTION}/usages"),
                "type": format!("Microsoft.MachineLearningServices/{kind}/usages"),
                "unit": "Count", "currentValue": 0, "limit": limit,
                "name": {"value": name, "localizedValue": name},
            })
        };
        let of_families = families().into_iter().map(|family| {
            row("vmFamily", &format!("{family} Cluster Dedicated vCPUs"), self.settings.quota_of(family))
        });
        let dedicated =
            row("totalCores", "Total Cluster Dedicated Regional vCPUs", self.settings.quota_of("cores"));
        let spot = row(
            "lowPriorityCores",
            "Total Cluster LowPriority Regional vCPUs",
            self.settings.quota_of("lowPriorityCores"),
        );
        of_families.chain([dedicated, spot]).collect()
    }
}

fn skus(query: &str) -> Vec<Value> {
    let wanted =
        query.split_once("location eq '").and_then(|(_, rest)| rest.split_once('\'')).map(|(name, _)| name);
    let regions =
        REGIONS.iter().filter(|region| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(region)));
    regions
        .flat_map(|region| {
            SIZES.iter().map(move |(name, cores, gpus, family)| {
                let capability = |name: &str, value: String| json!({"name": name, "value": value});
                json!({
                    "resourceType": "virtualMachines", "name": name, "tier": "Standard", "family": family,
                    "locations": [region], "locationInfo": [{"location": region, "zones": ["1", "2", "3"], "zoneDetails": []}],
                    "capabilities": [
                        capability("vCPUs", cores.to_string()), capability("GPUs", gpus.to_string()),
                        capability("LowPriorityCapable", "True".to_owned()),
                        capability("HyperVGenerations", "V1,V2".to_owned()),
                    ],
                    "restrictions": [],
                })
            })
        })
        .collect()
}
