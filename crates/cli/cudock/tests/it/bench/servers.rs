//! Servers for `cudock bench`, and a model small enough to be written by hand.

use cudock_testkit::http::{Reply, Request, Server};

/// A reply after which the connection stays open.
pub fn reply(status: u16, body: &str) -> Reply {
    Reply::new(status, body).with("Content-Type", "application/json").keep_alive()
}

/// Starts a server and returns its URL.
pub fn server(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> String {
    format!("http://{}", Server::run_forever(handler))
}

/// An ONNX file of one Relu over rows of so many floats.
pub fn relu_model(width: u8) -> Vec<u8> {
    // Fields of protocol buffers: a number, or bytes behind their length; all short enough for one byte of length.
    let number = |field: u8, value: u8| vec![field << 3, value];
    let bytes = |field: u8, content: &[u8]| {
        [&[field << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    };
    let text = |field: u8, content: &str| bytes(field, content.as_bytes());
    let rows = bytes(1, &text(2, "N"));
    let columns = bytes(1, &number(1, width));
    let tensor = [number(1, 1), bytes(2, &[rows, columns].concat())].concat();
    let value = |name: &str| [text(1, name), bytes(2, &bytes(1, &tensor))].concat();
    let node = [text(1, "x"), text(2, "y"), text(4, "Relu")].concat();
    let graph = [bytes(1, &node), text(2, "g"), bytes(11, &value("x")), bytes(12, &value("y"))].concat();
    [number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat()
}
