//! Jobs of Machine Learning that are submitted one by one, while what deletes them exists from the beginning.

use cudock_base::Secret;
use cudock_base::shell::quote;
use cudock_http::Method;
use serde_json::{Value, json};

use super::status::{details, log_parts, of_job};
use super::{Ids, VERSION, ids};
use crate::call::{Body, Call};
use crate::deployment::{Deployment, DeploymentIdentity};
use crate::services::TranslationError;
use crate::services::attach::logs::LogPart;
use crate::services::bodies::request::{call, get};
use crate::status::Status;

/// The jobs of a deployment, as requests. There are as many as the deployment had items.
#[derive(Debug, Clone)]
pub struct MlJobs {
    identity: DeploymentIdentity,
    /// Name and request of each.
    jobs: Vec<(String, Call)>,
}

/// Takes the jobs out of a deployment of several items, so that they can be submitted later with other commands. Its
/// cluster has no nodes before that. The requests that delete the jobs stay, whether they are ever submitted or not.
pub fn open_jobs(mut deployment: Deployment) -> Result<(Deployment, MlJobs), TranslationError> {
    let is_job = |path: &str| path.contains("/jobs/");
    let (jobs, mut steps): (Vec<_>, Vec<_>) =
        deployment.steps.into_iter().partition(|step| is_job(&step.call.path));
    let name = |path: &str| {
        let id = path.split('?').next().unwrap_or(path);
        id.rsplit('/').next().unwrap_or(id).to_owned()
    };
    let jobs: Vec<(String, Call)> = jobs.into_iter().map(|step| (name(&step.call.path), step.call)).collect();
    // Nodes exist as soon as a job is submitted.
    match steps.iter_mut().find(|step| step.id == "cluster") {
        Some(cluster) => cluster.is_billed = true,
        None => return Err(TranslationError::new("the deployment has no cluster for several jobs")),
    }
    deployment.steps = steps;
    let identity = deployment.identity.clone();
    Ok((deployment, MlJobs { identity, jobs }))
}

impl MlJobs {
    /// The names of the jobs, in the order in which they are to be used.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().map(|(name, _)| name.as_str())
    }

    /// Submits a job with this command. The same request twice submits one job.
    pub fn submit(&self, name: &str, command: &[String]) -> Option<Call> {
        let (_, template) = self.jobs.iter().find(|(job, _)| job == name)?;
        let old = template.body.as_ref()?;
        let words: Vec<_> = command.iter().map(|word| quote(word)).collect();
        let mut body = old.redacted().clone();
        *body.pointer_mut("/properties/command")? = json!(words.join(" "));
        let body = old
            .secrets()
            .fold(Body::new(body), |body, (pointer, secret)| body.secret(pointer, secret.clone()));
        Some(Call { body: Some(body), ..template.clone() })
    }

    fn ids(&self) -> Option<Ids> {
        ids(&self.identity)
    }

    /// The requests for a job, and for its details in the run history.
    pub fn status_calls(&self, name: &str) -> Option<[Call; 2]> {
        let ids = self.ids()?;
        Some([get(&ids.job(name), VERSION), details(&self.identity, &ids, name)])
    }

    /// The state of a job according to both responses.
    pub fn status(job: &Value, details: Option<&Value>) -> Status {
        of_job(Some(job), details)
    }

    /// The address of a job's output, according to the run history; none before it has written any.
    pub fn output(&self, details: &Value) -> Option<Secret> {
        let parts = log_parts(&self.identity, &[Some(details.clone())]);
        parts.into_iter().find_map(|part| match part {
            LogPart::File { name, address } if name.ends_with("std_log.txt") => Some(address),
            _ => None,
        })
    }

    pub fn cancel(&self, name: &str) -> Option<Call> {
        let id = self.ids()?.job(name);
        Some(call(Method::POST, &format!("{id}/cancel"), VERSION, None))
    }
}
