//! The workload to deploy, as the user described it.

use std::time::Duration;

use cudock_azure::ExistingResources;
use cudock_base::{Date, Environment};
use cudock_facts::services::AzureService;
use cudock_group::Reading;
use cudock_project::{DeployFlags, Project};

use crate::create::requester::Requester;

/// The time to live if none is given.
pub(crate) const DEFAULT_TTL: Duration = Duration::from_secs(2 * 3600);

/// The description of the workload.
#[derive(Debug, Clone, Copy)]
pub enum DeploySource<'a> {
    Project(&'a Project),
    /// A container group and the project of its directory, whose `[deploy]` applies.
    Group(&'a Reading, &'a Project),
}

/// The workload to deploy, with its target and user.
pub struct DeployRequest<'a> {
    pub source: DeploySource<'a>,
    pub service: AzureService,
    pub flags: &'a DeployFlags,
    /// The resources that the flags name, with the details that the cloud reported, if it was
    /// queried.
    pub existing: &'a ExistingResources,
    /// The user's name for the deployment; the name in the file if absent.
    pub name: Option<&'a str>,
    /// Port of a service.
    pub port: Option<u16>,
    /// Program and arguments; those of the image if empty.
    pub command: &'a [String],
    pub requester: &'a Requester,
    pub today: Date,
    pub environment: &'a Environment,
}

impl<'a> DeployRequest<'a> {
    pub(crate) fn project(&self) -> &'a Project {
        match self.source {
            DeploySource::Project(project) | DeploySource::Group(_, project) => project,
        }
    }
}
