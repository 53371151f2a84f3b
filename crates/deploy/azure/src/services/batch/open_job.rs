//! A job of Batch that stays open, and the tasks that are added to it while it runs.

use cudock_base::shell::quote;
use cudock_http::Method;
use serde_json::{Value, json};

use super::account::{Account, MAIN_TASK, job_path};
use super::outputs;
use crate::call::{Body, Call};
use crate::deployment::Deployment;
use crate::services::TranslationError;

/// Tasks of an open job, as requests.
#[derive(Debug, Clone)]
pub struct BatchTasks {
    account: Account,
    job: String,
    run_id: String,
    /// The common part of all tasks.
    template: Body,
}

/// Takes the tasks out of a deployment, so that they can be added later: the job then ends at its time limit, or when it is
/// deleted. The deployment has to be a single task.
pub fn open_job(mut deployment: Deployment) -> Result<(Deployment, BatchTasks), TranslationError> {
    let none = || TranslationError::new("the deployment has no tasks");
    let step = deployment.steps.iter().find(|step| step.id == "tasks").ok_or_else(none)?;
    let body = step.call.body.as_ref().ok_or_else(none)?;
    let task = body.redacted().pointer("/value/0").ok_or_else(none)?.clone();
    let template = body.secrets().fold(Body::new(task), |template, (pointer, secret)| {
        template.secret(pointer.trim_start_matches("/value/0"), secret.clone())
    });
    let identity = &deployment.identity;
    let tasks = BatchTasks {
        account: Account::of_identity(identity),
        job: job_path(identity.names()),
        run_id: identity.run_id.clone(),
        template,
    };
    deployment.steps.retain(|step| step.id != "tasks" && step.id != "end");
    Ok((deployment, tasks))
}

impl BatchTasks {
    /// Adds a task that runs this command: the program of the template with other arguments. The same id twice is refused.
    pub fn add(&self, id: &str, command: &[String]) -> Call {
        let words: Vec<_> = command.iter().skip(1).map(|word| quote(word)).collect();
        let mut task = self.template.redacted().clone();
        outputs::rename(&mut task, &self.run_id, MAIN_TASK, id);
        if let Value::Object(task) = &mut task {
            task.insert("id".to_owned(), json!(id));
            task.insert("commandLine".to_owned(), json!(words.join(" ")));
        }
        let body = self
            .template
            .secrets()
            .fold(Body::new(task), |body, (pointer, secret)| body.secret(pointer, secret.clone()));
        self.account.call(Method::POST, &format!("{}/tasks", self.job), "", Some(body))
    }

    pub fn list(&self) -> Call {
        self.account.get(&format!("{}/tasks", self.job), "")
    }

    /// The standard output of a task.
    pub fn output(&self, id: &str) -> Call {
        self.account.get(&format!("{}/tasks/{id}/files/stdout.txt", self.job), "")
    }

    pub fn terminate(&self, id: &str) -> Call {
        self.account.call(Method::POST, &format!("{}/tasks/{id}/terminate", self.job), "", None)
    }
}
