//! The interface of a service. Whatever differs between services is behind it, in the directory of the service.

pub(crate) mod lookup;
pub(crate) mod translation;

use std::time::Duration;

use cudock_base::Secret;
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::{DeploymentIdentity, Phase};
use crate::preflight::judge::context::CandidateContext;
use crate::preflight::query::Query;
use crate::preflight::report::PreflightRow;
use crate::preflight::request::PreflightRequest;
use crate::services::attach::exec::ExecMethod;
use crate::services::attach::logs::LogPart;
use crate::services::attach::terminal::{Terminal, TerminalSize};
use crate::services::backend::translation::Translation;
use crate::services::error::TranslationError;
use crate::services::existing::ExistingKind;
use crate::spec::{BlobContainer, DeploymentSpec, ExistingResources};
use crate::status::{DeploymentState, Status};

/// A service, as deployments use it: its requests, and how its responses are read. Pure, like everything in this module.
///
/// The defaults are those of a service that can do nothing but be named.
pub(crate) trait Backend: Sync {
    fn service(&self) -> AzureService;

    /// The requirements that preflight checks.
    fn requirements(&self) -> &'static Requirements;

    /// The requests that create a workload, except those that every service has.
    fn translate<'s>(
        &self,
        _facts: &Facts,
        _spec: &'s DeploymentSpec,
    ) -> Result<Translation<'s>, TranslationError> {
        let message = format!("cudock does not deploy to {}", self.service().title());
        Err(TranslationError::new(message).hint("choose another service with --on"))
    }

    /// Adds the names of existing resources by which the deployment is found again.
    fn identify(&self, _existing: &ExistingResources, _identity: &mut DeploymentIdentity) {}

    /// How long idle nodes of the deployment's own stay; none if it has no nodes of its own.
    fn node_idle(&self, _spec: &DeploymentSpec) -> Option<Duration> {
        None
    }

    /// The means that end a workload whose GPUs are idle, or why there is none.
    fn idle_end(&self, _spec: &DeploymentSpec) -> Result<IdleEnd, &'static str> {
        Err("this service ends nothing")
    }

    /// How a directory of the container outlives it, or why it cannot.
    fn keeps_directory(&self, _spec: &DeploymentSpec) -> Result<Keeping, &'static str> {
        Err("this service keeps no directory")
    }

    /// Whether that directory is a blob container that nodes mount.
    fn mounts_directory(&self) -> bool {
        false
    }

    /// Whether it uploads files when a task ends.
    fn uploads_outputs(&self) -> bool {
        false
    }

    /// The requests whose responses contain the state.
    fn status_calls(&self, _identity: &DeploymentIdentity) -> Vec<Call> {
        Vec::new()
    }

    /// More of them, whose paths are in the responses to the first.
    fn follow_up_calls(&self, _identity: &DeploymentIdentity, _responses: &[Option<Value>]) -> Vec<Call> {
        Vec::new()
    }

    fn status(&self, _identity: &DeploymentIdentity, _responses: &[Option<Value>]) -> Status {
        Status::new(DeploymentState::Gone, Phase::Delete)
    }

    /// The request that stops the work but keeps it, if the time of its end can be read only from what is left.
    fn ending_call(&self, _identity: &DeploymentIdentity) -> Option<Call> {
        None
    }

    /// Whether the end of a job may be seen before that of its last task.
    fn ends_before_its_tasks(&self) -> bool {
        false
    }

    /// The events in Azure's activity log that begin and end billing.
    fn billing(&self, _identity: &DeploymentIdentity) -> Billing {
        Billing::default()
    }

    /// The requests whose responses hold the log, or the place of it.
    fn log_calls(&self, _identity: &DeploymentIdentity) -> Vec<Call> {
        Vec::new()
    }

    /// More of them, whose paths are in the responses to the first.
    fn log_follow_up_calls(&self, _identity: &DeploymentIdentity, _responses: &[Option<Value>]) -> Vec<Call> {
        Vec::new()
    }

    /// The URLs of logs that outlive the work, one for each of [`Self::log_calls`].
    fn kept_logs(&self, _identity: &DeploymentIdentity, _storage: &BlobContainer) -> Vec<Secret> {
        Vec::new()
    }

    fn log_parts(&self, _identity: &DeploymentIdentity, _responses: &[Option<Value>]) -> Vec<LogPart> {
        Vec::new()
    }

    /// How a command is run next to the workload, or why it cannot.
    fn exec_method(
        &self,
        _identity: &DeploymentIdentity,
        _command: &[String],
    ) -> Result<ExecMethod, &'static str> {
        Err("this service does not run commands beside a workload")
    }

    /// The requests that start a program on a terminal, or find out where one can be started.
    fn terminal_calls(
        &self,
        _identity: &DeploymentIdentity,
        _program: &str,
        _size: TerminalSize,
    ) -> Vec<Call> {
        Vec::new()
    }

    fn terminal(&self, _program: &str, _responses: &[Option<Value>]) -> Option<Terminal> {
        None
    }

    /// The kind of resource that it can use in place of one of its own.
    fn existing_kind(&self) -> Option<&'static dyn ExistingKind> {
        None
    }

    /// Its own queries before a deployment.
    fn queries(&self, _request: &PreflightRequest, _facts: &Facts) -> Vec<Query> {
        Vec::new()
    }

    /// Whether a size is offered, if the service lists its sizes.
    fn offered(&self, _candidate: &CandidateContext<'_>, _size: &str) -> Option<PreflightRow> {
        None
    }

    fn quotas(&self, _candidate: &CandidateContext<'_>) -> Vec<PreflightRow> {
        Vec::new()
    }

    /// The command that lists where a size is offered.
    fn size_list(&self, _size: &str) -> Option<String> {
        None
    }

    /// The existing resource, as `GROUP/NAME`, in which everything is created.
    fn creates_in<'e>(&self, _existing: &'e ExistingResources) -> Option<&'e str> {
        None
    }

    /// Whether images are pulled with an identity of the service's own, whose roles only its owner knows.
    fn pulls_with_own_identity(&self) -> bool {
        false
    }
}

