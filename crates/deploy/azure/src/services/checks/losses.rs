//! Features that several services do not support.

use cudock_facts::finding::{Finding, Severity};

use crate::codes;
use crate::spec::{DeploymentSpec, SpecVariable};

pub(crate) fn not_reachable() -> Finding {
    Finding::new(
        codes::NOT_REACHABLE,
        Severity::Warning,
        "the service has no public address, and cudock creates no network that others are in",
        "deploy it with --public, or into a network of your own by `cudock export`",
    )
}

/// The reaper may not delete role assignments, and this one is not in its groups.
pub(crate) fn rights_remain(scope: &str) -> Finding {
    Finding::new(
        codes::RIGHTS_REMAIN,
        Severity::Note,
        format!("if only the cloud deletes this deployment, the reaper's role assignment on {scope} remains"),
        "delete it with `cudock down` or `cudock gc`",
    )
}

/// A finding that variables are a visible part of the resource.
pub(crate) fn secrets_readable(spec: &DeploymentSpec, who: &str) -> Option<Finding> {
    let secret = |variable: &&SpecVariable| matches!(variable, SpecVariable::Secret { .. });
    spec.variables.iter().find(secret).map(|variable| {
        Finding::new(
            codes::SECRETS_READABLE,
            Severity::Warning,
            format!("{who} can read secret variables such as {}", variable.name()),
            "give the program an identity and let it read the secret from a key vault",
        )
    })
}
