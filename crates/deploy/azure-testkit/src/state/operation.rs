//! Long-running operations, and what a poll returns.

use serde_json::{Value, json};

use crate::time::{Seconds, utc, with_offset, without_zone};

/// How far an operation is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Progress {
    Running,
    Succeeded,
    /// Failed, with the error that the service reports.
    Failed(Value),
    Canceled,
}

/// The form of what a poll returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationStyle {
    Deployment,
    Compute,
    Network,
    ContainerGroup,
    ContainerApps,
    MlCompute,
    MlEndpoint,
    /// 202 until it is done, then the resource, or nothing where it was deleted.
    Location,
}

#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) path: String,
    pub(crate) style: OperationStyle,
    /// The key of the resource that it changes.
    pub(crate) resource: String,
    pub(crate) started: Seconds,
    pub(crate) ended: Option<Seconds>,
    pub(crate) progress: Progress,
    /// The result that it returns in place of the resource.
    pub(crate) result: Option<Value>,
    /// Signatures that were handed out.
    pub(crate) signatures: Vec<String>,
}

impl Operation {
    pub(crate) fn document(&self, events: &Value, resource: &str) -> Value {
        let status = match (&self.progress, self.style) {
            (Progress::Running, OperationStyle::Deployment) => "Running",
            (Progress::Running, OperationStyle::ContainerGroup) => "Pending",
            (Progress::Running, _) => "InProgress",
            (Progress::Succeeded, _) => "Succeeded",
            (Progress::Failed(_), _) => "Failed",
            (Progress::Canceled, _) => "Canceled",
        };
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let percent = if self.progress == Progress::Running { 0.0 } else { 100.0 };
        let mut document = match self.style {
            OperationStyle::Deployment | OperationStyle::Network | OperationStyle::Location => {
                json!({"status": status})
            }
            OperationStyle::Compute => {
                json!({"startTime": with_offset(self.started), "status": status, "name": name})
            }
            OperationStyle::ContainerGroup => json!({
                "id": resource, "status": status, "startTime": utc(self.started), "properties": {"events": events},
            }),
            OperationStyle::ContainerApps => json!({
                "id": self.path, "name": name, "status": status, "startTime": without_zone(self.started),
            }),
            OperationStyle::MlCompute => json!({"status": status, "percentComplete": percent}),
            OperationStyle::MlEndpoint => json!({
                "id": self.path, "name": name, "startTime": utc(self.started), "percentComplete": percent, "status": status,
            }),
        };
        if let Some(ended) = self.ended {
            match self.style {
                OperationStyle::Compute => document["endTime"] = json!(with_offset(ended)),
                OperationStyle::MlEndpoint => document["endTime"] = json!(utc(ended)),
                _ => {}
            }
        }
        if let Progress::Failed(error) = &self.progress {
            document["error"] = error.clone();
        }
        document
    }
}
