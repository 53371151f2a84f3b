//! Workloads from `cudock.toml` and from container groups.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::path::Path;
use std::time::Duration;

use cudock_azure::{
    DeploymentSpec, ExistingResources, RegistryAccess, SpecOptions, SpecPlacement, SpecVariable, WorkKind,
    deployment,
};
use cudock_base::{Report, Timestamp, Usd};

fn placement(service: AzureService, size: Option<&str>) -> SpecPlacement {
    SpecPlacement {
        service,
        region: "westeurope".to_owned(),
        size: size.map(str::to_owned),
        gpus: u32::from(size.is_some()),
        instances: 1,
        is_spot: false,
        price_per_hour: Usd::from_cents(53),
    }
}

fn options() -> SpecOptions {
    SpecOptions {
        run_id: "0123456789ab".to_owned(),
        subscription: "11111111-2222-3333-4444-555555555555".to_owned(),
        owner: "someone@example.com".to_owned(),
        state: None,
        expires: Timestamp::parse("2026-11-18T02:00:00Z").unwrap(),
        time_limit: Duration::from_secs(3600),
        idle: None,
        command: Vec::new(),
        items: Vec::new(),
        port: None,
        ready_path: None,
        is_public: true,
        variables: Vec::new(),
        registry: None,
        checkpoints: None,
        outputs: None,
        existing: ExistingResources::default(),
    }
}

fn manifest(text: &str) -> cudock_project::Manifest {
    cudock_project::parse(Path::new("cudock.toml"), text).unwrap()
}

#[test]
fn a_project_becomes_a_deployment_in_the_place_of_the_plan() {
    let text = "[workload]\nimage = \"team/digits:1\"\n[serve]\nlisten = [\"0.0.0.0:9000\"]\n";
    let place = placement(AzureService::Vm, Some("Standard_NC4as_T4_v3"));
    let spec = DeploymentSpec::from_manifest(&Facts::embedded(), "digits", &manifest(text), place, options())
        .unwrap();
    assert_eq!(spec.work, WorkKind::Serve { port: 9000, ready_path: None, is_public: true });
    assert_eq!((spec.cpus, spec.memory_gib, spec.gpus), (4.0, 28.0, 1));
    deployment(&Facts::embedded(), &spec).unwrap();

    let text = "[workload]\nkind = \"job\"\nimage = \"team/digits:1\"\nduration = \"1h\"\n[needs]\nnodes = 2\ngpus = 4\n";
    let place = SpecPlacement {
        instances: 2,
        gpus: 4,
        ..placement(AzureService::Batch, Some("Standard_NC64as_T4_v3"))
    };
    let more = SpecOptions { command: vec!["train".to_owned()], ..options() };
    let spec =
        DeploymentSpec::from_manifest(&Facts::embedded(), "digits", &manifest(text), place, more).unwrap();
    let time_limit = Duration::from_secs(3600);
    assert_eq!(spec.work, WorkKind::MultiNode { nodes: 2, processes_per_node: 4, time_limit });
    deployment(&Facts::embedded(), &spec).unwrap();
}

