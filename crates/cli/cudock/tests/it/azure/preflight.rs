//! Checks of the registry before anything is created.

use cudock_azure_testkit::CloudSettings;
use cudock_testkit::http::{Reply, Request};
use serde_json::json;

use super::world::{World, image};
use crate::support::{code, shown};

/// `up` of a job on a virtual machine, with this registry and further flags.
fn up_with(
    flags: &[&str],
    registry: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Option<(World, i32, String)> {
    let mut world = World::with_registry(CloudSettings::default(), registry)?;
    let image = world.image();
    let up = ["up", ".", "--on", "vm", "--region", "eastus", "--image", &image];
    let output = world.run(&[&up, flags].concat()).output;
    let text = shown(&output);
    Some((world, code(&output), text))
}

fn up(registry: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Option<(World, i32, String)> {
    up_with(&[], registry)
}

#[test]
fn only_a_registry_of_azure_gets_the_token_of_the_account() {
    let identity = "/subscriptions/11111111-2222-4333-8444-555555555555/resourceGroups/shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/reaper";
    let flags = ["--pull-identity", identity];
    let Some((world, code, text)) = up_with(&flags, |_| Reply::new(403, "")) else { return };
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("an identity can pull from Azure's registries only"), "{text}");
    let requests = world.registry.requests();
    assert!(!requests.is_empty());
    let is_harmless =
        |request: &Request| request.method != "POST" && request.header("authorization").is_none();
    assert!(requests.iter().all(is_harmless), "{text}");
}

#[test]
fn an_image_that_the_registry_does_not_give_out_is_not_deployed() {
    for (status, expected) in [(404, "the registry has no such image"), (403, "--pull-identity")] {
        let Some((world, code, text)) = up(move |_| Reply::new(status, "")) else { return };
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("image pull") && text.contains(expected), "{status}: {text}");
        assert!(!world.stand_in.requests().iter().any(|request| request.starts_with("PUT")), "{text}");
    }
}

#[test]
fn an_image_that_fails_on_the_size_is_not_deployed() {
    let newer =
        json!({"Env": ["NVIDIA_REQUIRE_CUDA=cuda>=99.0", "NVIDIA_VISIBLE_DEVICES=all", "CUDA_VERSION=99.0"]});
    let Some((world, code, text)) = up(move |request| image(request, &newer)) else { return };
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("image runs") && text.contains("blocked"), "{text}");
    assert!(!world.stand_in.requests().iter().any(|request| request.starts_with("PUT")), "{text}");
    let heads: Vec<Request> =
        world.registry.requests().into_iter().filter(|request| request.method == "HEAD").collect();
    assert_eq!(heads.len(), 1);
    assert_eq!(heads[0].header("authorization"), None, "Azure has no sign-in of this machine");
}

#[test]
fn a_registry_that_does_not_answer_is_reported_and_does_not_block() {
    let Some((world, code, text)) = up(|_| Reply::new(503, "")) else { return };
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("cannot check whether the image runs there"), "{text}");
    assert!(text.contains("got no answer"), "{text}");
    assert_eq!(world.check_gone(), Ok(()));
}
