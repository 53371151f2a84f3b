//! Machine Learning as a backend.

use std::time::Duration;

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::DeploymentIdentity;
use crate::preflight::{CandidateContext, PreflightRequest, PreflightRow, Query};
use crate::services::backend::{Backend, Billing, IdleEnd, Keeping, Requirements};
use crate::services::existing::ExistingKind;
use crate::services::ml::existing::Workspace;
use crate::services::ml::{node_idle, preflight, status, translate};
use crate::services::{ExecMethod, LogPart, Translation, TranslationError};
use crate::spec::{DeploymentSpec, ExistingResources, WorkKind};
use crate::status::Status;

pub(crate) struct Ml;

impl Backend for Ml {
    fn service(&self) -> AzureService {
        AzureService::Ml
    }

    fn identify(&self, existing: &ExistingResources, identity: &mut DeploymentIdentity) {
        identity.workspace.clone_from(&existing.workspace);
    }

    fn requirements(&self) -> &'static Requirements {
        &Requirements {
            provider: "Microsoft.MachineLearningServices",
            resource_type: "workspaces",
            other_providers: &[],
            actions: &[
                "Microsoft.MachineLearningServices/workspaces/jobs/write",
                "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/write",
                "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/delete",
            ],
            has_vm_sizes: true,
            reads_vm_sizes: false,
            raises_quotas: true,
        }
    }

    fn translate<'s>(
        &self,
        facts: &Facts,
        spec: &'s DeploymentSpec,
    ) -> Result<Translation<'s>, TranslationError> {
        translate(facts, spec)
    }

    fn node_idle(&self, spec: &DeploymentSpec) -> Option<Duration> {
        node_idle(spec)
    }

    fn idle_end(&self, spec: &DeploymentSpec) -> Result<IdleEnd, &'static str> {
        match spec.work {
            WorkKind::Serve { .. } => Err("an online endpoint cannot end by itself"),
            _ => Ok(IdleEnd::Program),
        }
    }

    fn keeps_directory(&self, spec: &DeploymentSpec) -> Result<Keeping, &'static str> {
        match spec.work {
            WorkKind::Serve { .. } => Err("an online endpoint is not evicted"),
            _ => Ok(Keeping::InService),
        }
    }

    fn status_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::status_calls(identity)
    }

    fn status(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
        status::status(identity, responses)
    }

    fn billing(&self, identity: &DeploymentIdentity) -> Billing {
        const JOBS: &str = "microsoft.machinelearningservices/workspaces/jobs";
        const ENDPOINTS: &str = "microsoft.machinelearningservices/workspaces/onlineendpoints";
        const MODELS: &str = "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments";
        const CLUSTERS: &str = "microsoft.machinelearningservices/workspaces/computes";
        if identity.node_idle.is_some() {
            Billing { deleted: &[CLUSTERS], ..Billing::default() }
        } else {
            Billing { created: &[MODELS], deleted: &[MODELS, ENDPOINTS, JOBS], ..Billing::default() }
        }
    }

    fn log_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::log_calls(identity)
    }

    fn log_parts(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<LogPart> {
        status::log_parts(identity, responses)
    }

    fn exec_method(&self, _: &DeploymentIdentity, _: &[String]) -> Result<ExecMethod, &'static str> {
        Err("Machine Learning does not run commands in a job or endpoint")
    }

    fn existing_kind(&self) -> Option<&'static dyn ExistingKind> {
        Some(&Workspace)
    }

    fn queries(&self, request: &PreflightRequest, _: &Facts) -> Vec<Query> {
        preflight::queries(request)
    }

    fn quotas(&self, candidate: &CandidateContext<'_>) -> Vec<PreflightRow> {
        candidate.ml_quotas()
    }

    fn creates_in<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str> {
        existing.workspace.as_deref()
    }

    fn pulls_with_own_identity(&self) -> bool {
        true
    }
}
