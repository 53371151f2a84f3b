//! Workloads that a service cannot run, or would accept and run wrongly.

use cudock_azure::{DeploymentSpec, RegistryAccess, WorkKind, deployment};
use cudock_base::{ErrorKind, Report};
use cudock_facts::Facts;
use cudock_facts::services::AzureService;

use crate::specs::{self, job, multi_node, serve, spec};

fn change(mut spec: DeploymentSpec, change: impl FnOnce(&mut DeploymentSpec)) -> DeploymentSpec {
    change(&mut spec);
    spec
}

fn idle(spec: DeploymentSpec) -> DeploymentSpec {
    change(spec, |spec| spec.idle = Some(std::time::Duration::from_secs(900)))
}

fn kept(spec: DeploymentSpec, directory: &str) -> DeploymentSpec {
    change(spec, |spec| spec.checkpoints = Some(specs::checkpoints(directory)))
}

#[test]
fn what_a_service_cannot_run_is_refused() {
    let sized = |service, work, size: &str| {
        let size = size.to_owned();
        change(spec(service, work), |spec| spec.size = Some(size))
    };
    let cases: Vec<(DeploymentSpec, &str)> = vec![
        (change(spec(AzureService::Aci, serve()), |s| s.gpus = 1), "no GPUs since 2025-07-14"),
        (spec(AzureService::Aci, multi_node()), "cannot work together"),
        (spec(AzureService::Aci, job(80)), "at most 60 containers"),
        (change(spec(AzureService::Aci, serve()), |s| s.is_spot = true), "no public address"),
        (change(spec(AzureService::ContainerApps, serve()), |s| s.gpus = 2), "one GPU at most"),
        (change(spec(AzureService::ContainerApps, serve()), |s| s.is_spot = true), "no Spot capacity"),
        (change(spec(AzureService::ContainerApps, serve()), |s| s.size = None), "need a workload profile"),
        (sized(AzureService::ContainerApps, serve(), "Standard_NC4as_T4_v3"), "not a GPU workload profile"),
        (change(spec(AzureService::ContainerApps, serve()), |s| s.memory_gib = 400.0), "56 GiB of memory"),
        (spec(AzureService::ContainerApps, multi_node()), "cannot address each other"),
        (spec(AzureService::Batch, serve()), "runs jobs, not services"),
        (sized(AzureService::Batch, job(0), "Standard_NV36ads_A10_v5"), "takes the GRID driver"),
        (change(spec(AzureService::Batch, job(0)), |s| s.is_spot = true), "Spot nodes need a Batch account"),
        (
            change(spec(AzureService::Batch, job(0)), |s| s.registry = Some(specs::identity_access())),
            "no identity",
        ),
        (change(spec(AzureService::Batch, multi_node()), |s| s.instances = 3), "needs 2 instances"),
        (
            change(spec(AzureService::Ml, job(0)), |s| s.existing.workspace = None),
            "needs an existing workspace",
        ),
        (
            change(spec(AzureService::Ml, job(0)), |s| s.existing.workspace = Some("vision".into())),
            "as GROUP/NAME",
        ),
        (change(spec(AzureService::Ml, job(0)), |s| s.command.clear()), "needs the command"),
        (
            change(spec(AzureService::Ml, serve()), |s| s.command = vec!["serve".into()]),
            "image's own program",
        ),
        (change(spec(AzureService::Ml, serve()), |s| s.is_spot = true), "no Spot capacity"),
        (
            change(spec(AzureService::Ml, serve()), |s| {
                s.work = WorkKind::Serve { port: 80, ready_path: None, is_public: true };
            }),
            "readiness probe",
        ),
        (
            change(spec(AzureService::Ml, job(0)), |s| s.registry = Some(specs::password_access())),
            "no password",
        ),
        (
            change(spec(AzureService::Ml, job(0)), |s| s.command.push("${{search_space.nope}}".into())),
            "search space",
        ),
        (
            change(spec(AzureService::Ml, job(2)), |s| {
                if let WorkKind::Job { concurrent, .. } = &mut s.work {
                    *concurrent = 5000;
                }
            }),
            "at most 1000 jobs",
        ),
        (sized(AzureService::Ml, job(0), "Standard_NC6_v3"), "not a GPU size"),
        (sized(AzureService::Vm, serve(), "Standard_NC6s_v3"), "has retired"),
        (sized(AzureService::Vm, serve(), "Standard_ND128isr_NDR_GB200_v6"), "arm64"),
        (
            change(sized(AzureService::Vm, serve(), "Standard_ND96isr_MI300X_v5"), |s| s.gpus = 8),
            "no NVIDIA GPU",
        ),
        (change(spec(AzureService::Vm, serve()), |s| s.gpus = 2), "has 1 GPUs, not 2"),
        (change(spec(AzureService::Vm, serve()), |s| s.size = None), "needs a virtual machine size"),
        (spec(AzureService::Vm, multi_node()), "one machine"),
        (change(spec(AzureService::Vm, job(3)), |s| s.command.clear()), "arguments of a command"),
        (spec(AzureService::Vm, job(3000)), "64 KiB"),
        (kept(spec(AzureService::Aci, job(1)), "/c"), "keeps no directory"),
        (kept(spec(AzureService::ContainerApps, job(1)), "/c"), "keeps no directory"),
        (kept(spec(AzureService::Ml, serve()), "/c"), "is not evicted"),
        (kept(spec(AzureService::Vm, job(1)), "relative"), "not the path of a directory"),
        (kept(spec(AzureService::Vm, job(1)), "/a/../etc"), "not the path of a directory"),
        (
            change(kept(spec(AzureService::Vm, job(1)), "/c"), |s| {
                s.checkpoints.as_mut().unwrap().storage = None;
            }),
            "blob storage",
        ),
        (idle(spec(AzureService::Aci, job(1))), "have no GPUs"),
        (idle(spec(AzureService::Ml, serve())), "cannot end by itself"),
        (idle(spec(AzureService::Ml, multi_node())), "work together"),
        (idle(change(spec(AzureService::Batch, job(0)), |s| s.command.clear())), "the program that it ends"),
        (idle(change(sized(AzureService::Vm, job(0), "Standard_D4s_v5"), |s| s.gpus = 0)), "uses no GPU"),
        (
            idle(change(spec(AzureService::Vm, job(0)), |s| {
                s.existing.reaper_identity = Some(specs::IDENTITY.into());
            })),
            "--reaper-identity",
        ),
    ];
    for (spec, expected) in cases {
        let error = deployment(&Facts::embedded(), &spec).expect_err(expected);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(error.kind(), ErrorKind::Input);
    }
}

