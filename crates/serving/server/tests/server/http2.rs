//! A client of HTTP/2 that sends one request, with whatever headers.

use crate::support::TestServer;

/// Sends `GET /` of a `http` URL with further header fields, and returns the header block of the response.
pub(crate) fn get(server: &TestServer, fields: &[(&str, &str)]) -> Vec<u8> {
    // Method, scheme and path as indexed fields, the others as literals (RFC 7541, appendix A and 6.2.2).
    let mut block = vec![0x82, 0x86, 0x84];
    for text in fields {
        block.push(0);
        for text in [text.0, text.1] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    let mut client = server.connect();
    client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    client.write(&[&[0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1], &block[..]].concat());
    loop {
        let head = client.take(9);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = client.take(length);
        let (kind, stream) = (head[3], head[8]);
        if (kind, stream) == (1, 1) {
            return payload;
        }
    }
}
