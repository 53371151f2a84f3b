//! The requests of one deployment to each service.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::fmt::Write as _;

use cudock_azure::{Deployment, DeploymentSpec, Plane, Step, Wait, deployment};
use cudock_http::Method;

use crate::specs;

fn heading(step: &Step) -> String {
    let plane = match &step.call.plane {
        Plane::ResourceManager => String::new(),
        Plane::Batch { account, region, .. } => format!(" batch {account}.{region}"),
        Plane::MlHistory { region, .. } => format!(" history {region}"),
    };
    let billed = if step.is_billed { ", billed" } else { "" };
    format!("{}{plane}: {} {} ({:?}{billed})", step.id, step.call.method, step.call.path, step.wait)
}

fn text(deployment: &Deployment) -> String {
    let mut text = String::new();
    for step in &deployment.steps {
        writeln!(text, "{}", heading(step)).unwrap();
        if let Some(body) = &step.call.body {
            writeln!(text, "{:#}", body.redacted()).unwrap();
        }
    }
    text.push_str("--- cleanup\n");
    for step in &deployment.cleanup {
        writeln!(text, "{}", heading(step)).unwrap();
    }
    text.push_str("--- losses\n");
    for loss in &deployment.losses {
        writeln!(text, "{} {}: {}; {}", loss.code, loss.severity.name(), loss.message, loss.fix).unwrap();
    }
    text
}

fn whole(service: AzureService) -> DeploymentSpec {
    let work = if service == AzureService::Batch { specs::job(2) } else { specs::serve() };
    DeploymentSpec { variables: specs::variables(), ..specs::spec(service, work) }
}

#[test]
fn a_machine_with_a_service() {
    insta::assert_snapshot!(text(&deployment(&Facts::embedded(), &whole(AzureService::Vm)).unwrap()));
}

#[test]
fn a_batch_job_with_two_items() {
    insta::assert_snapshot!(text(&deployment(&Facts::embedded(), &whole(AzureService::Batch)).unwrap()));
}

#[test]
fn an_online_endpoint() {
    insta::assert_snapshot!(text(&deployment(&Facts::embedded(), &whole(AzureService::Ml)).unwrap()));
}

#[test]
fn a_container_app() {
    insta::assert_snapshot!(text(
        &deployment(&Facts::embedded(), &whole(AzureService::ContainerApps)).unwrap()
    ));
}

#[test]
fn a_container_group() {
    insta::assert_snapshot!(text(&deployment(&Facts::embedded(), &whole(AzureService::Aci)).unwrap()));
}

/// Nothing is paid for before the cloud can delete it by itself, and everything outside of the two groups is deleted by
/// name.
#[test]
fn the_reaper_comes_before_everything_that_is_billed() {
    for spec in specs::all() {
        let Ok(deployment) = deployment(&Facts::embedded(), &spec) else { continue };
        let first = &deployment.steps[0];
        assert_eq!((first.id.as_str(), first.is_billed, first.wait), ("reaper", false, Wait::Operation));
        assert!(deployment.steps.iter().any(|step| step.is_billed), "{spec:?}");
        let reaper = first.call.body.as_ref().unwrap().redacted().to_string();
        assert!(reaper.contains("2026-11-18T02:00:00Z"), "{reaper}");
        for step in deployment.steps.iter().skip(1) {
            let path = step.call.path.split('?').next().unwrap();
            let own = "/resourceGroups/cudock-0123456789ab/";
            let is_inside = path.contains(own)
                || (spec.existing.batch_account.is_none() && matches!(step.call.plane, Plane::Batch { .. }));
            let is_child = |parent: &str| path.starts_with(parent);
            let is_deleted = deployment.cleanup.iter().any(|step| {
                step.call.method == Method::DELETE && is_child(step.call.path.split('?').next().unwrap())
            });
            let is_job = path == "/jobs";
            assert!(is_inside || is_deleted || is_job, "{:?} leaves {path}", spec.service);
        }
    }
}

#[test]
fn ids_of_steps_are_unique_and_cleanup_has_no_body() {
    for spec in specs::all() {
        let Ok(deployment) = deployment(&Facts::embedded(), &spec) else { continue };
        for steps in [&deployment.steps, &deployment.cleanup] {
            let ids: std::collections::BTreeSet<&str> = steps.iter().map(|step| step.id.as_str()).collect();
            assert_eq!(ids.len(), steps.len(), "{ids:?}");
        }
        assert!(deployment.cleanup.iter().all(|step| step.call.body.is_none()));
        let last: Vec<&str> = deployment.cleanup.iter().rev().take(2).map(|step| step.id.as_str()).collect();
        assert_eq!(last, ["record", "reaper"]);
    }
}

/// A repeated translation is the same, so that a request that is sent again changes nothing.
#[test]
fn the_same_workload_gives_the_same_requests() {
    for spec in specs::all() {
        assert_eq!(deployment(&Facts::embedded(), &spec).ok(), deployment(&Facts::embedded(), &spec).ok());
    }
}

#[test]
fn a_user_without_the_right_to_assign_roles_needs_no_role_assignment() {
    let mut spec = specs::spec(AzureService::Vm, specs::serve());
    let sends = |spec: &DeploymentSpec, text: &str| {
        let deployment = deployment(&Facts::embedded(), spec).unwrap();
        let mut bodies = deployment.steps.iter().map(|step| step.call.body.as_ref().unwrap().redacted());
        bodies.any(|body| body.to_string().contains(text))
    };
    // The reaper takes missing rights for a group that is gone only if its rights go with the group.
    for text in ["Microsoft.Authorization/roleAssignments", "AuthorizationFailed"] {
        spec.existing.reaper_identity = None;
        assert!(sends(&spec, text), "{text}");
        spec.existing.reaper_identity = Some(specs::IDENTITY.to_owned());
        assert!(!sends(&spec, text), "{text}");
    }
}

#[test]
fn names_of_clusters_do_not_end_in_a_dash_and_digits() {
    let mut spec = specs::spec(AzureService::Ml, specs::job(2));
    spec.run_id = "012345678901".to_owned();
    let deployment = deployment(&Facts::embedded(), &spec).unwrap();
    let cluster = deployment.steps.iter().find(|step| step.id == "cluster").unwrap();
    assert!(cluster.call.path.contains("/computes/cudock012345678901?"), "{}", cluster.call.path);
}

#[test]
fn the_logs_of_a_batch_job_are_those_of_its_tasks() {
    for items in [0, 1, 3] {
        let deployment =
            deployment(&Facts::embedded(), &specs::spec(AzureService::Batch, specs::job(items))).unwrap();
        let step = deployment.steps.iter().find(|step| step.id == "tasks").unwrap();
        let tasks = step.call.body.as_ref().unwrap().redacted()["value"].as_array().unwrap();
        assert_eq!(tasks.len(), items.max(1));
        for task in tasks {
            let part = format!("/tasks/{}/files/", task["id"].as_str().unwrap());
            let calls = deployment.identity.log_calls();
            assert!(calls.iter().any(|call| call.path.contains(&part)), "{items}: {part}");
        }
    }
}
