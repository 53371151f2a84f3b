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
mod guid;
pub mod preflight;
mod services;
mod spec;
mod status;

pub use auth::{Principal, Prompt, SignInError, SignInMethod, SignInOptions};
pub use call::{Body, Call, Plane};
pub use client::{Answer, AzureClient, ClientSettings, StepObserver};
pub use cloud::{Cloud, CloudError};
pub use deployment::{Deployment, DeploymentIdentity, Phase, Step, Wait, WorkShape};
pub use error::{AzureError, Cause, QuotaShortage, ServiceError};
pub use services::{LogPart, TranslationError, deployment, sweep_faults};
pub use spec::{
    DeploymentSpec, ExistingResources, RegistryAccess, SpecOptions, SpecPlacement, SpecVariable, Target,
    WorkKind,
};
pub use status::{DeploymentState, Status};
