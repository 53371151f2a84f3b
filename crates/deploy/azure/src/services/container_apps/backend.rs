//! Container Apps as a backend.

use cudock_base::Secret;
use cudock_base::text::percent;
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::DeploymentIdentity;
use crate::preflight::{CandidateContext, PreflightRequest, PreflightRow, Query};
use crate::services::backend::{Backend, Billing, IdleEnd, Requirements};
use crate::services::container_apps::existing::Environment;
use crate::services::container_apps::{preflight, status, translate};
use crate::services::existing::ExistingKind;
use crate::services::{
    ExecMethod, LogPart, Terminal, TerminalProtocol, TerminalSize, Translation, TranslationError,
};
use crate::spec::{DeploymentSpec, WorkKind};
use crate::status::Status;

pub(crate) struct ContainerApps;

impl Backend for ContainerApps {
    fn service(&self) -> AzureService {
        AzureService::ContainerApps
    }

    fn requirements(&self) -> &'static Requirements {
        &Requirements {
            provider: "Microsoft.App",
            resource_type: "managedEnvironments",
            other_providers: &["Microsoft.OperationalInsights"],
            actions: &[
                "Microsoft.App/managedEnvironments/write",
                "Microsoft.App/containerApps/write",
                "Microsoft.App/jobs/write",
            ],
            has_vm_sizes: false,
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

    fn idle_end(&self, spec: &DeploymentSpec) -> Result<IdleEnd, &'static str> {
        match spec.work {
            // It ends the last replica.
            WorkKind::Serve { .. } => Ok(IdleEnd::Service),
            _ => Ok(IdleEnd::Program),
        }
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

    fn billing(&self, _: &DeploymentIdentity) -> Billing {
        Billing {
            created: &["microsoft.app/containerapps"],
            deleted: &["microsoft.app/containerapps", "microsoft.app/jobs"],
            ..Billing::default()
        }
    }

    fn log_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::log_calls(identity)
    }

    fn log_parts(&self, _: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<LogPart> {
        status::log_parts(responses)
    }

    fn log_follow_up_calls(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<Call> {
        status::follow_up_calls(identity, responses)
    }

    fn exec_method(&self, _: &DeploymentIdentity, _: &[String]) -> Result<ExecMethod, &'static str> {
        Ok(ExecMethod::Terminal)
    }

    fn terminal_calls(&self, identity: &DeploymentIdentity, _: &str, _: TerminalSize) -> Vec<Call> {
        status::log_calls(identity)
    }

    fn terminal(&self, program: &str, responses: &[Option<Value>]) -> Option<Terminal> {
        let (address, token) = status::exec_endpoint(responses)?;
        Some(Terminal {
            address: Secret::new(format!("{address}?command={}", percent::encode(program))),
            token: Some(token),
            password: None,
            protocol: TerminalProtocol::Channels,
        })
    }

    fn existing_kind(&self) -> Option<&'static dyn ExistingKind> {
        Some(&Environment)
    }

    fn queries(&self, request: &PreflightRequest, _: &Facts) -> Vec<Query> {
        preflight::queries(request)
    }

    fn offered(&self, candidate: &CandidateContext<'_>, size: &str) -> Option<PreflightRow> {
        Some(candidate.profile_offered(size))
    }

    fn quotas(&self, candidate: &CandidateContext<'_>) -> Vec<PreflightRow> {
        candidate.app_quotas()
    }
}
