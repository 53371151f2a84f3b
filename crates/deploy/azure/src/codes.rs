//! The codes of features that a service does not support. A code is never given another meaning.

cudock_facts::codes! {
    /// An identity of the service pulls the image, not the one given.
    PULL_IDENTITY = "CD0837";
    /// Parts of a container group that are not deployed.
    GROUP_PARTS = "CD0838";
    /// A sweep that Machine Learning accepts and that makes no sense.
    SENSELESS_SWEEP = "CD0839";
    /// The log is lost with the machine.
    LOGS_LOST = "CD0840";
    /// Everybody who may read the resource can read the secret variables.
    SECRETS_READABLE = "CD0841";
    /// Nothing outside of Azure's network reaches it.
    NOT_REACHABLE = "CD0844";
    /// A time limit, a number of retries or of items at a time is not kept by the service.
    LIMIT_NOT_KEPT = "CD0845";
    /// An endpoint responds on one path, and only with a key.
    ENDPOINT_ROUTES = "CD0846";
    /// Spot in Batch depends on how the account was created.
    SPOT_ACCOUNT = "CD0847";
    /// A role assignment outside of the deployment's own groups.
    RIGHTS_REMAIN = "CD0848";
    /// The existing environment must have the workload profile.
    PROFILE_REQUIRED = "CD0849";
    /// The service deals with evictions by itself, and does not report them.
    EVICTIONS_UNSEEN = "CD0871";
    /// The region of an existing resource was not queried.
    REGION_ASSUMED = "CD0872";
}
