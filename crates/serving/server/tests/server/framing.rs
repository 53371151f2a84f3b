//! Where a request ends: those that others may understand differently are rejected, and nothing after them is read.

use std::fmt::Write;

use cudock_testkit::random::{Random, cases, seed};

use crate::support::TestServer;

/// A second request, hidden behind the first.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Headers that state a length in a way that programs read differently. `5` is that of the body.
const AMBIGUOUS: [&str; 28] = [
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Transfer-Encoding: chunked\r\nX: y\r\ncONTENT-lENGTH:5",
    "Transfer-Encoding: chunked\r\nContent-Length: five",
    "Content-Length: 0\r\nTransfer-Encoding: chunked",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 5, 6",
    "Content-Length: 5, 5",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 0x5",
    "Content-Length: 5 5",
    "Content-Length: 5.0",
    "Content-Length: ",
    "Content-Length: 18446744073709551621",
    "Content-Length : 5",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding : chunked",
    "X: y\r\n Transfer-Encoding: chunked",
];

/// Bodies in chunks that programs read differently.
const AMBIGUOUS_CHUNKS: [&str; 7] = [
    "0x5\r\nabcde\r\n0\r\n\r\n",
    "-5\r\nabcde\r\n0\r\n\r\n",
    "5\nabcde\r\n0\r\n\r\n",
    "5\r\nabcdef\r\n0\r\n\r\n",
    "10000000000000005\r\nabcde\r\n0\r\n\r\n",
    "5;a=\nb\r\nabcde\r\n0\r\n\r\n",
    "\r\n0\r\n\r\n",
];

/// All statuses that a client gets until the connection is closed.
fn statuses(server: &TestServer, bytes: &[u8]) -> Vec<u16> {
    let mut client = server.connect();
    client.write(bytes);
    let received = client.rest();
    let text = String::from_utf8_lossy(&received);
    text.split("HTTP/1.1 ").skip(1).map(|response| response[..3].parse().unwrap()).collect()
}

#[test]
fn a_request_whose_end_is_ambiguous_is_rejected_and_nothing_after_it_is_read() {
    let server = TestServer::start(|_| {});
    let heads = AMBIGUOUS.iter().flat_map(|fields| {
        ["abcde", "5\r\nabcde\r\n0\r\n\r\n", "0\r\n\r\n"].map(|body| (*fields, body.to_owned()))
    });
    let chunks = AMBIGUOUS_CHUNKS.iter().map(|body| ("Transfer-Encoding: chunked", (*body).to_owned()));
    for (fields, body) in heads.chain(chunks) {
        let request = format!("POST / HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n\r\n{body}{HIDDEN}");
        assert_eq!(statuses(&server, request.as_bytes()), [400], "{request:?}");
    }
    let old = format!("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}");
    assert_eq!(statuses(&server, old.as_bytes()), [400]);
    assert!(!server.log().contains("hidden"), "{}", server.log());
}

#[test]
fn a_length_that_is_stated_twice_is_named_and_the_connection_is_closed() {
    let server = TestServer::start(|_| {});
    let request =
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n";
    let response = server.send(request.as_bytes());
    assert_eq!((response.status, response.header("connection")), (400, Some("close")));
    assert_eq!(response.text(), "the request has both Content-Length and Transfer-Encoding");
}

/// A request whose end is clear, and its body, which looks like something else.
fn clear_request(random: &mut Random) -> (String, String) {
    let decoys = [
        "",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        "\r\n\r\n",
        "0\r\n\r\n",
        HIDDEN,
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    let body: String = (0..random.below(4)).map(|_| *random.pick(&decoys)).collect();
    let name = |random: &mut Random, name: &str| {
        let cases = [name.to_owned(), name.to_ascii_lowercase(), name.to_ascii_uppercase()];
        random.pick(&cases).clone() + *random.pick(&[":", ": ", ":\t ", ":  "])
    };
    let other = *random.pick(&["", "X-Content-Length: 7\r\n", "Content-Lengths: 7\r\n", "TE: trailers\r\n"]);
    if random.one_in(2) {
        let mut chunks = String::new();
        let mut left = body.as_str();
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(1 + random.below(left.len()));
            let extension = *random.pick(&["", ";a=b", "; content-length: 5"]);
            write!(chunks, "{:X}{extension}\r\n{chunk}\r\n", chunk.len()).unwrap();
            left = rest;
        }
        let end = *random.pick(&["0\r\n\r\n", "0\r\nContent-Length: 9\r\n\r\n", "000\r\n\r\n"]);
        let coding = *random.pick(&["chunked", "Chunked", "chunked "]);
        let field = name(random, "Transfer-Encoding") + coding;
        return (format!("POST / HTTP/1.1\r\nhost: localhost\r\n{other}{field}\r\n\r\n{chunks}{end}"), body);
    }
    let field = name(random, "Content-Length") + &"0".repeat(random.below(3)) + &body.len().to_string();
    (format!("POST / HTTP/1.1\r\n{other}{field}\r\nhost: localhost\r\n\r\n{body}"), body)
}

#[test]
fn a_second_length_is_found_after_any_requests_however_they_arrive() {
    let server = TestServer::start(|_| {});
    let mut random = Random::new(seed());
    for _ in 0..cases(100) {
        let requests: Vec<(String, String)> =
            (0..random.below(4)).map(|_| clear_request(&mut random)).collect();
        let ambiguous = AMBIGUOUS[random.below(5)];
        let mut bytes: String = requests.iter().map(|(request, _)| request.as_str()).collect();
        write!(bytes, "POST / HTTP/1.1\r\nhost: localhost\r\n{ambiguous}\r\n\r\n0\r\n\r\n{HIDDEN}").unwrap();
        let mut client = server.connect();
        let mut left = bytes.as_bytes();
        while !left.is_empty() {
            let (piece, rest) = left.split_at((1 + random.below(60)).min(left.len()));
            client.write(piece);
            left = rest;
        }
        for (request, body) in &requests {
            let response = client.receive();
            assert_eq!((response.status, response.text()), (200, body.clone()), "{request:?} of {bytes:?}");
        }
        assert_eq!(client.receive().status, 400, "{bytes:?}");
        assert_eq!(client.rest(), b"", "{bytes:?}");
    }
    assert!(!server.log().contains("hidden"), "{}", server.log());
}
