//! The list of deployments.

use cudock_azure::DeploymentState;
use cudock_base::Usd;
use cudock_deploy::{Journal, NewDeployment, ps};

use crate::support::{Recorder, Script, ScriptedCloud, beginning, deployer, planned, planned_service};

#[test]
fn a_thousand_entries_are_listed_without_the_cloud() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    for number in 0..1000_u64 {
        let id = format!("{number:012x}");
        let planned = planned(&id, &id);
        journal
            .begin(&NewDeployment {
                deployment: &planned.deployment,
                spec: &planned.spec,
                is_attached: false,
                created: beginning(),
                replaces: None,
            })
            .unwrap();
        if number % 2 == 0 {
            journal.set_state(&id, DeploymentState::Gone, None).unwrap();
        }
    }
    let (existing, notes) = ps(&journal, None, false).unwrap();
    assert_eq!((existing.len(), notes.len()), (500, 0));
    assert_eq!(ps(&journal, None, true).unwrap().0.len(), 1000);
}

#[test]
fn state_and_cost_come_from_the_cloud() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 10, work: 1_000_000, exit_code: 0 });
    for (name, run_id) in [("a", "aaaaaaaaaaaa"), ("b", "bbbbbbbbbbbb")] {
        deployer(&cloud, &journal)
            .up_detached(&[planned_service(name, run_id)], &Recorder::default())
            .unwrap();
    }
    cloud.advance(3600);
    let (deployments, notes) = ps(&journal, Some(&cloud), false).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    for deployment in &deployments {
        assert_eq!((deployment.deployment.state, deployment.deployment.service), ("running", "aci"));
        assert_eq!(deployment.cost_per_hour, Usd::from_cents(360));
        assert!(deployment.cost_so_far >= Usd::from_cents(360), "{deployment:?}");
        assert!(deployment.resources.iter().any(|id| id.contains("containerGroups")), "{deployment:?}");
    }
    assert_eq!(deployments.len(), 2);
}
