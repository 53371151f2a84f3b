//! Costs by the services' clocks.

use cudock_azure::DeploymentState;
use cudock_base::{Date, Usd};
use cudock_deploy::{CostQuery, Journal, cost};
use cudock_facts::Facts;

use crate::support::{Recorder, Script, ScriptedCloud, deployer, planned, planned_service};

fn query(facts: &Facts) -> CostQuery<'_> {
    CostQuery { name: None, today: Date::new(2031, 5, 2).unwrap(), facts: Some(facts) }
}

#[test]
fn a_month_is_the_sum_of_its_billed_seconds() {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 30, work: 1000, exit_code: 0 });
    for run_id in ["aaaaaaaaaaaa", "bbbbbbbbbbbb"] {
        deployer(&cloud, &journal).up_attached(&[planned("train", run_id)], &Recorder::default()).unwrap();
    }
    let report = cost(&journal, Some(&cloud), &query(&facts)).unwrap();
    let [train] = report.workloads.as_slice() else { panic!("{report:?}") };
    assert_eq!((train.name.as_str(), train.deployments, train.billed_seconds), ("train", 2, 2000));
    // 2,000 s at $3.60 per hour.
    assert_eq!((report.this_month, report.per_hour), (Usd::from_cents(200), Usd::ZERO));
    let other = CostQuery { today: Date::new(2031, 6, 1).unwrap(), ..query(&facts) };
    let report = cost(&journal, Some(&cloud), &other).unwrap();
    assert_eq!((report.this_month, report.month.as_str()), (Usd::ZERO, "2031-06"));
}

#[test]
fn what_runs_is_forecast_until_it_expires() {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 100, work: 1_000_000, exit_code: 0 });
    let record = deployer(&cloud, &journal)
        .up_detached(&[planned_service("api", "aaaaaaaaaaaa")], &Recorder::default())
        .unwrap();
    let report = cost(&journal, Some(&cloud), &query(&facts)).unwrap();
    assert_eq!(report.per_hour, Usd::from_cents(360));
    let whole = record.expires.since(record.billed.from.unwrap());
    assert_eq!(report.until_expiry, Usd::from_cents(360).share(whole.as_millis(), 3_600_000));
    assert!(report.so_far < report.until_expiry);
}

#[test]
fn what_the_cloud_deleted_by_itself_is_billed_until_then() {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 100, work: 1_000_000, exit_code: 0 });
    let record = deployer(&cloud, &journal)
        .up_detached(&[planned_service("api", "aaaaaaaaaaaa")], &Recorder::default())
        .unwrap();
    cloud.advance(1234);
    let until = cloud.delete_groups();
    cloud.advance(5000);
    let notes = deployer(&cloud, &journal).update_costs().unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let known = journal.run("aaaaaaaaaaaa").unwrap().unwrap();
    assert_eq!(known.billed.from, record.billed.from);
    assert_eq!((known.billed.until, known.billed.is_at_most), (Some(until), false));
    // The journal keeps it until a deletion has confirmed that nothing is left.
    assert_eq!(known.state, DeploymentState::Running);
    let report = cost(&journal, Some(&cloud), &query(&facts)).unwrap();
    assert_eq!(report.per_hour, Usd::ZERO);
}

#[test]
fn a_job_that_ended_unseen_is_billed_at_most_until_its_deletion() {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 100, work: 1000, exit_code: 0 });
    deployer(&cloud, &journal)
        .up_detached(&[planned("train", "aaaaaaaaaaaa")], &Recorder::default())
        .unwrap();
    cloud.advance(5000);
    let until = cloud.delete_groups();
    deployer(&cloud, &journal).update_costs().unwrap();
    let known = journal.run("aaaaaaaaaaaa").unwrap().unwrap();
    assert_eq!((known.billed.until, known.billed.is_at_most), (Some(until), true));
    let report = cost(&journal, Some(&cloud), &query(&facts)).unwrap();
    assert!(!report.deployments[0].exact && !report.workloads[0].exact, "{report:?}");
    let (lines, _) = cudock_deploy::text::cost(&report);
    assert!(lines.iter().any(|line| line.contains("billed for at most 1 h ")), "{lines:?}");
    assert!(cudock_deploy::text::deleted(&known).contains("billed for at most 1 h "), "{known:?}");
}
