//! Any bytes as requests to a gateway and as an upstream's answer: no panic; a request that is joined keeps its rows, and
//! what each request gets of an answer is JSON if the answer was.
#![no_main]

use bytes::Bytes;
use cudock_gateway::batching::rows::{RequestRows, RowFormat, join};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let format = RowFormat { row_rank: usize::from(choice & 3), ..RowFormat::default() };
    // Two requests and an answer, separated by a byte that is not part of any text.
    let mut parts = rest.splitn(3, |byte| *byte == 0xff).map(Bytes::copy_from_slice);
    let (Some(first), Some(second)) = (parts.next(), parts.next()) else { return };
    let requests: Vec<RequestRows> =
        [first, second].into_iter().filter_map(|body| format.read_request(body)).collect();
    for request in &requests {
        // A joined row is nested one level deeper, which may be too deep.
        if let Some(alone) = format.read_request(join(&[request])) {
            assert_eq!(alone.count(), request.count());
        }
    }
    let requests: Vec<&RequestRows> = requests.iter().collect();
    // Requests with different shapes or envelopes are never joined by the gateway, but joining them must not panic.
    let joined = join(&requests);
    let rows: usize = requests.iter().map(|request| request.count()).sum();
    if let Some(all) = format.read_request(joined) {
        assert_eq!(all.count(), rows);
    }
    let Some(answer) = parts.next() else { return };
    let is_json = serde_json::from_slice::<&RawValue>(&answer).is_ok();
    if let Ok(answers) = format.split(&answer, &requests) {
        assert_eq!(answers.len(), requests.len());
        for pieces in answers.into_iter().filter(|_| is_json) {
            serde_json::from_slice::<&RawValue>(&pieces.concat()).expect("a part of JSON is JSON");
        }
    }
});
