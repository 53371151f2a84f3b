//! The meaning of a deployment's flags, with the targets that the project names.

use cudock_azure::ExistingResources;
use cudock_base::text::suggest::nearest;
use cudock_base::{UsageError, did_you_mean};
use cudock_facts::services::AzureService;
use cudock_project::{DeployFlags, DeployTarget, Manifest};

/// The resources that flags name, without details from Azure.
pub(crate) fn existing(flags: &DeployFlags) -> ExistingResources {
    ExistingResources {
        workspace: flags.workspace.clone(),
        cluster: flags.cluster.clone(),
        batch_account: flags.batch_account.clone(),
        pool: flags.pool.clone(),
        container_apps_environment: flags.environment.clone(),
        reaper_identity: flags.reaper_identity.clone(),
        ..ExistingResources::default()
    }
}

/// The service that `--on` means, and the flags merged with its settings in the project's file. Flags win.
pub fn resolve(flags: &DeployFlags, manifest: &Manifest) -> Result<(AzureService, DeployFlags), UsageError> {
    let name = flags.on.as_deref().unwrap_or_default();
    if let Some(service) = AzureService::named(name).filter(|service| service.is_deployable()) {
        return Ok((service, flags.clone()));
    }
    let Some(named) = manifest.targets.get(name) else {
        let mut known: Vec<&str> = AzureService::deployable().map(AzureService::id).collect();
        known.extend(manifest.targets.keys().map(String::as_str));
        let near = did_you_mean(&nearest(name, known.iter().copied()));
        let message = format!("unknown target `{name}`: expected one of {}", known.join(", "));
        let error = UsageError::new(message);
        return Err(near.into_iter().fold(error, UsageError::hint));
    };
    let DeployTarget::Service(service) = named.service else {
        return Err(UsageError::new(format!("the target `{name}` is this machine"))
            .hint("`cudock up` without --on runs it here"));
    };
    let list =
        |flag: &[String], other: &[String]| if flag.is_empty() { other.to_vec() } else { flag.to_vec() };
    let one = |flag: &Option<String>, other: &Option<String>| flag.clone().or_else(|| other.clone());
    let resolved = DeployFlags {
        region: list(&flags.region, &named.regions),
        size: list(&flags.size, &named.sizes),
        workspace: one(&flags.workspace, &named.workspace),
        batch_account: one(&flags.batch_account, &named.batch_account),
        environment: one(&flags.environment, &named.environment),
        pull_identity: one(&flags.pull_identity, &named.pull_identity),
        reaper_identity: one(&flags.reaper_identity, &named.reaper_identity),
        cluster: named.cluster.clone(),
        pool: named.pool.clone(),
        ..flags.clone()
    };
    Ok((service, resolved))
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
        let (service, resolved) = resolve(&flags("lab"), &manifest).unwrap();
        assert_eq!((service, resolved.workspace.as_deref()), (AzureService::Ml, Some("team/lab")));
        assert_eq!((resolved.cluster.as_deref(), resolved.region), (Some("gpus"), vec!["eastus".to_owned()]));
        let other =
            DeployFlags { workspace: Some("a/b".into()), region: vec!["westeurope".into()], ..flags("lab") };
        let (_, resolved) = resolve(&other, &manifest).unwrap();
        assert_eq!(
            (resolved.workspace.as_deref(), resolved.region),
            (Some("a/b"), vec!["westeurope".to_owned()])
        );
        assert_eq!(resolve(&flags("vm"), &manifest).unwrap().0, AzureService::Vm);
        for (name, expected) in [("lap", "unknown target"), ("here", "this machine")] {
            let error = resolve(&flags(name), &manifest).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
