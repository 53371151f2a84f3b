//! The Batch account of the user, when what ran in it is deleted.

use cudock_azure::DeploymentState;
use cudock_deploy::{DeployError, Journal, NewDeployment};

use crate::support::{ScriptedCloud, beginning, deployer, planned_batch};

const RUN: &str = "0123456789ab";
const HOST: &str = "gpubatch.westeurope.batch.azure.com";

/// A journal with a deployment that was planned with this host of the account.
fn journal(directory: &tempfile::TempDir, host: Option<&str>) -> Journal {
    let journal = Journal::open(directory.path()).unwrap();
    let planned = planned_batch("train", RUN, host);
    let new = NewDeployment {
        deployment: &planned.deployment,
        spec: &planned.spec,
        is_attached: false,
        created: beginning(),
        replaces: None,
    };
    journal.begin(&new).unwrap();
    journal.set_state(RUN, DeploymentState::Running, None).unwrap();
    journal
}

fn state(journal: &Journal) -> DeploymentState {
    journal.run(RUN).unwrap().unwrap().state
}

#[test]
fn a_deployment_is_deleted_at_the_host_that_was_recorded_or_that_the_account_tells() {
    // Entries of earlier versions have none, and were not deleted.
    for host in [Some(HOST), None] {
        let directory = tempfile::tempdir().unwrap();
        let journal = journal(&directory, host);
        let cloud = ScriptedCloud::default();
        *cloud.batch_host.lock().unwrap() = Some(HOST);
        deployer(&cloud, &journal).down("train").unwrap_or_else(|error| panic!("{host:?}: {error}"));
        assert_eq!(state(&journal), DeploymentState::Gone, "{host:?}");
    }
}

#[test]
fn a_deployment_in_an_account_that_was_deleted_is_gone() {
    for host in [Some(HOST), None] {
        let directory = tempfile::tempdir().unwrap();
        let journal = journal(&directory, host);
        let cloud = ScriptedCloud::default();
        deployer(&cloud, &journal).down("train").unwrap_or_else(|error| panic!("{host:?}: {error}"));
        assert_eq!(state(&journal), DeploymentState::Gone, "{host:?}");
    }
}

#[test]
fn a_host_that_does_not_answer_keeps_the_deployment_while_its_account_exists() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(&directory, Some(HOST));
    let cloud = ScriptedCloud::default();
    *cloud.batch_host.lock().unwrap() = Some("gpubatch.northeurope.batch.azure.com");
    let error = deployer(&cloud, &journal).down("train").unwrap_err();
    assert!(matches!(error, DeployError::Cloud { .. }), "{error}");
    assert_eq!(state(&journal), DeploymentState::Deleting);
}
