//! A virtual machine as a backend.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::call::Call;
use crate::deployment::{DeploymentIdentity, Step};
use crate::preflight::{CandidateContext, PreflightRequest, PreflightRow, Query};
use crate::services::attach::exec;
use crate::services::backend::{Backend, Billing, IdleEnd, Keeping, Requirements};
use crate::services::bodies::names::Names;
use crate::services::vm::{preflight, script_call, status, translate};
use crate::services::{ExecMethod, LogPart, Translation, TranslationError};
use crate::spec::DeploymentSpec;
use crate::status::Status;

pub(crate) struct Vm;

impl Backend for Vm {
    fn service(&self) -> AzureService {
        AzureService::Vm
    }

    fn requirements(&self) -> &'static Requirements {
        &Requirements {
            provider: "Microsoft.Compute",
            resource_type: "virtualMachines",
            other_providers: &["Microsoft.Network"],
            actions: &[
                "Microsoft.Compute/virtualMachines/write",
                "Microsoft.Compute/virtualMachines/extensions/write",
                "Microsoft.Network/virtualNetworks/write",
                "Microsoft.Network/networkInterfaces/write",
            ],
            has_vm_sizes: true,
            reads_vm_sizes: true,
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

    fn idle_end(&self, _: &DeploymentSpec) -> Result<IdleEnd, &'static str> {
        Ok(IdleEnd::Reaper)
    }

    fn keeps_directory(&self, _: &DeploymentSpec) -> Result<Keeping, &'static str> {
        Ok(Keeping::InStorage)
    }

    fn status_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        status::status_calls(Names::of_identity(identity))
    }

    fn status(&self, identity: &DeploymentIdentity, responses: &[Option<Value>]) -> Status {
        status::status(identity, responses)
    }

    fn billing(&self, _: &DeploymentIdentity) -> Billing {
        Billing {
            created: &["microsoft.compute/virtualmachines"],
            deleted: &["microsoft.compute/virtualmachines"],
            covers_jobs: true,
            ..Billing::default()
        }
    }

    fn log_calls(&self, identity: &DeploymentIdentity) -> Vec<Call> {
        vec![status::log_call(Names::of_identity(identity))]
    }

    fn log_parts(&self, _: &DeploymentIdentity, responses: &[Option<Value>]) -> Vec<LogPart> {
        status::log_parts(responses)
    }

    fn exec_method(
        &self,
        identity: &DeploymentIdentity,
        command: &[String],
    ) -> Result<ExecMethod, &'static str> {
        let call = script_call(Names::of_identity(identity), &exec::script(command));
        Ok(ExecMethod::Script(Box::new(Step::action("exec", call))))
    }

    fn queries(&self, request: &PreflightRequest, facts: &Facts) -> Vec<Query> {
        preflight::queries(request, facts)
    }

    fn offered(&self, candidate: &CandidateContext<'_>, size: &str) -> Option<PreflightRow> {
        Some(candidate.size_offered(size))
    }

    fn quotas(&self, candidate: &CandidateContext<'_>) -> Vec<PreflightRow> {
        candidate.vm_quotas()
    }

    fn size_list(&self, size: &str) -> Option<String> {
        Some(format!("az vm list-skus --size {size} --all --output table"))
    }
}
