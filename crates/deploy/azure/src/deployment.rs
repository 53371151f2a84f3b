//! A deployment as all of its requests.

use cudock_facts::services::AzureService;
use std::time::Duration;

use cudock_base::Usd;
use cudock_facts::finding::Finding;
use serde::{Deserialize, Serialize};

use crate::call::Call;

/// The requests that create a deployment, read its state and delete it.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    pub name: String,
    pub run_id: String,
    pub service: AzureService,
    pub region: String,
    /// The steps in their order. Everything that makes the cloud delete it by itself comes before
    /// the first that is billed.
    pub steps: Vec<Step>,
    /// Deletes everything, in this order, whether or not it was created: 404 means done. Without secrets; the journal keeps
    /// it before the first step runs.
    pub cleanup: Vec<Step>,
    /// Requested features that the service does not support.
    pub losses: Vec<Finding>,
    pub price_per_hour: Usd,
    /// Finds the deployment again.
    pub identity: DeploymentIdentity,
}

/// The identity by which a deployment is observed after the command that created it has ended. The
/// journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentIdentity {
    pub subscription: String,
    pub run_id: String,
    #[serde(alias = "target")]
    pub service: AzureService,
    pub region: String,
    pub work: WorkShape,
    pub is_spot: bool,
    /// The Machine Learning workspace as `GROUP/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The Batch account as `GROUP/NAME`, if it was not created for this deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_account: Option<String>,
    /// The Batch pool, if it was not created for this deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The host of the existing account's or workspace's own API, according to that resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How long a node of the deployment's own cluster waits for the next job before it leaves. It is billed meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_idle: Option<Duration>,
}

/// The kind of work without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkShape {
    Serve { port: u16, is_public: bool },
    Job { tasks: u32 },
    MultiNode { nodes: u32 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique in the deployment: `group`, `reaper`, `pool`.
    pub id: String,
    pub phase: Phase,
    pub call: Call,
    /// The id of the resource that the call creates or deletes.
    pub resource: Option<String>,
    /// Whether money is spent from here on.
    pub is_billed: bool,
    pub wait: Wait,
    /// Give up after this time.
    #[serde(with = "seconds")]
    pub timeout: Duration,
}

impl Step {
    /// A step that is not billed and waits for the operation it starts.
    pub(crate) fn new(id: impl Into<String>, phase: Phase, call: Call) -> Self {
        let resource = call.path.split_once('?').map(|(id, _)| id.to_owned());
        Self {
            id: id.into(),
            phase,
            call,
            resource,
            is_billed: false,
            wait: Wait::Operation,
            timeout: Duration::from_secs(10 * 60),
        }
    }

    /// An action on an existing resource, whose response may come with the end of an operation.
    pub fn action(id: impl Into<String>, call: Call) -> Self {
        Self::new(id, Phase::Work, call)
    }

    #[must_use]
    pub(crate) fn billed(mut self) -> Self {
        self.is_billed = true;
        self
    }

    #[must_use]
    pub(crate) fn waiting(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    #[must_use]
    pub(crate) fn within_minutes(mut self, minutes: u64) -> Self {
        self.timeout = Duration::from_secs(minutes * 60);
        self
    }
}

/// How the end of a step is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// The response ends it.
    Response,
    /// The long-running operation that the response names ends it.
    Operation,
    /// 404 on a GET of the same path ends it.
    Gone,
}

/// The activity of a deployment. Each phase has a clock and a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Quota,
    Create,
    Pull,
    Start,
    Gpu,
    Ready,
    Work,
    Delete,
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}