/// The requirements of a service on the subscription.
#[derive(Debug)]
pub(crate) struct Requirements {
    /// The provider and the type of its main resource, which is in the regions that have the service.
    pub(crate) provider: &'static str,
    pub(crate) resource_type: &'static str,
    /// Further providers that must be registered.
    pub(crate) other_providers: &'static [&'static str],
    /// Actions that the account must be allowed to perform.
    pub(crate) actions: &'static [&'static str],
    /// Whether sizes are those of virtual machines.
    pub(crate) has_vm_sizes: bool,
    /// Whether the list of sizes of virtual machines shows which are offered.
    pub(crate) reads_vm_sizes: bool,
    /// Whether its quotas are raised by a request, and not by support only.
    pub(crate) raises_quotas: bool,
}

/// The means that end a workload whose GPUs are idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleEnd {
    /// The service itself.
    Service,
    /// The reaper, which the machine may run.
    Reaper,
    /// A shell next to the program, which ends it.
    Program,
}

/// How a directory outlives its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Kept in a blob container that the user names.
    InStorage,
    /// Kept in storage of the service.
    InService,
}

/// The events that begin and end the bill of a deployment, in Azure's activity log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Billing {
    /// Types of resources, in lower case, whose creation begins it. Empty where only the start of a container or node
    /// does, whose time is not in the log.
    pub created: &'static [&'static str],
    /// Types whose deletion ends it.
    pub deleted: &'static [&'static str],
    /// Whether it begins when the creation is complete, and not when it was accepted.
    pub begins_when_complete: bool,
    /// Whether the log has the whole time of jobs, too.
    pub covers_jobs: bool,
    /// Whether nodes are billed before they run a task.
    pub bills_nodes: bool,
}
