//! The codes of findings. A code is never given another meaning.

cudock_facts::codes! {
    NOT_SIGNED_IN = "CD0850";
    /// The subscription is disabled, past due, or has a spending limit.
    SUBSCRIPTION = "CD0851";
    PROVIDER_NOT_REGISTERED = "CD0852";
    MISSING_RIGHTS = "CD0853";
    /// Nothing may be given the right to delete the deployment.
    NO_SELF_DESTRUCTION = "CD0854";
    LOCKED = "CD0855";
    NOT_IN_REGION = "CD0856";
    /// The region has the size, and the subscription does not get it.
    SIZE_RESTRICTED = "CD0857";
    ZONE_RESTRICTED = "CD0858";
    FAMILY_QUOTA = "CD0859";
    REGIONAL_QUOTA = "CD0860";
    SPOT_QUOTA = "CD0861";
    SERVICE_QUOTA = "CD0862";
    SIZE_RETIRES = "CD0863";
    PULL_DENIED = "CD0864";
    IMAGE_NOT_FOUND = "CD0865";
    SPOT_NOT_OFFERED = "CD0866";
    /// A query got no response.
    NO_RESPONSE = "CD0867";
    /// A quota that can be read only after its resource exists.
    QUOTA_UNKNOWN = "CD0868";
    RESOURCE_NOT_FOUND = "CD0869";
    PRICE_UNKNOWN = "CD0870";
}
