//! Parses the output of `inspect`, which differs between docker and podman in a few fields.

use std::collections::BTreeMap;

use cudock_base::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::labels::{GPUS, GROUP, LABEL};
use crate::container::status::ContainerState;
use crate::engine::Summary;

/// The fields of a container that are used. Podman writes `null` for empty ones.
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
    state: InspectedState,
    #[serde(default)]
    restart_count: u32,
    config: InspectedConfig,
    network_settings: Option<InspectedNetwork>,
    /// Podman only.
    #[serde(default)]
    image_name: String,
    /// Podman only.
    #[serde(default)]
    rootfs: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct InspectedState {
    status: String,
    exit_code: i32,
    #[serde(rename = "OOMKilled")]
    out_of_memory: bool,
    started_at: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct InspectedConfig {
    image: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedNetwork {
    ports: Option<BTreeMap<String, Option<Vec<Port>>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Port {
    #[serde(rename = "HostIp")]
    address: String,
    #[serde(rename = "HostPort")]
    port: String,
}

/// A container of ours; `None` for any other.
pub(super) fn parse(inspected: &Value) -> Result<Option<Summary>, serde_json::Error> {
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
        // Docker prepends a slash.
        name: container.name.trim_start_matches('/').to_owned(),
        image: image.into_iter().find(|image| !image.is_empty()).unwrap_or_default(),
        command: command.join(" "),
        state: state.to_string(),
        created: milliseconds(&container.created).unwrap_or_default(),
        started,
        exit_code: (state == ContainerState::Exited && started.is_some())
            .then_some(container.state.exit_code),
        out_of_memory: container.state.out_of_memory,
        restarts: container.restart_count,
        ready: None,
        ports: container.network_settings.and_then(|network| network.ports).map(ports).unwrap_or_default(),
        gpus: labels.get(GPUS).cloned(),
        group: labels.get(GROUP).cloned(),
    }))
}

fn state(status: &str) -> ContainerState {
    match status {
        "running" | "paused" | "stopping" => ContainerState::Running,
        "restarting" => ContainerState::Restarting,
        "exited" | "stopped" | "removing" | "dead" => ContainerState::Exited,
        _ => ContainerState::Created,
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    Timestamp::parse(text)?.millis()
}

fn ports(published: BTreeMap<String, Option<Vec<Port>>>) -> Vec<String> {
    let line = |inside: &str, port: &Port| match port.address.as_str() {
        "" => format!("0.0.0.0:{}->{inside}", port.port),
        address if address.contains(':') => format!("[{address}]:{}->{inside}", port.port),
        address => format!("{address}:{}->{inside}", port.port),
    };
    let lines_of = |(inside, ports): (String, Option<Vec<Port>>)| {
        ports.unwrap_or_default().iter().map(|port| line(&inside, port)).collect::<Vec<_>>()
    };
    published.into_iter().flat_map(lines_of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_output_of_docker_is_parsed() {
        let inspected = json!({
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
        assert_eq!(parse(&inspected).unwrap(), Some(expected));
    }

    #[test]
    fn the_output_of_podman_is_parsed() {
        let inspected = json!({
            "Id": "7f29", "Name": "t", "Created": "2026-11-15T13:30:05.007+01:00", "Path": "/bin/true", "Args": null,
            "State": {"Status": "exited", "ExitCode": 137, "OOMKilled": true, "StartedAt": "2026-11-15T12:30:06Z"},
            "ImageName": "localhost/tiny:1", "Rootfs": "", "RestartCount": 0,
            "Config": {"Image": "5e95", "Labels": {"dev.cudock": "1", "dev.cudock.group": "web"}},
            "NetworkSettings": {"Ports": {"80/tcp": [{"HostIp": "", "HostPort": "8080"}]}},
        });
        let summary = parse(&inspected).unwrap().unwrap();
        assert_eq!((summary.image.as_str(), summary.command.as_str()), ("localhost/tiny:1", "/bin/true"));
        assert_eq!(
            (summary.state.as_str(), summary.exit_code, summary.out_of_memory),
            ("exited", Some(137), true)
        );
        assert_eq!((summary.created, summary.group.as_deref()), (1_794_745_805_007, Some("web")));
        assert_eq!(summary.ports, ["0.0.0.0:8080->80/tcp"]);
    }

    #[test]
    fn a_container_that_never_ran_has_no_exit_code() {
        for status in ["created", "exited"] {
            let inspected = json!({
                "Id": "7f29", "State": {"Status": status, "StartedAt": "0001-01-01T00:00:00Z"},
                "Config": {"Labels": {"dev.cudock": "1"}},
            });
            let summary = parse(&inspected).unwrap().unwrap();
            assert_eq!((summary.started, summary.exit_code), (None, None), "{status}");
        }
    }

    #[test]
    fn containers_of_others_are_not_ours() {
        for labels in [json!(null), json!({}), json!({"dev.cudock": "2"})] {
            let inspected = json!({"Id": "7f29", "State": {}, "Config": {"Labels": labels}});
            assert_eq!(parse(&inspected).unwrap(), None);
        }
    }

    #[test]
    fn output_that_is_not_a_container_is_an_error() {
        for inspected in
            [json!(null), json!([]), json!({"Id": 5}), json!({"Id": "7f29", "State": "up", "Config": {}})]
        {
            assert!(parse(&inspected).is_err(), "{inspected}");
        }
    }
}
