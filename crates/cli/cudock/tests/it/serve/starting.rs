//! A server that cannot start prints the reason, and its exit code shows whose fault it is.

use std::net::TcpListener;
use std::process::Output;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::Stage;
use crate::support::{code, shown};

fn fails(stage: &Stage, arguments: &[&str]) -> Output {
    stage.command(&[&["serve", "--device", "cpu", "--offline"], arguments].concat()).output().unwrap()
}

#[test]
fn a_corrupt_model_is_exit_2_with_the_engines_message() {
    let Some(stage) = Stage::new() else { return };
    let whole = times(2.0);
    for (name, bytes) in
        [("text", &b"this is no model"[..]), ("cut", &whole[..whole.len() / 2]), ("empty", b"")]
    {
        let file = stage.write(&format!("{name}.onnx"), bytes);
        let output = fails(&stage, &[file.to_str().unwrap(), "--port", "0"]);
        let text = shown(&output);
        assert_eq!(code(&output), 2, "{name}: {text}");
        assert!(
            text.contains("no model could be loaded") && text.contains(&format!("{name}.onnx")),
            "{text}"
        );
        let reason = text.split(&format!("{name}.onnx: ")).nth(1).unwrap_or_default();
        assert!(
            reason.lines().next().is_some_and(|line| line.len() > 10),
            "{name}: no reason is given\n{text}"
        );
    }
}

#[test]
fn a_port_in_use_is_exit_3() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.write("double.onnx", &times(2.0));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = fails(&stage, &[file.to_str().unwrap(), "--port", &port]);
    let text = shown(&output);
    assert_eq!(code(&output), 3, "{text}");
    assert!(
        text.contains(&format!("cannot listen on 127.0.0.1:{port}")) && text.contains("hint: "),
        "{text}"
    );
}

#[test]
fn a_platform_names_the_model_and_the_port() {
    let Some(stage) = Stage::new() else { return };
    let model = stage.write("double.onnx", &times(2.0));
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (port, exit_code, message) in [
        (port.as_str(), 3, format!("cannot listen on 0.0.0.0:{port}")),
        ("http", 2, "PORT is `http`, which is not a port".to_owned()),
    ] {
        let mut command = stage.command(&["serve", "--routes", "flask", "--device", "cpu", "--offline"]);
        let output = command.env("MODEL_PATH", &model).env("PORT", port).output().unwrap();
        assert_eq!(code(&output), exit_code, "{}", shown(&output));
        assert!(shown(&output).contains(&message), "{}", shown(&output));
    }
}

#[test]
fn a_slip_in_cudock_toml_is_exit_2_and_shown_in_its_place() {
    let Some(stage) = Stage::new() else { return };
    stage.write("project/model.onnx", &times(2.0));
    for (toml, place, word) in [
        ("[workload]\nmodel = \"model.onnx\"\n[serve]\nmax_batsh = 4\n", "cudock.toml:4:1", "max_batsh"),
        ("[serve]\nmax_batch = \"four\"\n", "cudock.toml:2:13", "four"),
        ("[workload]\nmodel = \n", "cudock.toml:2:", ""),
        ("[serve]\nlatency_target = \"50 parsecs\"\n", "cudock.toml:2:18", "parsecs"),
    ] {
        stage.write("project/cudock.toml", toml.as_bytes());
        let output = fails(&stage, &[stage.path("project").to_str().unwrap(), "--port", "0"]);
        let text = shown(&output);
        assert_eq!(code(&output), 2, "{toml}{text}");
        assert!(text.contains(place) && text.contains(word), "{toml}{text}");
    }
}

#[test]
fn what_cannot_be_served_is_exit_2() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.write("double.onnx", &times(2.0));
    let model = file.to_str().unwrap();
    let empty = stage.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let no_keys = stage.write("keys", b"\n\n");
    let no_keys = no_keys.to_str().unwrap();
    for (arguments, word) in [
        (vec!["nowhere.onnx"], "nowhere.onnx"),
        (vec![empty.to_str().unwrap()], "no model found in"),
        (vec![model, "--preferred", "64", "--max-batch", "32"], "--max-batch 64"),
        (vec![model, "--graphs"], "--preferred"),
        (vec![model, "--api-keys", no_keys], "no key found in"),
        (vec![model, "--api-keys", "nowhere"], "nowhere"),
        (vec![model, "--tls-cert", model, "--tls-key", model], "certificate"),
        (vec![model, "--max-wait", "soon"], "soon"),
    ] {
        let output = fails(&stage, &[&arguments[..], &["--port", "0"]].concat());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", shown(&output));
        assert!(shown(&output).contains(word), "{arguments:?}: {}", shown(&output));
    }
}

#[test]
fn a_project_is_served_as_its_cudock_toml_says() {
    let Some(stage) = Stage::new() else { return };
    stage.write("project/weights.onnx", &times(4.0));
    stage.write(
        "project/cudock.toml",
        b"[workload]\nmodel = \"weights.onnx\"\n[serve]\nmax_batch = 7\nmax_body = \"2KiB\"\n",
    );
    let server = stage.serve("project", &[]);
    let model = server.status();
    assert_eq!((&model["name"], &model["max_batch"]), (&"project".into(), &7.into()));
    assert_eq!(server.ask(&Ask::predict("[1, 1, 1, 1]")).ok().json()["prediction"][0], 4.0);
    assert_eq!(server.ask(&Ask::predict(&" ".repeat(3000))).status, 413);
}

#[test]
fn two_addresses_are_served_alike() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server =
        stage.serve("double.onnx", &["--listen", "127.0.0.1:0", "--listen", "[::1]:0", "--name", "other"]);
    assert_eq!(server.status()["name"], "other");
    let second = server
        .log()
        .lines()
        .find_map(|line| line.strip_prefix("listening on http://[::1]:").map(str::to_owned));
    let port: u16 = second.unwrap().parse().unwrap();
    let address = std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
    let mut connection = crate::serve_support::client::Connection::open(address).unwrap();
    connection.ask(&Ask::predict("[[1, 2, 3, 4]]")).ok();
}
