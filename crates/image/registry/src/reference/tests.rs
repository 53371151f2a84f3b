use super::*;

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn canonical(name: &str) -> String {
    name.parse::<Reference>().unwrap().to_string()
}

#[test]
fn a_short_name_is_one_of_docker_hub() {
    assert_eq!(canonical("ubuntu"), "docker.io/library/ubuntu");
    assert_eq!(canonical("ubuntu:24.04"), "docker.io/library/ubuntu:24.04");
    assert_eq!(canonical("nvidia/cuda"), "docker.io/nvidia/cuda");
    assert_eq!(canonical("docker.io/ubuntu"), "docker.io/library/ubuntu");
    assert_eq!(canonical("index.docker.io/ubuntu"), "docker.io/library/ubuntu");
    assert_eq!("ubuntu".parse::<Reference>().unwrap().host(), "registry-1.docker.io");
}

#[test]
fn a_host_is_known_by_dot_colon_or_name() {
    for (name, registry, repository) in [
        ("nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io", "nvidia/pytorch"),
        ("localhost/a", "localhost", "a"),
        ("localhost:5000/a/b", "localhost:5000", "a/b"),
        ("host:5000/a", "host:5000", "a"),
        ("[::1]:5000/a", "[::1]:5000", "a"),
        ("Host/a", "Host", "a"),
        ("host/a", "docker.io", "host/a"),
    ] {
        let reference: Reference = name.parse().unwrap();
        assert_eq!((reference.registry.as_str(), reference.repository.as_str()), (registry, repository));
        assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
    }
}

#[test]
fn tag_and_digest_stand_side_by_side_and_the_digest_decides() {
    let name = format!("nvcr.io/a/b:1@sha256:{HEX}");
    let reference: Reference = name.parse().unwrap();
    assert_eq!(reference.tag.as_deref(), Some("1"));
    assert_eq!(reference.to_string(), name);
    assert_eq!(reference.manifest_name(), format!("sha256:{HEX}"));
    assert_eq!("a".parse::<Reference>().unwrap().manifest_name(), "latest");
}

#[test]
fn a_wrong_name_says_which_part_is_wrong() {
    let long_tag = format!("a:{}", "t".repeat(129));
    let long_name = "a/".repeat(130) + "a";
    for (name, says) in [
        ("", "empty"),
        ("a:", "not a tag"),
        ("a:-x", "not a tag"),
        ("a:b c", "not a tag"),
        ("a:b:c", "not a tag"),
        (long_tag.as_str(), "at most 128"),
        ("Ubuntu", "lower case"),
        ("nvcr.io/A", "`A` in image name"),
        ("a//b", "between two slashes"),
        ("nvcr.io/", "slash"),
        ("/a", "slash"),
        ("a/b_", "starts and ends"),
        ("a..b", "one dot"),
        ("a___b", "two underscores"),
        ("a/../b", "starts and ends"),
        ("ho st.com/a", "not a registry's host"),
        ("-a.com/a", "not a registry's host"),
        ("a.com:99999/a", "port"),
        ("a.com:/a", "port"),
        ("[::g]/a", "IPv6"),
        ("[::1/a", "host"),
        ("a@sha256:12", "64 lower-case"),
        ("a@md5:12", "md5"),
        ("a@b@c", "digest"),
        (HEX, "identity"),
        (long_name.as_str(), "255"),
        ("a\u{1b}[31m", "only"),
    ] {
        let Err(error) = name.parse::<Reference>() else { panic!("{name} was taken") };
        let message = error.to_string();
        assert!(message.contains(says), "{name}: {message}");
        assert!(!message.contains('\u{1b}'));
    }
}

#[test]
fn dashes_may_repeat_and_underscores_may_double() {
    for name in ["a--b/c", "a__b", "a.b/c-d_e", "0/1"] {
        assert!(name.parse::<Reference>().is_ok(), "{name}");
    }
}
