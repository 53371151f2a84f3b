//! Batch as a backend.

use cudock_base::Secret;
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::DeploymentIdentity;
use crate::preflight::{CandidateContext, PreflightRequest, PreflightRow, Query};
use crate::services::backend::{Backend, Billing, IdleEnd, Keeping, Requirements};
use crate::services::batch::existing::BatchAccount;
use crate::services::batch::{preflight, status, translate};
use crate::services::existing::ExistingKind;
use crate::services::{ExecMethod, LogPart, Translation, TranslationError};
use crate::spec::{BlobContainer, DeploymentSpec, ExistingResources};
use crate::status::Status;

pub(crate) struct Batch;

impl Backend for Batch {
    fn service(&self) -> AzureService {
        AzureService::Batch
    }

    fn identify(&self, existing: &ExistingResources, identity: &mut DeploymentIdentity) {
        identity.batch_account.clone_from(&existing.batch_account);
        identity.pool.clone_from(&existing.pool);
    }

    fn requirements(&self) -> &'static Requirements {
        &Requirements {
            provider: "Microsoft.Batch",
            resource_type: "batchAccounts",
            other_providers: &[],
            actions: &["Microsoft.Batch/batchAccounts/write", "Microsoft.Batch/batchAccounts/read"],
            has_vm_sizes: true,
            reads_vm_sizes: false,
            raises_quotas: false,
        }
    }

    fn translate<'s>(
        &self,
        facts: &Facts,
        spec: &'s DeploymentSpec,
    ) -> Result<Translation<'s>, TranslationError> {
        translate(facts, spec)
    }

    fn idle_end(&self, _: &DeploymentSpec) -> Result<IdleEnd, &'static str> {
        Ok(IdleEnd::Program)
    }

    fn keeps_directory(&self, spec: &DeploymentSpec) -> Result<Keeping, &'static str> {
        match spec {
            _ if spec.existing.pool.is_some() => Err("a pool that exists has mounts of its own"),
            _ if spec.command.is_empty() => Err("the program has to be named after `--`"),
            _ => Ok(Keeping::InStorage),
        }
    }

    fn mounts_directory(&self) -> bool {
        true
    }

    fn uploads_outputs(&self) -> bool {
        true
    }

    fn status_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::status_calls(identity)
    }

    fn status(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
        status::status(identity, responses)
    }

    fn follow_up_calls(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<Call> {
        status::follow_up_calls(identity, responses)
    }

    fn ending_call(&self, identity: &DeploymentIdentity) -> Option<Call> {
        identity.batch_account.as_ref().map(|_| status::ending_call(identity))
    }

    fn ends_before_its_tasks(&self) -> bool {
        true
    }

    fn billing(&self, _: &DeploymentIdentity) -> Billing {
        Billing {
            created: &[],
            deleted: &["microsoft.batch/batchaccounts"],
            bills_nodes: true,
            ..Billing::default()
        }
    }

    fn log_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::log_calls(identity)
    }

    fn log_parts(&self, _: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<LogPart> {
        status::log_parts(responses)
    }

    fn kept_logs(&self, identity: &DeploymentIdentity, storage: &BlobContainer) -> Vec<Secret> {
        status::kept_logs(identity, storage)
    }

    fn exec_method(&self, _: &DeploymentIdentity, _: &[String]) -> Result<ExecMethod, &'static str> {
        Err("Batch does not run commands in a task that runs")
    }

    fn existing_kind(&self) -> Option<&'static dyn ExistingKind> {
        Some(&BatchAccount)
    }

    fn queries(&self, request: &PreflightRequest, _: &Facts) -> Vec<Query> {
        preflight::queries(request)
    }

    fn offered(&self, candidate: &CandidateContext<'_>, size: &str) -> Option<PreflightRow> {
        let has_account = candidate.context.request.existing.batch_account.is_some();
        has_account.then(|| candidate.batch_size_offered(size))
    }

    fn quotas(&self, candidate: &CandidateContext<'_>) -> Vec<PreflightRow> {
        candidate.batch_quotas()
    }
}
