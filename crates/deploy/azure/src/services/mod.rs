//! The translation of a workload to each service, and the reading of their answers.

mod aci;
mod amounts;
mod batch;
mod checks;
mod container_apps;
mod error;
mod exec;
mod existing;
mod idle;
mod logs;
mod losses;
mod ml;
mod names;
mod read;
mod reaper;
mod request;
mod template;
mod terminal;
mod vm;

pub use batch::{BatchTasks, open_job};
pub(crate) use checks::facts;
pub use error::TranslationError;
pub use exec::{ExecMethod, ExecOutput, SHELL, TypedCommand, interactive_program};
pub use existing::bare_region;
pub use logs::LogPart;
pub use ml::{MlJobs, open_jobs, sweep_deployment};
pub use reaper::{reaper_call, reaper_run_path};
pub use terminal::{Terminal, TerminalOutput, TerminalProtocol, TerminalSize};

use cudock_base::Secret;
use cudock_facts::finding::Finding;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::{Deployment, DeploymentIdentity, Phase, Step, Wait, WorkShape};
use crate::services::names::{Existing, Names};
use crate::services::reaper::Outside;
use crate::services::request::{body, delete, put};
use crate::services::template::{AUTHORIZATION, RESOURCES};
use crate::spec::{BlobContainer, DeploymentSpec, Target, WorkKind};
use crate::status::Status;

/// What a service makes of a workload.
#[derive(Debug, Default)]
struct Translation<'s> {
    /// After the groups and the reaper exist.
    steps: Vec<Step>,
    outside: Outside<'s>,
    losses: Vec<Finding>,
}

