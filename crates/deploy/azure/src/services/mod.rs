//! The translation of a workload to each service, and the reading of their responses.

mod aci;
mod aks;
mod attach;
pub(crate) mod backend;
mod batch;
mod bodies;
mod checks;
mod container_apps;
mod error;
pub(crate) mod existing;
mod idle;
mod ml;
mod reaper;
mod vm;

pub use attach::exec::{ExecMethod, ExecOutput, SHELL, TypedCommand, interactive_program};
pub use attach::logs::LogPart;
pub use attach::terminal::{Terminal, TerminalOutput, TerminalProtocol, TerminalSize};
pub use backend::Billing;
pub(crate) use backend::translation::Translation;
pub use batch::{BatchTasks, open_job};
pub use error::TranslationError;
pub use existing::bare_region;
pub use ml::{MlJobs, open_jobs, sweep_deployment};
pub use reaper::{reaper_call, reaper_run_path};

use cudock_base::Secret;
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::{Deployment, DeploymentIdentity, Phase, Step, Wait};
use crate::services::backend::Backend;
use crate::services::backend::lookup::backend;
use crate::services::bodies::names::{Existing, Names};
use crate::services::bodies::request::{delete, put};
use crate::services::bodies::template::{AUTHORIZATION, RESOURCES};
use crate::services::reaper::Outside;
use crate::spec::{BlobContainer, DeploymentSpec};
use crate::status::Status;

/// All requests that create a workload, and those that delete it.
pub fn deployment(facts: &Facts, spec: &DeploymentSpec) -> Result<Deployment, TranslationError> {
    checks::names(spec)?;
    checks::checkpoints(spec)?;
    checks::outputs(spec)?;
    let backend = backend(spec.service);
    let watched = idle::watched(spec, backend.idle_end(spec))?;
    let spec = watched.as_ref();
    let translation = backend.translate(facts, spec)?;
    let names = Names::of_spec(spec);
    let first = reaper::deployment(spec, &translation.outside);
    let first = Step::new("reaper", Phase::Create, put(&names.record_id(), RESOURCES, first));
    let cleanup = cleanup(names, &translation.outside);
    Ok(Deployment {
        name: spec.name.clone(),
        run_id: spec.run_id.clone(),
        service: spec.service,
        region: spec.region.clone(),
        steps: std::iter::once(first).chain(translation.steps).collect(),
        cleanup,
        losses: translation.losses,
        price_per_hour: spec.price_per_hour,
        identity: identity(spec),
    })
}

/// The steps that delete a run of which only the id is known, in this order. The reaper, if it exists, knows what is outside of
/// the run's groups.
pub fn cleanup_of_run(subscription: &str, run_id: &str, reaper: Option<&Value>) -> Vec<Step> {
    let names = Names { subscription, run_id };
    let actions = reaper.map_or_else(Vec::new, |workflow| reaper::outside_actions(names, workflow));
    cleanup(names, &Outside { scope: None, actions })
}

/// The steps of the deletion. Billed resources come first; the reaper stays until everything else
/// is gone.
fn cleanup(names: Names<'_>, outside: &Outside<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = outside
        .actions
        .iter()
        .map(|action| {
            let wait = if action.method == "DELETE" { Wait::Gone } else { Wait::Operation };
            Step::new(action.name.to_lowercase().replace('_', "-"), Phase::Delete, action.call())
                .waiting(wait)
                .within_minutes(30)
        })
        .collect();
    let group = |id: &str, path: String, query: &str| {
        let mut call = delete(&path, RESOURCES);
        call.path.push_str(query);
        Step::new(id, Phase::Delete, call).waiting(Wait::Gone).within_minutes(30)
    };
    steps.push(group("group", names.group_id(), &format!("&{}", reaper::FORCED)));
    if let Some((existing, resource_type)) = outside.scope {
        let scope = names.existing(existing, resource_type);
        let rights = reaper::outside_rights(names, &scope);
        steps
            .push(Step::new("rights", Phase::Delete, delete(&rights, AUTHORIZATION)).waiting(Wait::Response));
        let record = format!(
            "{}/providers/Microsoft.Resources/deployments/{}",
            names.id_of_group(existing.group),
            names.unique()
        );
        steps.push(Step::new("rights-record", Phase::Delete, delete(&record, RESOURCES)));
    }
    steps.push(group("reaper", names.reaper_group_id(), ""));
    steps.push(Step::new("record", Phase::Delete, delete(&names.record_id(), RESOURCES)));
    steps
}