#[test]
fn a_project_without_an_image_that_azure_can_pull_is_refused() {
    for (text, expected) in [
        ("", "has no image"),
        ("[workload]\nimage = \"oci:build\"\n", "on this machine"),
        ("[workload]\nimage = \"image.tar\"\n", "on this machine"),
    ] {
        let place = placement(AzureService::Vm, Some("Standard_NC4as_T4_v3"));
        let error = DeploymentSpec::from_manifest(&Facts::embedded(), "x", &manifest(text), place, options())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

const GROUP: &str = "
name: hello
properties:
  restartPolicy: Always
  osType: Linux
  imageRegistryCredentials: [{server: team.azurecr.io, username: puller, password: abc}]
  ipAddress: {type: Public, ports: [{port: 80}]}
  volumes: [{name: scratch, emptyDir: {}}]
  containers:
  - name: web
    properties:
      image: team.azurecr.io/web:1
      command: [serve, --fast]
      ports: [{port: 80}, {port: 90}]
      environmentVariables: [{name: A, value: b}, {name: TOKEN, secureValue: c}]
      volumeMounts: [{name: scratch, mountPath: /scratch}]
      readinessProbe: {httpGet: {path: /ready, port: 80}}
      livenessProbe: {exec: {command: [check]}}
      resources: {requests: {cpu: 0.5, memoryInGB: 1.5}}
";

#[test]
fn a_container_group_becomes_a_deployment_and_its_losses_are_stated() {
    let group = cudock_group::read(GROUP).unwrap();
    let (spec, losses) =
        DeploymentSpec::from_group(&Facts::embedded(), &group, placement(AzureService::Aci, None), options())
            .unwrap();
    assert_eq!(spec.name, "hello");
    assert_eq!(spec.command, ["serve", "--fast"]);
    assert_eq!(
        spec.work,
        WorkKind::Serve { port: 80, ready_path: Some("/ready".to_owned()), is_public: true }
    );
    assert_eq!((spec.cpus, spec.memory_gib), (0.5, 1.5));
    assert!(
        matches!(&spec.registry, Some(RegistryAccess::Password { username, .. }) if username == "puller")
    );
    assert!(matches!(&spec.variables[1], SpecVariable::Secret { name, .. } if name == "TOKEN"));
    let messages: Vec<&str> = losses.iter().map(|loss| loss.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the volume `scratch` (emptyDir) at /scratch is not mounted",
            "the liveness probe is not deployed",
            "only the first TCP port is deployed",
        ]
    );
    deployment(&Facts::embedded(), &spec).unwrap();
    // The same group on a service with GPUs.
    let place = placement(AzureService::ContainerApps, Some("Consumption-GPU-NC8as-T4"));
    let (spec, _) = DeploymentSpec::from_group(&Facts::embedded(), &group, place, options()).unwrap();
    deployment(&Facts::embedded(), &spec).unwrap();
}

#[test]
fn a_group_that_does_not_restart_is_a_job() {
    for (policy, expected) in [("Never", 0), ("OnFailure", 3)] {
        let text = GROUP.replace("Always", policy);
        let group = cudock_group::read(&text).unwrap();
        let (spec, _) = DeploymentSpec::from_group(
            &Facts::embedded(),
            &group,
            placement(AzureService::Aci, None),
            options(),
        )
        .unwrap();
        assert!(matches!(spec.work, WorkKind::Job { retries, .. } if retries == expected), "{:?}", spec.work);
    }
}

#[test]
fn a_group_that_cannot_be_deployed_is_refused() {
    let second =
        "  - name: sidecar\n    properties: {image: x, resources: {requests: {cpu: 1, memoryInGB: 1}}}\n";
    let no_ports = GROUP
        .replace("      ports: [{port: 80}, {port: 90}]\n", "")
        .replace("  ipAddress: {type: Public, ports: [{port: 80}]}\n", "");
    for (text, expected) in [(format!("{GROUP}{second}"), "2 containers"), (no_ports, "no TCP port")] {
        let group = cudock_group::read(&text).unwrap();
        let error = DeploymentSpec::from_group(
            &Facts::embedded(),
            &group,
            placement(AzureService::Aci, None),
            options(),
        )
        .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_group_with_a_sidecar_is_sent_to_a_service_that_has_what_it_asks_for() {
    let second =
        "  - name: sidecar\n    properties: {image: x, resources: {requests: {cpu: 1, memoryInGB: 1}}}\n";
    let with_gpu = GROUP.replace("memoryInGB: 1.5}", "memoryInGB: 1.5, gpu: {count: 1, sku: V100}}");
    for (text, has_gpu) in [(GROUP, false), (with_gpu.as_str(), true)] {
        let group = cudock_group::read(&format!("{text}{second}")).unwrap();
        let error = DeploymentSpec::from_group(
            &Facts::embedded(),
            &group,
            placement(AzureService::Aci, None),
            options(),
        )
        .unwrap_err();
        let hint = &error.hints()[0];
        assert_eq!(hint.contains("cudock migrate"), has_gpu, "{hint}");
        assert_eq!(
            hint.contains("az container create"),
            !has_gpu,
            "Container Instances have no GPUs: {hint}"
        );
    }
}

#[test]
fn another_gpu_and_less_than_a_group_requests_are_reported() {
    let asks = |sku: &str, cpu: &str| {
        let resources = format!("requests: {{cpu: {cpu}, memoryInGB: 1.5, gpu: {{count: 1, sku: {sku}}}}}");
        let text = GROUP.replace("requests: {cpu: 0.5, memoryInGB: 1.5}", &resources);
        cudock_group::read(&text).unwrap()
    };
    let losses_on = |reading: &cudock_group::Reading, size: &str| {
        let (_, losses) = DeploymentSpec::from_group(
            &Facts::embedded(),
            reading,
            placement(AzureService::Vm, Some(size)),
            options(),
        )
        .unwrap();
        losses.iter().map(|loss| format!("{}; {}", loss.message, loss.fix)).collect::<Vec<_>>().join("\n")
    };
    let t4 = "Standard_NC4as_T4_v3";
    let other = losses_on(&asks("V100", "4"), t4);
    assert!(other.contains("the group asks for a V100, and Standard_NC4as_T4_v3 has a T4"), "{other}");
    assert!(other.contains("--size Standard_ND40rs_v2 has the one"), "{other}");
    let gone = losses_on(&asks("K80", "4"), t4);
    assert!(gone.contains("no size of Azure has a K80 anymore"), "{gone}");
    let same = losses_on(&asks("V100", "4"), "Standard_ND40rs_v2");
    assert!(!same.contains("asks for"), "{same}");
    let small = losses_on(&asks("V100", "6"), t4);
    assert!(
        small.contains("asks for 6 processors and 1.5 GiB of memory, and Standard_NC4as_T4_v3 has 4"),
        "{small}"
    );
}

#[test]
fn what_only_azure_can_act_on_is_reported_if_the_deployment_does_not_have_it() {
    let text = GROUP
        .replace(
            "name: hello\n",
            "name: hello\nlocation: westeurope\nid: /x\nzones: ['1']\ntags: {team: vision}\n",
        )
        .replace("  osType: Linux\n", "  osType: Linux\n  priority: Spot\n  provisioningState: Succeeded\n");
    let group = cudock_group::read(&text).unwrap();
    assert_eq!(group.group.location.as_deref(), Some("westeurope"));
    let (_, losses) =
        DeploymentSpec::from_group(&Facts::embedded(), &group, placement(AzureService::Aci, None), options())
            .unwrap();
    let messages: Vec<&str> = losses.iter().map(|loss| loss.message.as_str()).take(3).collect();
    assert_eq!(
        messages,
        ["`zones` is not deployed", "`tags` is not deployed", "`properties.priority` is not deployed"],
        "not the location, which is where it goes, and nothing that Azure itself has written"
    );
}
