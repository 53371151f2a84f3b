//! Sessions with a client in memory. A real client is in the tests of the command.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::thread;

use cudock_base::Date;
use cudock_facts::Facts;
use cudock_lsp::{LspError, serve};
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

/// Runs a session: what the client sends after `initialize`, and everything that it gets.
fn session(options: &Value, messages: Vec<Message>) -> (Result<bool, LspError>, Vec<Message>) {
    let (server, client) = Connection::memory();
    let thread = thread::spawn(move || serve(&server, &Facts::embedded(), Date::new(2026, 11, 16).unwrap()));
    let initialize = json!({"capabilities": {}, "initializationOptions": options});
    client.sender.send(request(0, "initialize", initialize)).unwrap();
    client.sender.send(notification("initialized", json!({}))).unwrap();
    for message in messages {
        client.sender.send(message).unwrap();
    }
    drop(client.sender);
    let received = client.receiver.iter().collect();
    (thread.join().unwrap(), received)
}

fn request(id: i32, method: &str, params: Value) -> Message {
    Request::new(id.into(), method.to_owned(), params).into()
}

fn notification(method: &str, params: Value) -> Message {
    Notification::new(method.to_owned(), params).into()
}

fn open(text: &str) -> Message {
    let document =
        json!({"uri": "untitled:Dockerfile", "languageId": "dockerfile", "version": 1, "text": text});
    notification("textDocument/didOpen", json!({"textDocument": document}))
}

fn notifications<'m>(received: &'m [Message], method: &str) -> Vec<&'m Value> {
    let sent = received.iter().filter_map(|message| match message {
        Message::Notification(notification) if notification.method == method => Some(&notification.params),
        _ => None,
    });
    sent.collect()
}

fn response(received: &[Message], id: i32) -> &Response {
    let id = RequestId::from(id);
    let found = received.iter().find_map(|message| match message {
        Message::Response(response) if response.id == id => Some(response),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no response to {id}: {received:?}"))
}

#[test]
fn a_session_ends_by_shutdown_and_exit() {
    let end = vec![request(1, "shutdown", Value::Null), notification("exit", Value::Null)];
    let (result, received) = session(&Value::Null, end);
    assert!(result.unwrap());
    let capabilities = &serde_json::to_value(response(&received, 0)).unwrap()["result"]["capabilities"];
    assert_eq!(capabilities["textDocumentSync"]["change"], 2);
    assert_eq!(
        capabilities["codeActionProvider"]["codeActionKinds"],
        json!(["quickfix", "source.fixAll.cudock"])
    );
    let (result, _) = session(&Value::Null, Vec::new());
    assert!(!result.unwrap(), "a client that only disconnects did not ask for the end");
}

#[test]
fn wrong_options_are_shown_and_the_rest_works() {
    for (options, expected) in [
        (json!({"driver": "new"}), "initializationOptions: "),
        (json!({"for": "T5"}), "unknown GPU `T5`"),
        (json!({"driver": "535"}), "a driver without a GPU"),
    ] {
        let change =
            json!({"textDocument": {"uri": "untitled:Dockerfile", "version": 2}, "contentChanges": []});
        let messages = vec![open("FROM a/b\n"), notification("textDocument/didChange", change)];
        let (_, received) = session(&options, messages);
        let shown = notifications(&received, "window/showMessage");
        assert_eq!(shown.len(), 1, "shown once: {shown:?}");
        assert!(shown[0]["message"].as_str().unwrap().contains(expected), "{shown:?}");
        let published = notifications(&received, "textDocument/publishDiagnostics");
        assert_eq!(published.len(), 2);
        let codes = published[0]["diagnostics"].as_array().unwrap();
        assert!(codes.iter().any(|diagnostic| diagnostic["code"] == "CD0702"), "{published:?}");
    }
}

#[test]
fn what_is_not_supported_or_not_open_is_answered() {
    let at = json!({"textDocument": {"uri": "file:///absent"}, "position": {"line": 0, "character": 0}});
    let change =
        json!({"textDocument": {"uri": "file:///absent", "version": 2}, "contentChanges": [{"text": ""}]});
    let messages = vec![
        request(1, "textDocument/definition", at.clone()),
        request(2, "textDocument/hover", at),
        request(3, "textDocument/hover", json!({"position": "wrong"})),
        notification("textDocument/didChange", change),
        notification("textDocument/didOpen", json!({})),
        open(&"#".repeat(4 << 20 | 1)),
    ];
    let (_, received) = session(&Value::Null, messages);
    let error = |id| response(&received, id).response_result.as_ref().err().map(|error| error.code);
    assert_eq!((error(1), error(2), error(3)), (Some(-32601), None, Some(-32602)));
    let published = notifications(&received, "textDocument/publishDiagnostics");
    assert_eq!(published.len(), 1, "only of what is open");
    assert_eq!(published[0]["diagnostics"], json!([]), "a file beyond the limit is not linted");
}
