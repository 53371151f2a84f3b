//! The keys that are not for planning, and errors of reading.

use std::time::Duration;

use cudock_facts::services::AzureService;
use cudock_project::{ByteSize, DeployTarget, DeviceChoice, Manifest, TimeSpan, WorkloadKind};

use crate::read;

#[test]
fn an_empty_file_is_a_good_one() {
    assert_eq!(read("").unwrap(), Manifest::default());
}

#[test]
fn every_key_of_the_design_is_read() {
    let manifest = read(
        r#"
        name = "digits"
        [workload]
        kind  = "serve"
        model = "model.onnx"
        [needs]
        gpu_memory = "4GiB"
        precision  = "fp16"
        [deploy]
        target = "container-apps"
        ttl    = "2h"
        [serve]
        device = "cuda"
        max_batch = 64
        max_wait = "2ms"
        preferred = [1, 8, 64]
        latency_target = "50ms"
        [serve.try]
        range = [0, 16]
        "#,
    )
    .unwrap();
    assert_eq!(manifest.workload.kind, WorkloadKind::Serve);
    assert_eq!(manifest.needs.gpu_memory, Some(ByteSize(4 << 30)));
    assert_eq!(manifest.deploy.target, DeployTarget::Service(AzureService::ContainerApps));
    assert_eq!(manifest.deploy.ttl, Some(TimeSpan(Duration::from_secs(7200))));
    assert_eq!(manifest.serve.device, Some(DeviceChoice::Cuda));
    assert_eq!(manifest.serve.latency_target, Some(TimeSpan(Duration::from_millis(50))));
    assert_eq!(manifest.serve.try_model.unwrap().range, Some((0.0, 16.0)));
}

#[test]
fn an_unknown_key_is_reported_with_its_location_and_the_nearest_known_one() {
    assert_eq!(
        read("name = \"a\"\n[serve]\nmax_bacth = 3\n"),
        Err("cudock.toml:3:1: unknown field `max_bacth`; did you mean `max_batch`?".to_owned())
    );
    assert_eq!(
        read("[deploy]\ntarget = \"lokal\"\n"),
        Err("cudock.toml:2:10: unknown variant `lokal`; did you mean `local`?".to_owned())
    );
}

#[test]
fn an_invalid_value_is_reported_with_its_location() {
    assert_eq!(
        read("[serve]\nmax_wait = \"2\"\n"),
        Err("cudock.toml:2:12: `2` has no unit; write 2s or 2m or 2h".to_owned())
    );
    let wrong = read("[serve]\nmax_batch = \"many\"\n").unwrap_err();
    assert!(wrong.starts_with("cudock.toml:2:13: invalid type: string \"many\""), "{wrong}");
    let wrong = read("name = \"é\" x\n").unwrap_err();
    assert!(wrong.starts_with("cudock.toml:1:12: "), "{wrong}");
}
