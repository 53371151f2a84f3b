//! The rights of the signed-in account.

use cudock_facts::services::AzureService;
use serde::Deserialize;
use serde_json::Value;

use crate::services::backend::lookup::backend;

/// The right to let something else delete the deployment.
pub(super) const ASSIGN_ROLES: &str = "Microsoft.Authorization/roleAssignments/write";

/// Roles of an account, each as what it allows and what it excepts.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Rights {
    #[serde(default)]
    value: Vec<Permission>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission {
    #[serde(default)]
    actions: Vec<String>,
    #[serde(default)]
    not_actions: Vec<String>,
}

impl Rights {
    pub(super) fn read(body: &Value) -> Option<Self> {
        Self::deserialize(body).ok()
    }

    /// Whether one of the roles allows an action. An exception holds for its own role only.
    pub(super) fn allows(&self, action: &str) -> bool {
        let among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, action));
        self.value.iter().any(|role| among(&role.actions) && !among(&role.not_actions))
    }
}

/// The actions of a deployment, besides assigning roles.
pub(super) fn actions_of(service: AzureService) -> Vec<&'static str> {
    let common = [
        "Microsoft.Resources/subscriptions/resourceGroups/write",
        "Microsoft.Resources/subscriptions/resourceGroups/delete",
        "Microsoft.Resources/deployments/write",
        "Microsoft.Logic/workflows/write",
    ];
    common.iter().chain(backend(service).requirements().actions).copied().collect()
}

/// Whether an action matches a pattern, in which `*` stands for any text. Case does not matter. Each part of the pattern
/// is searched once from the left, which is linear and right because `*` takes any text.
fn matches(pattern: &str, action: &str) -> bool {
    let (pattern, action) = (pattern.to_ascii_lowercase(), action.to_ascii_lowercase());
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == action };
    let Some(mut left) = action.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = left.strip_suffix(last) else { return false };
    left = inner;
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, action, expected) in [
            ("*", "Microsoft.Compute/virtualMachines/write", true),
            ("*/read", "Microsoft.Compute/virtualMachines/read", true),
            ("*/read", "Microsoft.Compute/virtualMachines/write", false),
            ("microsoft.compute/*", "Microsoft.Compute/virtualMachines/write", true),
            ("Microsoft.Authorization/*/Write", "Microsoft.Authorization/roleAssignments/write", true),
            ("Microsoft.Authorization/*/Write", "Microsoft.Authorization/write", false),
            ("Microsoft.*/virtual*/write", "Microsoft.Compute/virtualMachines/write", true),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("Microsoft.Compute/virtualMachines/write", "Microsoft.Compute/virtualMachines/write", true),
            ("Microsoft.Compute/virtualMachines", "Microsoft.Compute/virtualMachines/write", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, action), expected, "{pattern} {action}");
        }
    }

    #[test]
    fn an_exception_of_one_role_does_not_limit_another() {
        let contributor =
            json!({"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Write"], "condition": null});
        let administrator =
            json!({"actions": ["Microsoft.Authorization/roleAssignments/write"], "notActions": []});
        let rights = |roles: &[&Value]| Rights::read(&json!({ "value": roles })).unwrap();
        assert!(!rights(&[&contributor]).allows(ASSIGN_ROLES));
        assert!(rights(&[&contributor, &administrator]).allows(ASSIGN_ROLES));
        assert!(!rights(&[]).allows(ASSIGN_ROLES));
        assert!(!rights(&[&administrator]).allows("Microsoft.Compute/virtualMachines/write"));
    }

    proptest! {
        #[test]
        fn a_pattern_made_from_an_action_matches_it(action in "[a-z./]{1,30}", cuts in prop::collection::vec(0_usize..30, 0..4)) {
            let mut pattern = action.clone();
            for cut in cuts {
                let at = cut.min(pattern.len());
                pattern.insert(at, '*');
            }
            prop_assert!(matches(&pattern, &action));
        }
    }
}
