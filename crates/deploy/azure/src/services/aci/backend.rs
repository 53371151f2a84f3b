//! Container Instances as a backend.

use cudock_base::Secret;
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use cudock_http::Method;
use serde_json::{Value, json};

use crate::call::{Body, Call};
use crate::deployment::DeploymentIdentity;
use crate::preflight::{CandidateContext, PreflightRequest, PreflightRow, Query};
use crate::services::aci::{VERSION, preflight, status, translate};
use crate::services::backend::{Backend, Billing, IdleEnd, Requirements};
use crate::services::bodies::names::Names;
use crate::services::bodies::read::{response, text};
use crate::services::bodies::request::call;
use crate::services::{
    ExecMethod, LogPart, Terminal, TerminalProtocol, TerminalSize, Translation, TranslationError,
};
use crate::spec::DeploymentSpec;
use crate::status::Status;

pub(crate) struct Aci;

impl Backend for Aci {
    fn service(&self) -> AzureService {
        AzureService::Aci
    }

    fn requirements(&self) -> &'static Requirements {
        &Requirements {
            provider: "Microsoft.ContainerInstance",
            resource_type: "containerGroups",
            other_providers: &[],
            actions: &["Microsoft.ContainerInstance/containerGroups/write"],
            has_vm_sizes: false,
            reads_vm_sizes: false,
            raises_quotas: false,
        }
    }

    fn translate<'s>(
        &self,
        _: &Facts,
        spec: &'s DeploymentSpec,
    ) -> Result<Translation<'s>, TranslationError> {
        translate(spec)
    }

    fn idle_end(&self, _: &DeploymentSpec) -> Result<IdleEnd, &'static str> {
        Err("Container Instances have no GPUs")
    }

    fn status_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::status_calls(Names::of_identity(identity))
    }

    fn status(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
        status::status(identity, responses)
    }

    /// A container group is billed from the start of its containers on, which ends its creation.
    fn billing(&self, _: &DeploymentIdentity) -> Billing {
        Billing {
            created: &["microsoft.containerinstance/containergroups"],
            deleted: &["microsoft.containerinstance/containergroups"],
            begins_when_complete: true,
            ..Billing::default()
        }
    }

    fn log_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::log_calls(identity)
    }

    fn log_parts(&self, _: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<LogPart> {
        status::log_parts(responses)
    }

    fn exec_method(&self, _: &DeploymentIdentity, _: &[String]) -> Result<ExecMethod, &'static str> {
        Ok(ExecMethod::Terminal)
    }

    fn terminal_calls(&self, identity: &DeploymentIdentity, program: &str, size: TerminalSize) -> Vec<Call> {
        let size = json!({"rows": size.rows, "cols": size.columns});
        let body = Body::new(json!({"command": program, "terminalSize": size}));
        let path = format!("{}/exec", status::first_container(identity));
        vec![call(Method::POST, &path, VERSION, Some(body))]
    }

    fn terminal(&self, _: &str, responses: &[Option<Value>]) -> Option<Terminal> {
        let started = response(responses, 0)?;
        Some(Terminal {
            address: Secret::new(text(started, "/webSocketUri")?),
            token: None,
            password: Some(Secret::new(text(started, "/password")?)),
            protocol: TerminalProtocol::Plain,
        })
    }

    fn queries(&self, request: &PreflightRequest, _: &Facts) -> Vec<Query> {
        preflight::queries(request)
    }

    fn quotas(&self, candidate: &CandidateContext<'_>) -> Vec<PreflightRow> {
        candidate.aci_quotas()
    }
}
