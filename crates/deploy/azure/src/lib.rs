//! Azure's services as requests and responses.
//!
//! A [`DeploymentSpec`] says what to run, independent of the service. Its translation is a [`Deployment`]: all requests that
//! create it, observe it and delete it, as plain data. `--dry-run` prints them, `export` renders them as files, the journal
//! keeps those that delete, and the client sends them.

mod auth;
mod call;
mod client;
mod cloud;
pub mod codes;
mod deployment;
mod error;
mod export;
mod guid;
pub mod preflight;
mod run_names;
mod services;
mod spec;
mod status;

pub use auth::{Principal, Prompt, SignInError, SignInMethod, SignInOptions};
pub use call::{Body, Call, Plane};
pub use client::{AzureClient, AzureResponse, ClientSettings, StepObserver};
pub use cloud::{Cloud, CloudError};
pub use deployment::{Deployment, DeploymentIdentity, Phase, Step, Wait, WorkShape};
pub use error::{AzureError, Cause, QuotaShortage, ServiceError};
pub use export::{ExportError, ExportFormat, export, is_exported};
pub use run_names::{group_name, is_run_id, reaper_group_name};
pub use services::{
    BatchTasks, Billing, ExecMethod, ExecOutput, LogPart, MlJobs, SHELL, Terminal, TerminalOutput,
    TerminalProtocol, TerminalSize, TranslationError, TypedCommand, bare_region, cleanup_of_run, deployment,
    interactive_program, open_job, open_jobs, reaper_call, reaper_run_path, sweep_deployment,
    uploads_outputs,
};
pub use spec::{
    BlobContainer, Checkpoints, DeploymentSpec, ExistingDetails, ExistingResources, Outputs, ProfileDetails,
    RegistryAccess, SpecOptions, SpecPlacement, SpecVariable, WorkKind,
};
pub use status::{DeploymentState, JobTime, Status};