fn identity(spec: &DeploymentSpec) -> DeploymentIdentity {
    let backend = backend(spec.service);
    let mut identity = DeploymentIdentity {
        subscription: spec.subscription.clone(),
        run_id: spec.run_id.clone(),
        service: spec.service,
        region: spec.region.clone(),
        work: spec.work.shape(),
        is_spot: spec.is_spot,
        workspace: None,
        batch_account: None,
        pool: None,
        endpoint: spec.existing.details.endpoint.clone(),
        node_idle: backend.node_idle(spec),
    };
    backend.identify(&spec.existing, &mut identity);
    identity
}

/// Whether a service uploads files when a task ends.
pub fn uploads_outputs(service: AzureService) -> bool {
    backend(service).uploads_outputs()
}

impl DeploymentIdentity {
    fn backend(&self) -> &'static dyn Backend {
        backend(self.service)
    }

    /// The requests whose responses contain the state.
    pub fn status_calls(&self) -> Vec<Call> {
        let group = bodies::request::get(&self.names().group_id(), RESOURCES);
        std::iter::once(group).chain(self.backend().status_calls(self)).collect()
    }

    /// Whether all of it is within its group, whose request is the first of [`Self::status_calls`].
    pub fn is_within_group(&self) -> bool {
        self.workspace.is_none() && self.batch_account.is_none()
    }

    /// More requests, whose paths are in the responses to the first ones. Their responses are appended for
    /// [`Self::status`], which knows less without them.
    pub fn follow_up_calls(&self, responses: &[Option<Value>]) -> Vec<Call> {
        let Some((_, responses)) = responses.split_first() else { return Vec::new() };
        self.backend().follow_up_calls(self, responses)
    }

    /// The state according to the responses to [`Self::status_calls`]: one for each, none for 404.
    pub fn status(&self, responses: &[Option<Value>]) -> Status {
        let (group, responses) = match responses.split_first() {
            Some((group, rest)) => (group.as_ref(), rest),
            None => (None, responses),
        };
        bodies::read::with_group(self.backend().status(self, responses), group, responses)
    }

    /// Stops the job but keeps it, if the end time can only be read from it.
    pub fn ending_call(&self) -> Option<Call> {
        self.backend().ending_call(self)
    }

    /// Whether the end of a job may be seen before that of its last task.
    pub fn ends_before_its_tasks(&self) -> bool {
        self.backend().ends_before_its_tasks()
    }

    /// The events that begin and end the bill, in Azure's activity log.
    pub fn billing(&self) -> Billing {
        self.backend().billing(self)
    }

    /// Whether the directory of `--checkpoints` is a blob container that nodes mount.
    pub fn mounts_checkpoints(&self) -> bool {
        self.backend().mounts_directory()
    }

    /// The requests whose responses contain the log, or its location.
    pub fn log_calls(&self) -> Vec<Call> {
        self.backend().log_calls(self)
    }

    /// More requests, whose paths are in the responses to the first ones. Their responses are appended for
    /// [`Self::log_parts`] and [`Self::terminal`].
    pub fn log_follow_up_calls(&self, responses: &[Option<Value>]) -> Vec<Call> {
        self.backend().log_follow_up_calls(self, responses)
    }

    /// The URLs of logs that outlive the work, one for each of [`Self::log_calls`]; none for
    /// services that keep their logs.
    pub fn kept_logs(&self, storage: &BlobContainer) -> Vec<Secret> {
        self.backend().kept_logs(self, storage)
    }

    /// The log according to the responses to [`Self::log_calls`]: one for each, none for 404.
    pub fn log_parts(&self, responses: &[Option<Value>]) -> Vec<LogPart> {
        self.backend().log_parts(self, responses)
    }

    fn names(&self) -> Names<'_> {
        Names::of_identity(self)
    }

    fn existing(text: Option<&String>) -> Option<Existing<'_>> {
        text.and_then(|text| Existing::parse(text))
    }
}
