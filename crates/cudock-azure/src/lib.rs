//! Azure's services as requests and responses.
//!
//! A [`DeploymentSpec`] says what to run, independent of the service. Its translation is a [`Deployment`]: all requests that
//! create it, observe it and delete it, as plain data. `--dry-run` prints them, `export` renders them as files, the journal
//! keeps those that delete, and the client sends them.

mod auth;
mod call;
mod client;
mod cloud;
mod deployment;
mod error;
mod guid;
pub mod preflight;
mod spec;
mod status;

pub use auth::{Principal, Prompt, SignInError, SignInMethod, SignInOptions};
pub use call::{Body, Call, Plane};
pub use client::{Answer, AzureClient, ClientSettings, StepObserver};
pub use cloud::{Cloud, CloudError};
pub use deployment::{Deployment, Phase, Step, Wait};
pub use error::{AzureError, Cause, QuotaShortage, ServiceError};
pub use spec::{DeploymentSpec, ExistingResources, RegistryAccess, SpecVariable, Target, WorkKind};
pub use status::{DeploymentState, Status};
