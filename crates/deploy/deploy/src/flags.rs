//! What the flags of a deployment mean, with the targets that the project names.

use cudock_azure::{ExistingResources, Target};
use cudock_base::text::suggest::nearest;
use cudock_base::{UsageError, did_you_mean};
use cudock_project::{DeployFlags, DeployTarget, Manifest};

use crate::names::{TARGET_NAMES, target_named};

/// The resources that flags name and that nobody was asked about yet.
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

/// The service that `--on` means, and the flags with what the project's file says about it. Flags win.
pub fn resolve(flags: &DeployFlags, manifest: &Manifest) -> Result<(Target, DeployFlags), UsageError> {
    let name = flags.on.as_deref().unwrap_or_default();
    if let Some(target) = target_named(name) {
        return Ok((target, flags.clone()));
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
    Ok((target, resolved))
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
        let (target, resolved) = resolve(&flags("lab"), &manifest).unwrap();
        assert_eq!((target, resolved.workspace.as_deref()), (Target::Ml, Some("team/lab")));
        assert_eq!((resolved.cluster.as_deref(), resolved.region), (Some("gpus"), vec!["eastus".to_owned()]));
        let other =
            DeployFlags { workspace: Some("a/b".into()), region: vec!["westeurope".into()], ..flags("lab") };
        let (_, resolved) = resolve(&other, &manifest).unwrap();
        assert_eq!(
            (resolved.workspace.as_deref(), resolved.region),
            (Some("a/b"), vec!["westeurope".to_owned()])
        );
        assert_eq!(resolve(&flags("vm"), &manifest).unwrap().0, Target::Vm);
        for (name, words) in [("lap", "unknown target"), ("here", "this machine")] {
            let error = resolve(&flags(name), &manifest).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
