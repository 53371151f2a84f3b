//! The flags of `cudock up --on`.

use clap::Args;
use cudock_azure::{ExistingResources, Target};
use cudock_base::text::suggest::nearest;
use cudock_base::{UsageError, Usd, did_you_mean};
use cudock_project::{ByteSize, DeployTarget, Manifest, TimeSpan};

use crate::names::{TARGET_NAMES, target_named};

const AZURE: &str = "Azure (with --on)";

// This is not a doc comment, because clap would show it in the help of every verb with these flags.
//
// Where and how a workload is deployed. Each flag overrides the key with the same meaning in `cudock.toml`.
#[derive(Debug, Clone, Default, Args)]
pub struct DeployFlags {
    /// Deploy to this service of Azure, vm, batch, ml, container-apps or aci, or to NAME under `[targets]` in cudock.toml
    #[arg(long, value_name = "SERVICE|NAME", help_heading = AZURE)]
    pub on: Option<String>,

    /// Print all requests, and send none
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub dry_run: bool,

    /// Let Azure delete it after this time, whatever happens here [default: 2h, or twice the planned time]
    #[arg(long, value_name = "TIME", help_heading = AZURE, requires = "on")]
    pub ttl: Option<TimeSpan>,

    /// End it from the inside when its GPUs were idle for this time
    #[arg(long, value_name = "TIME", help_heading = AZURE, requires = "on")]
    pub idle: Option<TimeSpan>,

    /// Delete it before it costs more than this many dollars
    #[arg(long, value_name = "USD", help_heading = AZURE, requires = "on")]
    pub budget: Option<Usd>,

    /// Use only these regions
    #[arg(long, value_name = "REGION,REGION", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub region: Vec<String>,

    /// Use only these sizes
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', help_heading = AZURE, requires = "on")]
    pub size: Vec<String>,

    /// Allow Spot machines, which Azure may evict
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub spot: bool,

    /// Try up to N placements of `cudock plan`: where capacity or quota is missing, and after an eviction
    #[arg(long = "try", value_name = "N", default_value_t = 1, help_heading = AZURE, requires = "on")]
    pub placements: usize,

    /// Run this image
    #[arg(long, value_name = "IMAGE", help_heading = AZURE, requires = "on")]
    pub image: Option<String>,

    /// Set a variable, or pass on one of ours as a secret; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]", help_heading = AZURE, requires = "on")]
    pub env: Vec<String>,

    /// Accept requests from the internet
    #[arg(long, help_heading = AZURE, requires = "on")]
    pub public: bool,

    /// Wait until this path of a service answers
    #[arg(long, value_name = "PATH", help_heading = AZURE, requires = "on")]
    pub ready_path: Option<String>,

    /// Keep this directory of the container over evictions, in the blob container that `CUDOCK_CHECKPOINTS` names
    #[arg(long, value_name = "DIR", help_heading = AZURE, requires = "on")]
    pub checkpoints: Option<String>,

    /// Upload files of the working directory that match, and the logs, to the blob container that `CUDOCK_OUTPUTS` names, when
    /// a task of batch ends
    #[arg(long, value_name = "PATTERN", help_heading = AZURE, requires = "on")]
    pub outputs: Option<String>,

    /// Use this many processors, where the service sells them singly
    #[arg(long, value_name = "N", help_heading = AZURE, requires = "on")]
    pub cpus: Option<f64>,

    /// Use this much memory, where the service sells it by the gigabyte
    #[arg(long, value_name = "SIZE", help_heading = AZURE, requires = "on")]
    pub memory: Option<ByteSize>,

    /// Count with this many dollars per hour, where the tables have no price
    #[arg(long, value_name = "USD", help_heading = AZURE, requires = "on")]
    pub price: Option<Usd>,

    /// Pull the image with this user-assigned identity
    #[arg(long, value_name = "RESOURCE-ID", help_heading = AZURE, requires = "on")]
    pub pull_identity: Option<String>,

    /// Use this Machine Learning workspace
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub workspace: Option<String>,

    /// Use this Batch account
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub batch_account: Option<String>,

    /// Use this Container Apps environment
    #[arg(long, value_name = "GROUP/NAME", help_heading = AZURE, requires = "on")]
    pub environment: Option<String>,

