//! The causes behind the codes of Azure's errors, and their hints.

/// Why a service refused, in terms of what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The cores of a size family in a region.
    FamilyQuota,
    /// The cores of a region.
    RegionalQuota,
    /// The Spot cores of a region.
    SpotQuota,
    /// A limit of a service other than those of Compute.
    ServiceQuota,
    /// The size is not open to this subscription, or has no Spot capacity.
    SizeRestricted,
    Capacity,
    /// Capacity for these constraints together.
    Overconstrained,
    Throttled,
    /// Another operation runs; the same request succeeds later.
    Busy,
    NotRegistered,
    /// The token is not accepted.
    Unauthorized,
    /// The signed-in principal may not do this.
    Forbidden,
    Policy,
    Locked,
    SubscriptionUnusable,
    GroupDeleting,
    DeploymentLocations,
    Image,
    NotFound,
    Other,
}

/// Codes that mean one thing, whatever the message says; in lower case.
const CODES: &[(&str, Cause)] = &[
    ("accountcorequotareached", Cause::ServiceQuota),
    ("accountlowprioritycorequotareached", Cause::SpotQuota),
    ("accountvmseriescorequotareached", Cause::ServiceQuota),
    ("allocationfailed", Cause::Capacity),
    ("allocationtimedout", Cause::Capacity),
    ("anotheroperationinprogress", Cause::Busy),
    ("authorizationfailed", Cause::Forbidden),
    ("containergroupquotareached", Cause::ServiceQuota),
    ("containergrouptransitioning", Cause::Busy),
    ("deploymentquotaexceeded", Cause::DeploymentLocations),
    ("disabledsubscription", Cause::SubscriptionUnusable),
    ("expiredauthenticationtoken", Cause::Unauthorized),
    ("imagebuildfailure", Cause::Image),
    ("inaccessibleimage", Cause::Image),
    ("invalidauthenticationtoken", Cause::Unauthorized),
    ("invalidauthenticationtokentenant", Cause::Unauthorized),
    ("linkedauthorizationfailed", Cause::Forbidden),
    ("missingsubscriptionregistration", Cause::NotRegistered),
    // It is held for 180 s after a VM was not created.
    ("nicreservedforanothervm", Cause::Busy),
    ("outofquota", Cause::ServiceQuota),
    ("overconstrainedallocationrequest", Cause::Overconstrained),
    ("overconstrainedzonalallocationrequest", Cause::Overconstrained),
    // A new principal is not known everywhere at once.
    ("principalnotfound", Cause::Busy),
    ("readonlydisabledsubscription", Cause::SubscriptionUnusable),
    ("registryerrorresponse", Cause::Image),
    ("requestdisallowedbypolicy", Cause::Policy),
    ("resourcegroupbeingdeleted", Cause::GroupDeleting),
    ("retryableerrorduetoanotheroperation", Cause::Busy),
    ("scopelocked", Cause::Locked),
    ("skunotavailable", Cause::SizeRestricted),
    ("subscriptionnotfound", Cause::SubscriptionUnusable),
    ("subscriptionrequeststhrottled", Cause::Throttled),
    ("toomanyrequests", Cause::Throttled),
    ("zonalallocationfailed", Cause::Capacity),
];

impl Cause {
    /// The cause according to a code and a message together: `OperationNotAllowed` alone means
    /// nothing.
    pub(super) fn of(code: &str, message: &str) -> Self {
        let code = code.to_ascii_lowercase();
        match code.as_str() {
            "operationnotallowed" | "quotaexceeded" => {
                // In this order, as Azure's Karpenter provider does.
                if message.contains("LowPriorityCores") {
                    Self::SpotQuota
                } else if message.contains("Family Cores quota") {
                    Self::FamilyQuota
                } else if message.contains("Total Regional Cores quota") {
                    Self::RegionalQuota
                } else if message.contains("too many requests") {
                    Self::Throttled
                } else if code == "quotaexceeded" {
                    Self::ServiceQuota
                } else {
                    Self::Other
                }
            }
            "serviceunavailable" if message.contains("not available in the location") => Self::Capacity,
            "serviceunavailable" if message.contains("quota") => Self::ServiceQuota,
            code => CODES.iter().find(|(known, _)| *known == code).map_or(Self::Other, |(_, cause)| *cause),
        }
    }

    /// The cause according to the status, if the code does not show it.
    pub(super) fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 | 410 => Self::NotFound,
            429 => Self::Throttled,
            _ => Self::Other,
        }
    }

    /// Whether another region, size or priority may succeed where this one failed.
    pub fn is_placement(self) -> bool {
        matches!(
            self,
            Self::FamilyQuota
                | Self::RegionalQuota
                | Self::SpotQuota
                | Self::ServiceQuota
                | Self::SizeRestricted
                | Self::Capacity
                | Self::Overconstrained
        )
    }

    pub(super) fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::FamilyQuota | Self::RegionalQuota => {
                "choose another size or region, or request more quota: `az quota update`"
            }
            Self::SpotQuota => "choose another region, or capacity that is not Spot",
            Self::ServiceQuota => "delete what is not needed, choose another region, or request more quota",
            Self::SizeRestricted => {
                "choose another size or region; for Spot it means that capacity is exhausted"
            }
            Self::Capacity => "choose another region, zone or size, or try again later",
            Self::Overconstrained => "drop the zone, or choose another size",
            Self::Throttled => "try again later; other programs of this subscription count, too",
            Self::Busy => "another operation is running: try again in a minute",
            Self::NotRegistered => "register the provider: `az provider register --wait --namespace NAME`",
            Self::Unauthorized => "sign in again: `az login`, in the tenant of the subscription",
            Self::Forbidden => {
                "ask an owner for this role; a role that was just assigned needs up to 10 minutes"
            }
            Self::Policy => "a policy of the subscription forbids this: ask its administrator",
            Self::Locked => "remove the lock (`az lock list`), then re-run the same command",
            Self::SubscriptionUnusable => "check the subscription: `az account list --all -o table`",
            Self::GroupDeleting => "wait until the resource group is deleted, then try again",
            Self::DeploymentLocations => "delete old deployments: `az deployment sub list`",
            Self::Image => "check the image's name and tag, and that its registry may be read",
            Self::NotFound | Self::Other => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_and_its_message_have_one_meaning() {
        for (code, message, cause) in [
            ("QuotaExceeded", "exceeding approved Total Regional Cores quota", Cause::RegionalQuota),
            ("OperationNotAllowed", "approved standardNCADSA100v4Family Cores quota", Cause::FamilyQuota),
            ("OperationNotAllowed", "exceeding approved LowPriorityCores quota", Cause::SpotQuota),
            ("OperationNotAllowed", "too many requests have been received", Cause::Throttled),
            ("OperationNotAllowed", "not supported on a regular VM", Cause::Other),
            ("QuotaExceeded", "", Cause::ServiceQuota),
            ("SkuNotAvailable", "", Cause::SizeRestricted),
            ("ZonalAllocationFailed", "", Cause::Capacity),
            ("OverconstrainedAllocationRequest", "", Cause::Overconstrained),
            ("ContainerGroupTransitioning", "", Cause::Busy),
            ("scopelocked", "", Cause::Locked),
            (
                "ServiceUnavailable",
                "The requested resource is not available in the location",
                Cause::Capacity,
            ),
            ("ServiceUnavailable", "try again", Cause::Other),
            ("NewCode", "", Cause::Other),
        ] {
            assert_eq!(Cause::of(code, message), cause, "{code}: {message}");
        }
        assert!(CODES.is_sorted_by_key(|(code, _)| *code));
    }
}
