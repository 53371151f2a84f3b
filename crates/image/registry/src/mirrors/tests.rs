use cudock_base::Report as _;

use super::*;

fn sources(conf: &str, name: &str) -> Result<Vec<String>, Error> {
    let reference: Reference = name.parse().unwrap();
    let mirrors = Mirrors::parse(Path::new("registries.conf"), conf)?;
    let sources = mirrors.sources(&reference, reference.digest.is_some())?;
    Ok(sources.into_iter().map(|source| format!("{}/{}", source.registry, source.repository)).collect())
}

const HUB: &str = r#"
unqualified-search-registries = ["docker.io"]
short-name-mode = "permissive"

[[registry]]
prefix = "docker.io"
[[registry.mirror]]
location = "mirror.example.com/hub"
[[registry.mirror]]
location = "digests.example.com"
pull-from-mirror = "digest-only"

[[registry]]
prefix = "docker.io/nvidia"
location = "nvidia.example.com"
"#;

#[test]
fn mirrors_come_first_the_origin_last_and_the_longest_prefix_wins() {
    let by_digest = format!("ubuntu@{}", cudock_base::Digest::sha256_of(b""));
    let [mirror, digests] = ["mirror.example.com/hub/library/ubuntu", "digests.example.com/library/ubuntu"];
    for (conf, name, expected) in [
        ("", "nvcr.io/a/b", &["nvcr.io/a/b"][..]),
        (HUB, "ubuntu", &[mirror, "docker.io/library/ubuntu"]),
        // Only digests are fetched from the second mirror.
        (HUB, &by_digest, &[mirror, digests, "docker.io/library/ubuntu"]),
        (HUB, "nvidia/cuda", &["nvidia.example.com/cuda"]),
        // A prefix ends at a slash.
        (HUB, "nvidiax/cuda", &["mirror.example.com/hub/nvidiax/cuda", "docker.io/nvidiax/cuda"]),
    ] {
        assert_eq!(sources(conf, name).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_wildcard_covers_the_hosts_below_a_domain() {
    let conf = "[[registry]]\nprefix = \"*.example.com\"\nblocked = true\n";
    assert!(matches!(sources(conf, "a.example.com/b"), Err(Error::Blocked { .. })));
    assert!(sources(conf, "example.com/b").is_ok());
    assert!(sources(conf, "notexample.com/b").is_ok());
}

#[test]
fn an_insecure_registry_is_refused_unless_it_is_this_machine() {
    let conf = |host| format!("[[registry]]\nlocation = \"{host}\"\ninsecure = true\n");
    let error = sources(&conf("registry.example.com"), "registry.example.com/a").unwrap_err();
    assert!(
        error.to_string().contains("registry.example.com is marked insecure in registries.conf"),
        "{error}"
    );
    assert!(!error.is_outside());
    assert_eq!(error.hints().len(), 1);
    assert!(sources(&conf("localhost:5000"), "localhost:5000/a").is_ok());
}

#[test]
fn a_file_that_is_wrong_says_where() {
    for (conf, says) in [
        ("[[registry]]\ninsecure = true\n", "neither prefix nor location"),
        ("[[registry]]\nlocation = 3\n", "line 2"),
        ("[[registry]\n", "line 1"),
        ("[[registry]]\nlocation = \"https://a.com\"\n", "without https://"),
        ("[[registry]]\nlocation = \"a.com/../b\"\n", "location `a.com/../b`"),
        ("[[registry]]\nprefix = \"*.a.com\"\nlocation = \"b.com\"\n", "wildcard"),
    ] {
        let error = Mirrors::parse(Path::new("r.conf"), conf).unwrap_err().to_string();
        assert!(error.starts_with("r.conf: ") && error.contains(says), "{error}");
    }
}

#[test]
fn the_user_s_file_hides_the_system_s_and_drop_ins_lie_over_both() {
    let root = tempfile::tempdir().unwrap();
    let put = |path: &str, location: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("[[registry]]\nprefix = \"a.com\"\nlocation = \"{location}\"\n")).unwrap();
    };
    let environment = Environment::of(root.path(), [("HOME", root.path().join("home"))]);
    let origin = || {
        let mirrors = Mirrors::from_environment(&environment).unwrap();
        mirrors.sources(&"a.com/x".parse().unwrap(), false).unwrap().pop().unwrap().registry
    };
    assert_eq!(origin(), "a.com");
    put("etc/containers/registries.conf", "system.com");
    assert_eq!(origin(), "system.com");
    put("home/.config/containers/registries.conf", "user.com");
    assert_eq!(origin(), "user.com");
    put("etc/containers/registries.conf.d/50-site.conf", "site.com");
    assert_eq!(origin(), "site.com");

    let missing = Environment::of(root.path(), [(CONTAINERS_REGISTRIES_CONF, root.path().join("none"))]);
    assert!(matches!(Mirrors::from_environment(&missing), Err(Error::Config { .. })));
}