/// Nothing of the user's gets into a path, an expression or a tag unchecked.
#[test]
fn names_that_do_not_belong_into_a_request_are_refused() {
    let base = || spec(AzureService::Aci, serve());
    let cases: Vec<(DeploymentSpec, &str)> = vec![
        (change(base(), |s| s.run_id = "../../x".into()), "run id"),
        (change(base(), |s| s.run_id = "0123456789AB".into()), "run id"),
        (change(base(), |s| s.subscription = "a/b".into()), "subscription"),
        (change(base(), |s| s.region = "west europe".into()), "region"),
        (change(base(), |s| s.name = "[resourceGroup().id]".into()), "tag"),
        (change(base(), |s| s.owner = String::new()), "tag"),
        (change(base(), |s| s.name = "x".repeat(257)), "tag"),
        (change(base(), |s| s.image = "a b".into()), "reference"),
        (change(base(), |s| s.cpus = f64::NAN), "processors"),
        (change(base(), |s| s.instances = 0), "instances"),
        (change(base(), |s| s.variables = [specs::variables(), specs::variables()].concat()), "twice"),
        (
            change(base(), |s| {
                s.registry = Some(RegistryAccess::Identity { server: "a".into(), identity: "/x?y".into() });
            }),
            "resource id",
        ),
        (
            change(base(), |s| s.work = WorkKind::Serve { port: 0, ready_path: None, is_public: true }),
            "port 0",
        ),
        (
            change(base(), |s| {
                s.work = WorkKind::Serve { port: 1, ready_path: Some("ready".into()), is_public: true };
            }),
            "does not begin with",
        ),
    ];
    for (spec, expected) in cases {
        let error = deployment(&Facts::embedded(), &spec).expect_err(expected);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn what_is_lost_is_stated() {
    let codes = |spec: &DeploymentSpec| -> Vec<&str> {
        deployment(&Facts::embedded(), spec).unwrap().losses.iter().map(|loss| loss.code).collect()
    };
    let full = |service, work| {
        change(spec(service, work), |s| {
            s.variables = specs::variables();
        })
    };
    let with_account = change(full(AzureService::Batch, job(3)), |s| {
        s.existing.batch_account = Some("shared/gpubatch".into());
    });
    let cases = [
        (full(AzureService::Vm, serve()), vec![]),
        (full(AzureService::Vm, job(3)), vec!["CD0845"]),
        (full(AzureService::Batch, job(3)), vec!["CD0840", "CD0841"]),
        (with_account, vec!["CD0840", "CD0848", "CD0841"]),
        (full(AzureService::Ml, serve()), vec!["CD0848", "CD0846", "CD0841"]),
        (full(AzureService::Ml, multi_node()), vec!["CD0848", "CD0841"]),
        (full(AzureService::ContainerApps, serve()), vec![]),
        (full(AzureService::ContainerApps, job(3)), vec!["CD0845"]),
        (full(AzureService::Aci, job(1)), vec!["CD0845"]),
        (
            change(spec(AzureService::Ml, job(0)), |s| s.registry = Some(specs::identity_access())),
            vec!["CD0848", "CD0845", "CD0837"],
        ),
        (spec(AzureService::ContainerApps, serve()), vec![]),
    ];
    for (spec, expected) in cases {
        assert_eq!(codes(&spec), expected, "{:?} {:?}", spec.service, spec.work);
    }
}

#[test]
fn every_code_has_a_page() {
    let facts = cudock_facts::Facts::embedded();
    for code in cudock_azure::codes::ALL {
        assert!(facts.findings().get(code).is_some(), "{code}");
    }
}
