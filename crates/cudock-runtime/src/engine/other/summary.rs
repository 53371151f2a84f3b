//! What engines say about containers, in our words. Docker and podman have one form for it, but for a few fields.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::moment::milliseconds;
use super::words::{GPUS, GROUP, LABEL};
use crate::engine::Summary;
use crate::status::State;

/// A container as `inspect` shows it: what of it we look at. Podman writes `null` for what is empty.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    created: String,
    #[serde(default)]
    path: String,
    args: Option<Vec<String>>,
    state: Life,
    #[serde(default)]
    restart_count: u32,
    config: Config,
    network_settings: Option<Network>,
    /// Podman's.
    #[serde(default)]
    image_name: String,
    /// Podman's.
    #[serde(default)]
    rootfs: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Life {
    #[serde(default)]
    status: String,
    #[serde(default)]
    exit_code: i32,
    #[serde(default, rename = "OOMKilled")]
    out_of_memory: bool,
    #[serde(default)]
    started_at: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    #[serde(default)]
    image: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Network {
    ports: Option<BTreeMap<String, Option<Vec<Port>>>>,
}

#[derive(Debug, Deserialize)]
struct Port {
    #[serde(default, rename = "HostIp")]
    address: String,
    #[serde(default, rename = "HostPort")]
    port: String,
}

/// A container of ours; none where it is someone else's.
pub(super) fn summary(inspected: &Value) -> Result<Option<Summary>, serde_json::Error> {
    let container = Inspected::deserialize(inspected)?;
    let labels = container.config.labels.unwrap_or_default();
    if labels.get(LABEL).map(String::as_str) != Some("1") {
        return Ok(None);
    }
    let state = state(&container.state.status);
    let started = milliseconds(&container.state.started_at);
    let command: Vec<String> =
        std::iter::once(container.path).chain(container.args.unwrap_or_default()).collect();
    let image = [container.image_name, container.config.image, container.rootfs];
    Ok(Some(Summary {
        id: container.id,
        // Docker puts a slash before it.
        name: container.name.trim_start_matches('/').to_owned(),
        image: image.into_iter().find(|image| !image.is_empty()).unwrap_or_default(),
        command: command.join(" "),
        state: state.word().to_owned(),
        created: milliseconds(&container.created).unwrap_or_default(),
        started,
        exit_code: (state == State::Exited && started.is_some()).then_some(container.state.exit_code),
        out_of_memory: container.state.out_of_memory,
        restarts: container.restart_count,
        ready: None,
        ports: container.network_settings.and_then(|network| network.ports).map(ports).unwrap_or_default(),
        gpus: labels.get(GPUS).cloned(),
        group: labels.get(GROUP).cloned(),
    }))
}

/// The engines' words for the parts of a container's life.
fn state(word: &str) -> State {
    match word {
        "running" | "paused" | "stopping" => State::Running,
        "restarting" => State::Restarting,
        "exited" | "stopped" | "removing" | "dead" => State::Exited,
        _ => State::Created,
    }
}

fn ports(published: BTreeMap<String, Option<Vec<Port>>>) -> Vec<String> {
    let line = |inside: &str, port: &Port| match port.address.as_str() {
        "" => format!("0.0.0.0:{}->{inside}", port.port),
        address if address.contains(':') => format!("[{address}]:{}->{inside}", port.port),
        address => format!("{address}:{}->{inside}", port.port),
    };
    let of_one = |(inside, ports): (String, Option<Vec<Port>>)| {
        ports.unwrap_or_default().iter().map(|port| line(&inside, port)).collect::<Vec<_>>()
    };
    published.into_iter().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_docker_says_is_understood() {
        let said = json!({
            "Id": "43f7c25eb88b", "Name": "/api", "Created": "2026-11-15T12:30:05.007Z",
            "Path": "python", "Args": ["serve.py", "--port=80"],
            "State": {"Status": "running", "ExitCode": 0, "OOMKilled": false, "StartedAt": "2026-11-15T12:30:06Z"},
            "RestartCount": 2,
            "Config": {"Image": "team/app:1", "Labels": {"dev.cudock": "1", "dev.cudock.gpus": "0,1"}},
            "NetworkSettings": {"Ports": {
                "80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}, {"HostIp": "::", "HostPort": "8080"}],
                "90/udp": null,
            }},
        });
        let expected = Summary {
            id: "43f7c25eb88b".to_owned(),
            name: "api".to_owned(),
            image: "team/app:1".to_owned(),
            command: "python serve.py --port=80".to_owned(),
            state: "running".to_owned(),
            created: 1_794_745_805_007,
            started: Some(1_794_745_806_000),
            exit_code: None,
            out_of_memory: false,
            restarts: 2,
            ready: None,
            ports: vec!["0.0.0.0:8080->80/tcp".to_owned(), "[::]:8080->80/tcp".to_owned()],
            gpus: Some("0,1".to_owned()),
            group: None,
        };
        assert_eq!(summary(&said).unwrap(), Some(expected));
    }

    #[test]
    fn what_podman_says_is_understood() {
        let said = json!({
            "Id": "7f29", "Name": "t", "Created": "2026-11-15T13:30:05.007+01:00", "Path": "/bin/true", "Args": null,
            "State": {"Status": "exited", "ExitCode": 137, "OOMKilled": true, "StartedAt": "2026-11-15T12:30:06Z"},
            "ImageName": "localhost/tiny:1", "Rootfs": "", "RestartCount": 0,
            "Config": {"Image": "5e95", "Labels": {"dev.cudock": "1", "dev.cudock.group": "web"}},
            "NetworkSettings": {"Ports": {"80/tcp": [{"HostIp": "", "HostPort": "8080"}]}},
        });
        let found = summary(&said).unwrap().unwrap();
        assert_eq!((found.image.as_str(), found.command.as_str()), ("localhost/tiny:1", "/bin/true"));
        assert_eq!((found.state.as_str(), found.exit_code, found.out_of_memory), ("exited", Some(137), true));
        assert_eq!((found.created, found.group.as_deref()), (1_794_745_805_007, Some("web")));
        assert_eq!(found.ports, ["0.0.0.0:8080->80/tcp"]);
    }

    #[test]
    fn a_container_that_never_ran_has_no_exit_code() {
        for status in ["created", "exited"] {
            let said = json!({
                "Id": "7f29", "State": {"Status": status, "StartedAt": "0001-01-01T00:00:00Z"},
                "Config": {"Labels": {"dev.cudock": "1"}},
            });
            let found = summary(&said).unwrap().unwrap();
            assert_eq!((found.started, found.exit_code), (None, None), "{status}");
        }
    }

    #[test]
    fn containers_of_others_are_not_ours() {
        for labels in [json!(null), json!({}), json!({"dev.cudock": "2"})] {
            let said = json!({"Id": "7f29", "State": {}, "Config": {"Labels": labels}});
            assert_eq!(summary(&said).unwrap(), None);
        }
    }

    #[test]
    fn what_is_no_container_is_an_error() {
        for said in
            [json!(null), json!([]), json!({"Id": 5}), json!({"Id": "7f29", "State": "up", "Config": {}})]
        {
            assert!(summary(&said).is_err(), "{said}");
        }
    }
}
