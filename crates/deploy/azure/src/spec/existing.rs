//! Resources that exist before a deployment and stay after it.

use cudock_facts::finding::Finding;

/// Resources that exist and are not deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistingResources {
    /// The Machine Learning workspace as `GROUP/NAME`; required for that service.
    pub workspace: Option<String>,
    /// A Batch account as `GROUP/NAME`; created if absent.
    pub batch_account: Option<String>,
    /// A cluster in the workspace, for jobs; serverless compute or an own cluster if absent.
    pub cluster: Option<String>,
    /// A pool in the Batch account; created with the job if absent.
    pub pool: Option<String>,
    /// A Container Apps environment as `GROUP/NAME`; created if absent.
    pub container_apps_environment: Option<String>,
    /// An identity that may delete resources, by its resource id, where the user may not assign roles.
    pub reaper_identity: Option<String>,
    /// Their details, once Azure was queried about them.
    pub details: ExistingDetails,
}

/// The details of a deployment's account, workspace or environment in Azure, and of the machines in
/// it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistingDetails {
    /// Its region; none if that was not queried.
    pub region: Option<String>,
    /// The host of its own API, where it has one.
    pub endpoint: Option<String>,
    /// The sizes or GPU profiles of the machines that exist in it; none if it gets new ones.
    pub sizes: Option<Vec<String>>,
    /// Workload profiles of a Container Apps environment.
    pub profiles: Option<Vec<ProfileDetails>>,
    /// A finding about the resource that does not exist.
    pub missing: Option<Finding>,
}

/// A workload profile of a Container Apps environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileDetails {
    /// The name by which apps refer to it.
    pub name: String,
    /// The type of the profile, such as `Consumption-GPU-NC8as-T4`.
    pub kind: String,
}