    /// Let this identity delete it, where you may not assign roles
    #[arg(long, value_name = "RESOURCE-ID", help_heading = AZURE, requires = "on")]
    pub reaper_identity: Option<String>,

    /// The cluster of a named target.
    #[arg(skip)]
    pub cluster: Option<String>,

    /// The pool of a named target.
    #[arg(skip)]
    pub pool: Option<String>,
}

impl DeployFlags {
    /// The resources that they name and that nobody was asked about yet.
    pub fn existing(&self) -> ExistingResources {
        ExistingResources {
            workspace: self.workspace.clone(),
            cluster: self.cluster.clone(),
            batch_account: self.batch_account.clone(),
            pool: self.pool.clone(),
            container_apps_environment: self.environment.clone(),
            reaper_identity: self.reaper_identity.clone(),
            ..ExistingResources::default()
        }
    }

    /// The service that `--on` means, and the flags with what the project's file says about it. Flags win.
    pub fn resolve(&self, manifest: &Manifest) -> Result<(Target, Self), UsageError> {
        let name = self.on.as_deref().unwrap_or_default();
        if let Some(target) = target_named(name) {
            return Ok((target, self.clone()));
        }
        let Some(named) = manifest.targets.get(name) else {
            let known = TARGET_NAMES.into_iter().chain(manifest.targets.keys().map(String::as_str));
            let near = did_you_mean(&nearest(name, known.clone()));
            let message =
                format!("unknown target `{name}`: expected one of {}", known.collect::<Vec<_>>().join(", "));
            let error = UsageError::new(message);
            return Err(near.into_iter().fold(error, UsageError::hint));
        };
        let target = match named.service {
            DeployTarget::Vm => Target::Vm,
            DeployTarget::Batch => Target::Batch,
            DeployTarget::Ml => Target::Ml,
            DeployTarget::ContainerApps => Target::ContainerApps,
            DeployTarget::Aci => Target::Aci,
            DeployTarget::Local => {
                return Err(UsageError::new(format!("the target `{name}` is this machine"))
                    .hint("`cudock up` without --on runs it here"));
            }
        };
        let list =
            |flag: &[String], other: &[String]| if flag.is_empty() { other.to_vec() } else { flag.to_vec() };
        let one = |flag: &Option<String>, other: &Option<String>| flag.clone().or_else(|| other.clone());
        let flags = Self {
            region: list(&self.region, &named.regions),
            size: list(&self.size, &named.sizes),
            workspace: one(&self.workspace, &named.workspace),
            batch_account: one(&self.batch_account, &named.batch_account),
            environment: one(&self.environment, &named.environment),
            pull_identity: one(&self.pull_identity, &named.pull_identity),
            reaper_identity: one(&self.reaper_identity, &named.reaper_identity),
            cluster: named.cluster.clone(),
            pool: named.pool.clone(),
            ..self.clone()
        };
        Ok((target, flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_target_is_a_service_with_what_exists_there_and_flags_win() {
        let text = "[targets.lab]\nservice = \"ml\"\nworkspace = \"team/lab\"\ncluster = \"gpus\"\nregions = [\"eastus\"]\n\
                    [targets.here]\nservice = \"local\"\n";
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cudock.toml"), text).unwrap();
        let manifest = cudock_project::Project::open(directory.path()).unwrap().manifest;
        let flags = |on: &str| DeployFlags { on: Some(on.to_owned()), ..DeployFlags::default() };
        let (target, resolved) = flags("lab").resolve(&manifest).unwrap();
        assert_eq!((target, resolved.workspace.as_deref()), (Target::Ml, Some("team/lab")));
        assert_eq!((resolved.cluster.as_deref(), resolved.region), (Some("gpus"), vec!["eastus".to_owned()]));
        let other =
            DeployFlags { workspace: Some("a/b".into()), region: vec!["westeurope".into()], ..flags("lab") };
        let (_, resolved) = other.resolve(&manifest).unwrap();
        assert_eq!(
            (resolved.workspace.as_deref(), resolved.region),
            (Some("a/b"), vec!["westeurope".to_owned()])
        );
        assert_eq!(flags("vm").resolve(&manifest).unwrap().0, Target::Vm);
        for (name, words) in [("lap", "unknown target"), ("here", "this machine")] {
            let error = flags(name).resolve(&manifest).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
