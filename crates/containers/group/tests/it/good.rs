//! Files that are good: what they become, and what is noted on the way.

use std::time::Duration;

use cudock_group::probe::Timing;
use cudock_group::restart::RestartPolicy;
use cudock_group::sequence::{Action, Event, Sequence};
use cudock_group::{
    HttpGet, NoteKind, Os, Port, PortProtocol, ProbeAction, Reading, VariableValue, VolumeKind, read,
};

const EVERYTHING: &str = include_str!("../files/everything.yaml");

fn group(properties: &str) -> String {
    format!("name: demo\nproperties:\n{properties}\n")
}

#[track_caller]
fn good(text: &str) -> Reading {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn notes(reading: &Reading) -> Vec<String> {
    reading.notes.iter().map(ToString::to_string).collect()
}

#[test]
fn every_field_of_a_container_is_read() {
    let Reading { group, .. } = good(EVERYTHING);
    assert_eq!(group.name, "everything");
    assert_eq!((group.os, group.restart_policy), (Os::Linux, RestartPolicy::OnFailure));
    let [model, gateway] = &group.containers[..] else { panic!("{group:?}") };
    assert_eq!(model.command, ["/usr/bin/serve", "--port", "8081"]);
    assert_eq!(model.ports, [Port { port: 8081, protocol: PortProtocol::Tcp }]);
    let values: Vec<&VariableValue> = model.environment.iter().map(|variable| &variable.value).collect();
    let [VariableValue::Plain(log), VariableValue::Secure(token), VariableValue::Plain(empty)] = values[..]
    else {
        panic!("{values:?}")
    };
    assert_eq!((log.as_str(), token.expose().as_str(), empty.as_str()), ("debug", "hunter2-token", ""));

    let resources = model.resources.as_ref().unwrap();
    assert_eq!((resources.cpu_millis, resources.memory_bytes), (2000, 9 << 29), "the limits");
    let gpu = resources.gpu.as_ref().unwrap();
    assert_eq!((gpu.count, gpu.sku.as_str()), (1, "V100"));
    let small = gateway.resources.as_ref().unwrap();
    assert_eq!((small.cpu_millis, small.memory_bytes), (500, 1 << 29), "memoryInGb is read, too");

    let mounts: Vec<(&str, &str, bool)> = model
        .mounts
        .iter()
        .map(|mount| (mount.volume.as_str(), mount.path.as_str(), mount.read_only))
        .collect();
    assert_eq!(mounts, [("models", "/models", true), ("certificates", "/etc/certs", false)]);

    let security = model.security.as_ref().unwrap();
    assert_eq!((security.user, security.group, security.privileged), (Some(1000), Some(1000), Some(false)));
    assert_eq!(
        (&security.add[..], &security.drop[..]),
        (&["NET_BIND_SERVICE".to_owned()][..], &["MKNOD".to_owned()][..])
    );
    assert_eq!(security.seccomp.as_deref(), Some(&b"{}"[..]));

    let [fetch] = &group.init_containers[..] else { panic!() };
    assert_eq!((fetch.name.as_str(), fetch.command.len()), ("fetch", 3));
    let mut course = Sequence::of(&group);
    assert_eq!(course.on(&Event::Tick, Duration::ZERO), [Action::Start("fetch".to_owned())]);
}

#[test]
fn probes_have_kubernetes_defaults() {
    let Reading { group, .. } = good(EVERYTHING);
    let model = &group.containers[0];
    let secs = Duration::from_secs;
    let liveness = model.liveness.as_ref().unwrap();
    assert_eq!(liveness.action, ProbeAction::Exec(vec!["cat".to_owned(), "/tmp/healthy".to_owned()]));
    let expected = Timing {
        initial_delay: secs(5),
        period: secs(3),
        timeout: secs(4),
        success_threshold: 1,
        failure_threshold: 2,
    };
    assert_eq!(liveness.timing, expected);
    let readiness = model.readiness.as_ref().unwrap();
    let get = HttpGet {
        path: "/ready".to_owned(),
        port: 8081,
        https: false,
        headers: vec![("X-Probe".to_owned(), "yes".to_owned())],
    };
    assert_eq!(readiness.action, ProbeAction::HttpGet(get));
    let expected = Timing {
        initial_delay: secs(0),
        period: secs(10),
        timeout: secs(1),
        success_threshold: 2,
        failure_threshold: 3,
    };
    assert_eq!(readiness.timing, expected);
}

#[test]
fn volumes_addresses_names_and_credentials_are_read() {
    let Reading { group, .. } = good(EVERYTHING);
    let VolumeKind::Secret(files) = &group.volume("certificates").unwrap().kind else { panic!() };
    assert_eq!(files["tls.key"].expose(), b"hunter2-key");
    assert_eq!(files["tls.crt"].expose(), b"hunter2-crt", "line breaks in base64 do not matter");
    let address = group.address.as_ref().unwrap();
    assert_eq!(address.ports, [Port { port: 443, protocol: PortProtocol::Tcp }]);
    assert_eq!((address.public, address.dns_name_label.as_deref()), (true, Some("everything")));
    let dns = group.dns.as_ref().unwrap();
    assert_eq!(dns.servers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.10", "fd00::10"]);
    assert_eq!(
        (&dns.search.join(","), &dns.options.join(",")),
        (&"svc.local,cluster.local".to_owned(), &"ndots:2".to_owned())
    );
    let [credential] = &group.credentials[..] else { panic!() };
    assert_eq!(credential.password.as_ref().unwrap().expose(), "hunter2-password");
}

#[test]
fn what_does_nothing_or_cannot_be_done_is_noted_in_the_order_of_the_file() {
    let reading = good(EVERYTHING);
    assert_eq!(
        notes(&reading),
        [
            "3:1: `location` is ignored here: the group runs on this machine",
            "6:1: `tags` is ignored here: tags are for bills and searches in Azure",
            "7:1: `zones` is ignored here: one machine has no availability zones",
            "8:1: `identity` is ignored here: managed identities exist only in Azure; give the container a secret",
            "13:3: `properties.sku` is ignored here: it chooses hardware in Azure",
            "14:3: `properties.priority` is ignored here: this machine is not evicted",
            "38:50: `properties.containers[0].properties.resources.requests.gpu` differs from Azure: here it means one GPU of any kind; Azure ended GPUs in container instances on 2025-07-14: its checks let this pass and its deployment fails, so use Container Apps with serverless GPUs",
            "80:19: `properties.ipAddress.dnsNameLabel` is ignored here: no name is registered for the group",
            "94:7: `properties.volumes[2].azureFile` is not supported here: Azure Files are not mounted from here; write `emptyDir: {}`, or give a directory with `--volume share=DIR`",
            "99:7: `properties.volumes[3].gitRepo` is not supported here: repositories are not cloned from here; write `emptyDir: {}`, or give a directory with `--volume source=DIR`",
            "100:17: `properties.volumes[3].gitRepo.revision` differs from Azure: taken as it is written; Azure's tools make a number or a flag of it on the way, so put it in quotes",
            "109:3: `properties.diagnostics` is ignored here: logs stay here: `cudock logs`",
        ]
    );
}

#[test]
fn volumes_that_cannot_be_made_are_missing_only_if_mounted_and_not_given() {
    let text = group(
        "  containers:\n  - name: a\n    properties:\n      image: a\n      volumeMounts:\n      - {name: share, mountPath: /s}\n  volumes:\n  - {name: share, azureFile: {shareName: s, storageAccountName: a}}\n  - {name: unused, gitRepo: {repository: 'https://git.example.com/r'}}",
    );
    let Reading { group, .. } = good(&text);
    let missing: Vec<&str> = group.missing_volumes(&[]).iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(missing, ["share"]);
    assert!(group.missing_volumes(&["share"]).is_empty());
}

#[test]
fn unquoted_values_are_taken_as_they_are_written() {
    let text = group(
        "  containers:\n  - name: a\n    properties:\n      image: a\n      command: [sleep, 030]\n      environmentVariables:\n      - {name: PORT, value: 8080}\n      - {name: DEBUG, value: true}\n      - {name: VERSION, value: 1.10}\n      - {name: DATE, value: 2024-01-01}\n      - {name: SECRET, secureValue: 12345}",
    );
    let reading = good(&text);
    let container = &reading.group.containers[0];
    assert_eq!(container.command, ["sleep", "030"]);
    let values: Vec<&str> = container
        .environment
        .iter()
        .map(|variable| match &variable.value {
            VariableValue::Plain(text) => text.as_str(),
            VariableValue::Secure(secret) => secret.expose().as_str(),
            VariableValue::Reference(_) => panic!(),
        })
        .collect();
    assert_eq!(values, ["8080", "true", "1.10", "2024-01-01", "12345"]);
    let differing = reading.notes.iter().filter(|note| note.kind == NoteKind::Differs);
    let differing: Vec<usize> = differing.map(|note| note.span.line).collect();
    assert_eq!(differing, [6, 7, 9, 10, 11, 13], "resources are missing in line 6; the date is text");
}

#[test]
fn anchors_aliases_and_merged_maps_work_as_in_azures_tools() {
    let text = "name: demo\nproperties:\n  containers:\n  - name: a\n    properties: &base\n      image: one\n      resources: {requests: &small {cpu: 1, memoryInGB: 1}}\n  - name: b\n    properties:\n      <<: *base\n      image: two\n  - name: c\n    properties:\n      image: three\n      resources: {requests: *small}\n";
    let Reading { group, .. } = good(text);
    let images: Vec<&str> = group.containers.iter().map(|container| container.image.as_str()).collect();
    assert_eq!(images, ["one", "two", "three"]);
    assert!(
        group.containers.iter().all(|container| container.resources.as_ref().unwrap().cpu_millis == 1000)
    );
}

#[test]
fn json_is_yaml_too() {
    let reading = good(
        r#"{"name":"demo","properties":{"containers":[{"name":"a","properties":{"image":"a\u00e9"}}]}}"#,
    );
    assert_eq!(reading.group.containers[0].image, "aé");
}

#[test]
fn left_out_null_and_empty_are_the_same() {
    let text = "name: demo\ntags: null\nidentity:\nzones: []\nproperties:\n  containers:\n  - name: a\n    properties: {image: a, command: null, ports: [], environmentVariables: , resources: {requests: {cpu: 1, memoryInGB: 1}}}\n  volumes: null\n  imageRegistryCredentials: []\n  ipAddress:\n";
    let reading = good(text);
    assert_eq!(notes(&reading), Vec::<String>::new());
    assert!(reading.group.address.is_none());
}

#[test]
fn letter_case_of_enum_values_does_not_matter() {
    let text = group(
        "  osType: linux\n  restartPolicy: onfailure\n  containers:\n  - {name: a, properties: {image: a, ports: [{port: 1, protocol: Udp}]}}\n  ipAddress: {type: private, ports: [{port: 1, protocol: UDP}]}",
    );
    let Reading { group, .. } = good(&text);
    assert_eq!(group.restart_policy, RestartPolicy::OnFailure);
    assert_eq!(group.containers[0].ports[0].protocol, PortProtocol::Udp);
    assert!(!group.address.unwrap().public);
}

#[test]
fn api_versions_outside_the_known_range_are_noted() {
    let with = |version: &str| {
        format!(
            "apiVersion: {version}\nname: demo\nproperties: {{containers: [{{name: a, properties: {{image: a, resources: {{requests: {{cpu: 1, memoryInGB: 1}}}}}}}}]}}\n"
        )
    };
    assert_eq!(
        notes(&good(&with("2019-12-01"))),
        ["1:13: `apiVersion` differs from Azure: read as 2021-09-01, the oldest that is known in full"]
    );
    assert_eq!(
        notes(&good(&with("2030-01-01-preview"))),
        ["1:13: `apiVersion` differs from Azure: read as 2026-07-01, the newest that is known"]
    );
    for version in ["2021-09-01", "'2023-05-01'", "2025-09-01", "2026-07-01", "2024-05-01-preview"] {
        assert_eq!(notes(&good(&with(version))), Vec::<String>::new(), "{version}");
    }
}

#[test]
fn what_azure_would_refuse_or_do_otherwise_is_noted() {
    let many: String = (1..=6).map(|port| format!("{{port: {port}}}, ")).collect();
    let text = group(&format!(
        "  osType: Windows\n  restartPolicy: Never\n  containers:\n  - name: a\n    properties:\n      image: a\n      resources: {{requests: {{cpu: 1, memoryInGB: 1, gpu: {{count: 3, sku: H200}}}}}}\n      livenessProbe: {{exec: {{command: [a]}}, successThreshold: 2}}\n      environmentVariables: [{{name: S, secureValueReference: vault}}]\n  ipAddress: {{type: Public, ports: [{many}]}}"
    ));
    let reading = good(&text);
    assert_eq!(reading.group.containers[0].liveness.as_ref().unwrap().timing.success_threshold, 1);
    let reported: Vec<(usize, NoteKind)> =
        reading.notes.iter().map(|note| (note.span.line, note.kind)).collect();
    let expected: Vec<(usize, NoteKind)> = [3, 4, 9, 9, 10, 11]
        .into_iter()
        .chain([12; 7])
        .map(|line| (line, if matches!(line, 3 | 11) { NoteKind::Unsupported } else { NoteKind::Differs }))
        .collect();
    assert_eq!(reported, expected, "{:#?}", notes(&reading));
}
