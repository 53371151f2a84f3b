//! Has another container engine do something: `ACT=JSON drive_engine RESULT`, where the result is written to a file.
//!
//! An engine writes to our own outputs and reads our own environment, so the tests need a process for each act. The act
//! is in the environment because it may hold secrets, which must not appear in a list of processes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "its callers are tests")]

use std::env;
use std::fs;

use cudock_base::Report as _;
use cudock_runtime::container::config::Private;
use cudock_runtime::container::exec::ExecRequest;
use cudock_runtime::engine::external::{find, find_with_image};
use cudock_runtime::engine::{LogRequest, RunImage, RunRequest};
use cudock_runtime::files::copy::{CopyRequest, Direction};
use serde_json::{Value, json};

fn main() {
    let result = env::args_os().nth(1).unwrap();
    let outcome = perform(&serde_json::from_str(&env::var("ACT").unwrap()).unwrap());
    fs::write(result, outcome.to_string()).unwrap();
}

fn perform(act: &Value) -> Value {
    let word = |name: &str| act[name].as_str().unwrap_or_default();
    if act["verb"] == "holding" {
        return json!({"ok": find_with_image(word("name")).map(|engine| engine.name())});
    }
    let engine = match find(word("engine")) {
        Ok(engine) => engine,
        Err(error) => return json!({"error": error.to_string(), "hint": error.hints().pop()}),
    };
    let name = word("name");
    let done = match word("verb") {
        "run" => engine.run(request(act), &RunImage::Named).map(Value::from),
        "list" => engine.list(act["all"] == true).map(|found| serde_json::to_value(found).unwrap()),
        "logs" => {
            let tail = act["tail"].as_u64().map(|lines| usize::try_from(lines).unwrap());
            let follow = act["follow"] == true;
            engine
                .logs(
                    name,
                    LogRequest {
                        follow,
                        tail,
                        timestamps: act["timestamps"] == true,
                        ..LogRequest::default()
                    },
                )
                .map(|()| Value::Null)
        }
        "exec" => {
            let exec: ExecRequest = serde_json::from_value(act["exec"].clone()).unwrap();
            engine.exec(name, &exec).map(Value::from)
        }
        "stop" => engine.stop(name, Some(1)).map(|()| Value::Null),
        "remove" => engine.remove(name, act["force"] == true).map(|()| Value::Null),
        "wait" => engine.wait(name).map(Value::from),
        "inspect" => engine.inspect(name),
        "kill" => engine.kill(name, word("signal")).map(|()| Value::Null),
        "start" => engine.start(name, &[], false).map(Value::from),
        "restart" => engine.restart(name, Some(0)).map(|()| Value::Null),
        "copy" => {
            let direction = if act["in"] == true { Direction::In } else { Direction::Out };
            let request = CopyRequest {
                direction,
                inside: word("inside").to_owned(),
                outside: word("outside").to_owned(),
                archive: false,
                follow_link: false,
            };
            engine.copy(name, &request).map(|_| Value::Null)
        }
        other => panic!("no verb {other}"),
    };
    match done {
        Ok(value) => json!({"ok": value}),
        Err(error) => {
            let behind = std::error::Error::source(&error).map(ToString::to_string);
            json!({"error": error.to_string(), "hint": error.hints().pop(), "behind": behind})
        }
    }
}

fn request(act: &Value) -> RunRequest {
    let strings =
        |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap_or_default() };
    let environment: Vec<(String, String)> = serde_json::from_value(act["env"].clone()).unwrap_or_default();
    RunRequest {
        config: serde_json::from_value(act["config"].clone()).unwrap(),
        private: Private { environment },
        entrypoint: (!act["entrypoint"].is_null()).then(|| strings(&act["entrypoint"])),
        command: strings(&act["command"]),
        cwd: act["cwd"].as_str().map(str::to_owned),
        user: act["user"].as_str().map(str::to_owned),
        detach: act["detach"] == true,
        cidfile: None,
        publish_all: None,
        pull: None,
        platform: None,
    }
}
