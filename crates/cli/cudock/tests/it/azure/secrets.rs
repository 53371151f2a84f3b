//! No secret of a user is printed or stored: neither that of the sign-in, nor tokens, nor the secrets of a deployment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_azure_testkit::{CloudSettings, Schedule};
use cudock_testkit::http::secret;
use cudock_testkit::random::{Random, cases, seed};

use super::world::World;

/// Each service, and the flags that it needs.
const TARGETS: [(&str, &[&str]); 5] = [
    ("vm", &[]),
    ("batch", &["--outputs", "results/*"]),
    ("ml", &["--workspace", "shared/workspace"]),
    ("container-apps", &[]),
    ("aci", &["--price", "0.10"]),
];

/// How every access token begins, a JWT.
const TOKEN: &str = "eyJ";

/// Files below a directory; empty if it does not exist.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files.extend(files_below(&entry.path())),
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// All that a user does with a deployment, in a cloud that fails as the schedule says. Returns the client secret.
fn live_through(world: &mut World, target: &str, flags: &[&str], password: &str) -> String {
    let image = world.image();
    let mut up = vec!["up", ".", "--on", target, "--name", "train", "--image", &image, "--region", "eastus"];
    up.extend(["--ttl", "1h", "--env", "PASSWORD"].iter().chain(flags));
    up.extend(["--", "python", "train.py"]);
    let dry_run = [&up[..2], &["--dry-run"], &up[2..]].concat();
    let verbs: [&[&str]; 8] = [
        &dry_run,
        &up,
        &["ps", "--format", "json"],
        &["logs", "train"],
        &["resume", "train"],
        &["cost", "train", "--format", "json"],
        &["down", "train"],
        &["gc"],
    ];
    let mut client_secret = String::new();
    for arguments in verbs {
        let mut command = world.command(arguments);
        command.env("PASSWORD", password);
        world.run_command(&mut command, arguments);
        let mut variables = command.get_envs();
        let value = variables.find(|(name, _)| *name == "AZURE_CLIENT_SECRET").and_then(|(_, value)| value);
        client_secret = value.unwrap().to_string_lossy().into_owned();
    }
    client_secret
}

#[test]
fn no_secret_is_printed_or_stored_whatever_fails() {
    let mut random = Random::new(seed());
    for number in 0..cases(10) {
        let (target, flags) = TARGETS[number as usize % TARGETS.len()];
        let Some(mut world) = World::new(CloudSettings::default()) else { return };
        world.keeps_outputs = true;
        let [password, registry_password] = std::array::from_fn(|_| secret());
        let login = STANDARD.encode(format!("user:{registry_password}"));
        let logins = format!("{{\"auths\": {{\"{}\": {{\"auth\": \"{login}\"}}}}}}", world.registry.host());
        let docker = world.home().join(".docker");
        fs::create_dir(&docker).unwrap();
        fs::write(docker.join("config.json"), logins).unwrap();
        // The first of each goes well.
        let is_disturbed = number as usize >= TARGETS.len();
        if is_disturbed {
            world.stand_in.set_schedule(Schedule::generate(random.next(), number.into(), 60));
        }
        let client_secret = live_through(&mut world, target, flags, &password);
        let has_run = world.transcript.contains("hello from the stand-in");
        assert!(is_disturbed || has_run, "{target}: {}", world.transcript);
        let storage = world.stand_in.storage();
        let signature = storage.split_once("sig=").map(|(_, rest)| rest.split('&').next().unwrap()).unwrap();
        let encoded = STANDARD.encode(&password);
        let secrets = [
            ("the variable", password.as_str()),
            ("the variable in base64", encoded.trim_end_matches('=')),
            ("the password of the registry", &registry_password),
            ("the client secret", &client_secret),
            ("the signature of the storage", signature),
            ("a token", TOKEN),
        ];
        for (what, secret) in secrets {
            assert!(secret.len() >= TOKEN.len(), "{what}");
            assert!(!world.transcript.contains(secret), "{target}: {what} in\n{}", world.transcript);
        }
        let state = files_below(&world.home().join("state"));
        assert!(state.iter().any(|file| file.ends_with("deployments.db")), "{state:?}\n{}", world.transcript);
        for file in state.iter().chain(&files_below(&world.home().join("cache"))) {
            let bytes = fs::read(file).unwrap();
            for (what, secret) in secrets {
                assert!(!contains(&bytes, secret), "{target}: {what} in {}", file.display());
            }
        }
        for file in state {
            let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "others can read {}", file.display());
        }
    }
}