/// All requests that create a workload, and those that delete it.
pub fn deployment(spec: &DeploymentSpec) -> Result<Deployment, TranslationError> {
    checks::names(spec)?;
    checks::checkpoints(spec)?;
    checks::outputs(spec)?;
    let watched = idle::watched(spec)?;
    let spec = watched.as_ref();
    let translation = match spec.target {
        Target::Vm => vm::translate(spec)?,
        Target::Batch => batch::translate(spec)?,
        Target::Ml => ml::translate(spec)?,
        Target::ContainerApps => container_apps::translate(spec)?,
        Target::Aci => aci::translate(spec)?,
    };
    let names = Names::of_spec(spec);
    let first = body(&reaper::deployment(spec, &translation.outside)?)?;
    let first = Step::new("reaper", Phase::Create, put(&names.record_id(), RESOURCES, first));
    let cleanup = cleanup(names, &translation.outside);
    Ok(Deployment {
        name: spec.name.clone(),
        run_id: spec.run_id.clone(),
        target: spec.target,
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

/// What is billed comes first. The reaper stays until everything else is gone.
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
    let work = match &spec.work {
        WorkKind::Serve { port, is_public, .. } => WorkShape::Serve { port: *port, is_public: *is_public },
        WorkKind::Job { items, .. } => {
            WorkShape::Job { tasks: u32::try_from(items.len().max(1)).unwrap_or(u32::MAX) }
        }
        WorkKind::MultiNode { nodes, .. } => WorkShape::MultiNode { nodes: *nodes },
    };
    DeploymentIdentity {
        subscription: spec.subscription.clone(),
        run_id: spec.run_id.clone(),
        target: spec.target,
        region: spec.region.clone(),
        work,
        is_spot: spec.is_spot,
        workspace: spec.existing.workspace.clone().filter(|_| spec.target == Target::Ml),
        batch_account: spec.existing.batch_account.clone().filter(|_| spec.target == Target::Batch),
        pool: spec.existing.pool.clone().filter(|_| spec.target == Target::Batch),
        endpoint: spec.existing.details.endpoint.clone(),
        node_idle: if spec.target == Target::Ml { ml::node_idle(spec) } else { None },
    }
}

impl DeploymentIdentity {
    /// The requests whose responses tell the state.
    pub fn status_calls(&self) -> Vec<Call> {
        let names = Names::of_identity(self);
        let of_target = match self.target {
            Target::Vm => vm::status_calls(names),
            Target::Batch => batch::status_calls(self),
            Target::Ml => ml::status_calls(self),
            Target::ContainerApps => container_apps::status_calls(self),
            Target::Aci => aci::status_calls(names),
        };
        std::iter::once(request::get(&names.group_id(), RESOURCES)).chain(of_target).collect()
    }

    /// Whether nothing of it is outside of its group, whose request is the first of [`Self::status_calls`].
    pub fn is_within_group(&self) -> bool {
        self.workspace.is_none() && self.batch_account.is_none()
    }

    /// More requests, whose paths are in the answers to the first ones. Their answers are appended for
    /// [`Self::status`], which knows less without them.
    pub fn follow_up_calls(&self, answers: &[Option<Value>]) -> Vec<Call> {
        let Some((_, answers)) = answers.split_first() else { return Vec::new() };
        match self.target {
            Target::Batch => batch::follow_up_calls(self, answers),
            Target::ContainerApps => container_apps::follow_up_calls(self, answers),
            Target::Vm | Target::Ml | Target::Aci => Vec::new(),
        }
    }

    /// The state according to the answers to [`Self::status_calls`]: one for each, none for 404.
    pub fn status(&self, answers: &[Option<Value>]) -> Status {
        let (group, answers) = match answers.split_first() {
            Some((group, rest)) => (group.as_ref(), rest),
            None => (None, answers),
        };
        let status = match self.target {
            Target::Vm => vm::status(self, answers),
            Target::Batch => batch::status(self, answers),
            Target::Ml => ml::status(self, answers),
            Target::ContainerApps => container_apps::status(self, answers),
            Target::Aci => aci::status(self, answers),
        };
        read::with_group(status, group, answers)
    }

    /// The request that ends the work without deleting it, where only what is left tells when that was.
    pub fn ending_call(&self) -> Option<Call> {
        self.batch_account.as_ref().filter(|_| self.target == Target::Batch).map(|_| batch::ending_call(self))
    }

    /// The requests whose responses hold the log, or tell where it is.
    pub fn log_calls(&self) -> Vec<Call> {
        let names = Names::of_identity(self);
        match self.target {
            Target::Vm => vec![vm::log_call(names)],
            Target::Batch => batch::log_calls(self),
            Target::Ml => ml::log_calls(self),
            Target::ContainerApps => container_apps::log_calls(self),
            Target::Aci => aci::log_calls(self),
        }
    }

    /// More requests, whose paths are in the answers to the first ones. Their answers are appended for
    /// [`Self::log_parts`] and [`Self::terminal`].
    pub fn log_follow_up_calls(&self, answers: &[Option<Value>]) -> Vec<Call> {
        match self.target {
            Target::ContainerApps => container_apps::follow_up_calls(self, answers),
            Target::Vm | Target::Batch | Target::Ml | Target::Aci => Vec::new(),
        }
    }

    /// Where the answers to [`Self::log_calls`] are kept when what answers them is gone, one for each; none for services
    /// that keep their logs.
    pub fn kept_logs(&self, storage: &BlobContainer) -> Vec<Secret> {
        match self.target {
            Target::Batch => batch::kept_logs(self, storage),
            Target::Vm | Target::Ml | Target::ContainerApps | Target::Aci => Vec::new(),
        }
    }

    /// The log according to the answers to [`Self::log_calls`]: one for each, none for 404.
    pub fn log_parts(&self, answers: &[Option<Value>]) -> Vec<LogPart> {
        match self.target {
            Target::Vm => vm::log_parts(answers),
            Target::Batch => batch::log_parts(answers),
            Target::Ml => ml::log_parts(self, answers),
            Target::ContainerApps => container_apps::log_parts(answers),
            Target::Aci => aci::log_parts(answers),
        }
    }

    fn names(&self) -> Names<'_> {
        Names::of_identity(self)
    }

    fn existing(text: Option<&String>) -> Option<Existing<'_>> {
        text.and_then(|text| Existing::parse(text))
    }
}
