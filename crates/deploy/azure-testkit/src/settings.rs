//! How this cloud behaves.

use std::collections::BTreeMap;

/// How a [`StandIn`](crate::StandIn) behaves. Times are in seconds of its own clock.
#[derive(Debug, Clone)]
pub struct CloudSettings {
    /// Determines names, signatures and the delays that vary.
    pub seed: u64,
    /// How much time passes from one request to the next.
    pub seconds_per_request: u64,
    /// Up to this long after a PUT, GET of the resource may still be 404.
    pub consistency_lag: u64,
    /// How far Resource Graph is behind.
    pub graph_lag: u64,
    /// How far the activity log is behind.
    pub activity_lag: u64,
    /// A role assignment takes effect after up to this long.
    pub role_delay: u64,
    /// A token is valid for this long.
    pub token_lifetime: u64,
    /// How long a job or task runs.
    pub job_seconds: u64,
    /// The exit code of a job or task.
    pub job_exit_code: i32,
    /// Spot capacity is taken away after it has run for this long.
    pub evict_after: Option<u64>,
    /// The region of the workspace, the account and the environment that exist before a test.
    pub shared_region: &'static str,
    /// Whether the signed-in user may assign roles: Owner, or only Contributor.
    pub may_assign_roles: bool,
    /// The quota of cores: `cores`, `lowPriorityCores`, or a family. 1,000 for others.
    pub quota: BTreeMap<String, u64>,
    /// Namespaces of providers that are not registered.
    pub unregistered: Vec<String>,
    /// Resource types, in lower case, whose creation ends as `Failed`, with the code and message of the error.
    pub failing: BTreeMap<String, (String, String)>,
    /// How often the deletion of a group fails at its end before it succeeds.
    pub failing_group_deletions: u32,
    /// Whether every object in every response has fields of a newer version.
    pub has_newer_fields: bool,
}

impl Default for CloudSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            seconds_per_request: 5,
            consistency_lag: 10,
            graph_lag: 60,
            activity_lag: 0,
            role_delay: 600,
            token_lifetime: 86_400,
            job_seconds: 120,
            job_exit_code: 0,
            evict_after: None,
            shared_region: "eastus",
            may_assign_roles: true,
            quota: BTreeMap::new(),
            unregistered: Vec::new(),
            failing: BTreeMap::new(),
            failing_group_deletions: 0,
            has_newer_fields: false,
        }
    }
}

impl CloudSettings {
    /// The quota of cores with this name, without regard to case and blanks.
    pub(crate) fn quota_of(&self, name: &str) -> u64 {
        let fold = |name: &str| name.replace(' ', "").to_ascii_lowercase();
        let listed = self.quota.iter().find(|(listed, _)| fold(listed) == fold(name));
        listed.map_or(1000, |(_, limit)| *limit)
    }
}
