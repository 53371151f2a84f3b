//! A registry to test against.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use cudock_base::Environment;
use cudock_http::{BlobStore, RetryPolicy};
use cudock_registry::{Client, Credentials, Mirrors, Options, Reference};
pub(crate) use cudock_testkit::http::{Reply, Request, Server, Then, noise, read_request, secret};

/// A server as a registry.
pub(crate) trait Registry {
    /// An image on this server.
    fn image(&self, rest: &str) -> Reference;
}

impl Registry for Server {
    fn image(&self, rest: &str) -> Reference {
        format!("{}/{rest}", self.host()).parse().unwrap()
    }
}

/// A refusal in the registries' JSON.
pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Reply {
    Reply::new(status, format!("{{\"errors\":[{{\"code\":\"{code}\",\"message\":\"{message}\"}}]}}"))
}

pub(crate) const QUICK: RetryPolicy = RetryPolicy {
    max_retries: 3,
    initial_delay: Duration::from_millis(2),
    max_delay: Duration::from_millis(20),
};

/// Options with a store below this directory and quick retries.
pub(crate) fn options(directory: &Path) -> Options {
    Options { retries: QUICK, ..Options::new(BlobStore::open(directory.join("cache")).unwrap()) }
}

pub(crate) fn client(directory: &Path) -> Client {
    Client::new(options(directory)).unwrap()
}

/// A client that finds this text as its docker configuration, and helpers in the directory itself.
pub(crate) fn client_with_sign_in(directory: &Path, config: &str) -> Client {
    fs::write(directory.join("config.json"), config).unwrap();
    let environment = Environment::of(directory, [("DOCKER_CONFIG", directory), ("PATH", directory)]);
    let credentials =
        Credentials::from_environment(&environment).with_helper_timeout(Duration::from_millis(1500));
    Client::new(Options { credentials, ..options(directory) }).unwrap()
}

pub(crate) fn mirrors(conf: &str) -> Mirrors {
    Mirrors::parse(Path::new("registries.conf"), conf).unwrap()
}

pub(crate) fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
