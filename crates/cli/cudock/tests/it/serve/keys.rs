//! Keys and certificates change while the server runs.

use std::process::Command;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::{Stage, eventually};
use crate::serve_support::tls::certificate;

const ROW: &str = "[[1, 2, 3, 4]]";

#[test]
fn keys_are_read_again_when_their_file_changes_and_comments_are_not_keys() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let key = |name: &str| format!("{name}-{:x}", std::process::id());
    let (old, new) = (key("old"), key("new"));
    let comment = format!("# {old}");
    let file = stage.write("keys", format!("{comment}\n{old}\n").as_bytes());
    let server = stage.serve("double.onnx", &["--api-keys", file.to_str().unwrap()]);
    let status = |key: &str| server.ask(&Ask::predict(ROW).with("x-api-key", key)).status;
    assert_eq!((status(&old), status(&comment), status("#"), status(&new)), (200, 401, 401, 401));
    stage.swap("keys", format!("{new}\n").as_bytes());
    eventually("the new key opens", || status(&new) == 200);
    assert_eq!(status(&old), 401);
    // A file without keys leaves the keys as they are, which is reported once.
    stage.swap("keys", b"# nothing\n");
    server.signal("HUP");
    eventually("it is reported", || server.log().contains("keys not reloaded"));
    assert_eq!(status(&new), 200);
    assert!(![&old, &new].iter().any(|key| server.log().contains(*key)), "{}", server.log());
}

#[test]
fn a_certificate_is_read_again_when_it_changes() {
    let Some(stage) = Stage::new() else { return };
    if [certificate(&stage, "first"), certificate(&stage, "second")].contains(&None) {
        return;
    }
    let copy = |from: &str| {
        for end in ["pem", "key"] {
            stage.swap(
                &format!("server.{end}"),
                &std::fs::read(stage.path(&format!("{from}.{end}"))).unwrap(),
            );
        }
    };
    copy("first");
    stage.write("double.onnx", &times(2.0));
    let (chain, key) = (stage.path("server.pem"), stage.path("server.key"));
    let arguments = ["--tls-cert", chain.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let mut server = stage.serve("double.onnx", &arguments);
    let address = format!("https://localhost:{}/live", server.address.port());
    let trusted = |name: &str| {
        let authority = stage.path(&format!("{name}.pem"));
        let response = Command::new("curl").args(["-sS", "--cacert"]).arg(&authority).arg(&address).output();
        response.unwrap().status.success()
    };
    assert!(trusted("first") && !trusted("second"));
    copy("second");
    eventually("the new certificate is shown", || trusted("second"));
    assert!(!trusted("first"));
    // A handshake that never goes on does not keep the server from ending.
    let stalled = server.connect();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop(stalled);
}
