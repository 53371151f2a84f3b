//! `cudock gateway` as users start it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use cudock_testkit::client::{TestClient, eventually, get, post};
use cudock_testkit::http::{Reply, Request, Server};
use cudock_testkit::otlp::spans;
use rustix::process::{Pid, Signal, kill_process};

use crate::serve_support::made::times;
use crate::serve_support::on_threads;
use crate::serve_support::server::Stage;
use crate::support::{cudock, run, shown};

fn echo(request: &Request) -> Reply {
    match request.path.as_str() {
        "/predict" => Reply::new(200, request.text().replace("input", "prediction")),
        path => Reply::new(200, path.to_owned()),
    }
}

/// The command in an empty directory, without variables that choose upstreams or ports.
pub fn gateway(directory: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = cudock(&["gateway"]);
    command.args(arguments).current_dir(directory);
    command.env_remove("INFERENCE_URL").env_remove("PORT").env_remove("CUDOCK_API_KEYS");
    command
}

/// Starts the command and returns where it listens.
pub fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("listening on http://").and_then(|rest| rest.split(',').next());
    (child, address.unwrap_or_else(|| panic!("{line}")).to_owned())
}

fn end(mut child: Child) {
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn flags_variables_and_the_file_name_the_upstream() {
    let upstream = Server::start(echo);
    let (directory, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = format!("[gateway]\nto = ['{}']\nlisten = ['127.0.0.1:0']\n", upstream.host());
    std::fs::write(directory.path().join("cudock.toml"), file).unwrap();
    let mut by_variables = gateway(empty.path(), &[]);
    by_variables.env("INFERENCE_URL", upstream.host()).env("PORT", "0");
    for mut command in [
        gateway(empty.path(), &["--to", &upstream.host(), "--port", "0"]),
        gateway(directory.path(), &[]),
        by_variables,
    ] {
        let (child, address) = start(&mut command);
        let mut client = TestClient::connect(address.replace("0.0.0.0", "127.0.0.1").parse().unwrap());
        client.write(&post("/predict", "content-type: application/json\r\n", b"{\"input\": [1.50]}"));
        assert_eq!(client.receive().text(), "{\"prediction\": [1.50]}");
        client.write(&get("/other", ""));
        assert_eq!(client.receive().text(), "/other");
        end(child);
    }
}

#[test]
fn mistakes_are_reported_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let output = gateway(directory.path(), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(shown(&output).contains("hint: name one with `--to http://HOST:PORT`"), "{}", shown(&output));
    let output = run(&["gateway", "--to", "ftp://a"]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let taken = Server::start(echo);
    let output = run(&["gateway", "--to", "localhost:1", "--listen", &taken.host()]);
    assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
    assert!(shown(&output).contains("--port 0"), "{}", shown(&output));
}

#[test]
fn rows_and_labels_of_cudock_serve_reach_the_client_that_they_belong_to() {
    let Some(stage) = Stage::new() else { return };
    stage.write("models/double/model.onnx", &times(2.0));
    stage.write("models/double/labels.txt", b"a\nb\nc\nd\n");
    stage.write("models/double/cudock.toml", b"[serve]\nlabels = \"labels.txt\"\ntop = 1\n");
    let server = stage.serve("models", &[]);
    let upstream = server.address.to_string();
    let (child, address) =
        start(gateway(stage.path("").as_path(), &["--to", &upstream, "--port", "0"]).arg("--max-wait=20ms"));
    let address = address.parse().unwrap();
    let checked: Vec<usize> = on_threads(8, |number| {
        let (mut through, mut direct) = (TestClient::connect(address), TestClient::connect(server.address));
        for round in 0..20 {
            let mut rows = [[0; 4]; 2];
            rows[0][(number + round) % 4] = number + 1;
            rows[1][number % 4] = round + 1;
            let input = if round % 2 == 0 { format!("{:?}", rows[0]) } else { format!("{rows:?}") };
            let headers = "content-type: application/json\r\n";
            let request = post("/predict", headers, format!("{{\"input\": {input}}}").as_bytes());
            through.write(&request);
            direct.write(&request);
            let (answer, expected) = (through.receive(), direct.receive());
            assert!(expected.text().contains("\"labels\""), "{}", expected.text());
            assert_eq!((answer.status, answer.text()), (200, expected.text()));
        }
        20
    });
    assert_eq!(checked.iter().sum::<usize>(), 160);
    let mut client = TestClient::connect(address);
    client.write(&get("/_gateway/metrics", ""));
    let metrics = client.receive().text();
    let sample = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{metrics}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(sample("cudock_gateway_batch_rows_count") < 160.0, "no requests shared a batch");
    assert!(sample("cudock_gateway_single_requests_total") < 0.5, "{metrics}");
    end(child);
}

#[test]
fn the_spans_of_one_request_through_gateway_and_server_are_one_trace() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let collector = Server::start(|_| Reply::new(200, ""));
    let endpoint = format!("http://{}", collector.host());
    let export = ["--otlp-endpoint", &endpoint];
    let server = stage.serve_as("double.onnx", &export, |mut command| {
        command.env("OTEL_BSP_SCHEDULE_DELAY", "10");
        command
    });
    let upstream = server.address.to_string();
    let (child, address) =
        start(gateway(stage.path("").as_path(), &["--to", &upstream, "--port", "0"]).args(export));
    let mut client = TestClient::connect(address.parse().unwrap());
    let headers =
        format!("content-type: application/json\r\ntraceparent: 00-{TRACE}-b7ad6b7169203331-01\r\n");
    client.write(&post("/predict", &headers, b"{\"input\": [1, 2, 3, 4]}"));
    assert_eq!(client.receive().status, 200);
    end(child);
    let sent = || spans(&collector.requests(), TRACE);
    // That of the gateway, that of the server and its four stages.
    eventually("all spans are sent", || sent().len() == 6);
    let sent = sent();
    let child_of = |parent: &[u8]| sent.iter().filter(|span| span.parent == parent).collect::<Vec<_>>();
    let from_client = child_of(&[0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    let [gateway] = from_client.as_slice() else { panic!("{sent:?}") };
    let from_gateway = child_of(&gateway.id);
    let [server] = from_gateway.as_slice() else { panic!("{sent:?}") };
    assert!(gateway.start <= server.start && server.end <= gateway.end, "{sent:?}");
    assert_eq!(child_of(&server.id).len(), 4);
}
