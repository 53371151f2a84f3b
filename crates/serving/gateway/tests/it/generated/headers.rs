//! Requests with random headers, queries and envelopes: none is answered under the identity of another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cudock_testkit::client::post;
use cudock_testkit::http::{Reply, Request, Server};
use cudock_testkit::random::{Random, cases, seed};
use serde_json::{Value, json};

use crate::support::{JSON, TestGateway};

/// The fields that docs/gateway.md names as harmless: an upstream may not see them, but never those of another request.
const HARMLESS: [&str; 31] = [
    "accept-encoding",
    "b3",
    "cf-ray",
    "elastic-apm-traceparent",
    "fly-request-id",
    "grpc-trace-bin",
    "request-id",
    "sentry-trace",
    "traceparent",
    "tracestate",
    "uber-trace-id",
    "user-agent",
    "via",
    "x-amz-cf-id",
    "x-amzn-trace-id",
    "x-arr-log-id",
    "x-azure-ref",
    "x-b3-parentspanid",
    "x-b3-sampled",
    "x-b3-spanid",
    "x-b3-traceid",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-datadog-parent-id",
    "x-datadog-sampling-priority",
    "x-datadog-trace-id",
    "x-forwarded-for",
    "x-ot-span-context",
    "x-request-id",
    "x-request-start",
    "x-timeout-ms",
];

/// Requests that are sent at once.
const CLIENTS: usize = 24;

type Fields = BTreeMap<String, Vec<String>>;

/// A request, as its client sends it.
#[derive(Clone, Default)]
struct Sent {
    fields: Vec<(String, String)>,
    query: Option<usize>,
    /// What is beside the rows in the body.
    envelope: Option<usize>,
}

/// A request, as the upstream sees it.
struct Seen {
    path: String,
    fields: Fields,
    envelope: Value,
}

/// The names of `headers.txt`.
fn names() -> Vec<String> {
    let lines = include_str!("headers.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_ascii_lowercase).collect()
}

impl Sent {
    fn path(&self) -> String {
        self.query.map_or("/predict".to_owned(), |query| format!("/predict?tenant={query}"))
    }

    fn body(&self, row: usize) -> String {
        match self.envelope {
            None => format!("{{\"input\":[{row}]}}"),
            Some(envelope) if envelope % 2 == 0 => format!("{{\"lang\":{envelope},\"input\":[{row}]}}"),
            Some(envelope) => format!("{{\"input\":[{row}],\"lang\":{envelope}}}"),
        }
    }

    fn bytes(&self, row: usize) -> Vec<u8> {
        let lines: String = self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        post(&self.path(), &format!("{JSON}{lines}"), self.body(row).as_bytes())
    }

    /// The headers that an upstream sees of the request by itself.
    fn forwarded(&self) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in &self.fields {
            fields.entry(name.clone()).or_default().push(value.clone());
        }
        let mut append = |name: &str, value: &str, separator: Option<&str>| {
            let values = fields.entry(name.to_owned()).or_default();
            values.push(value.to_owned());
            if let Some(separator) = separator {
                *values = vec![values.join(separator)];
            }
        };
        append("content-type", "application/json", None);
        append("via", "1.1 cudock", None);
        append("x-forwarded-for", "127.0.0.1", Some(", "));
        fields.entry("x-forwarded-host".to_owned()).or_insert_with(|| vec!["localhost".to_owned()]);
        fields.entry("x-forwarded-proto".to_owned()).or_insert_with(|| vec!["http".to_owned()]);
        if let Some(cookies) = fields.get_mut("cookie") {
            *cookies = vec![cookies.join("; ")];
        }
        fields
    }

    /// The request with a change that an upstream might answer differently, or none.
    fn changed(&self, random: &mut Random, names: &[String]) -> Self {
        let mut changed = self.clone();
        match random.below(12) {
            0 => changed.query = Some(random.below(2)),
            1 => changed.envelope = Some(random.below(3)),
            2 | 3 => changed.fields.push(field(random, names)),
            4 if !changed.fields.is_empty() => {
                let at = random.below(changed.fields.len());
                let name = changed.fields[at].0.clone();
                changed.fields[at].1 = value(random, &name);
            }
            5 if !changed.fields.is_empty() => _ = changed.fields.remove(random.below(changed.fields.len())),
            6 if !changed.fields.is_empty() => {
                let name = random.pick(&changed.fields).0.clone();
                let value = value(random, &name);
                changed.fields.push((name, value));
            }
            7 => changed.fields.reverse(),
            _ => {}
        }
        // Harmless fields differ in all requests anyway.
        if random.one_in(2) {
            let name = (*random.pick(&HARMLESS)).to_owned();
            let value = value(random, &name);
            changed.fields.push((name, value));
        }
        changed
    }
}

fn field(random: &mut Random, names: &[String]) -> (String, String) {
    let name = random.pick(names).clone();
    let value = value(random, &name);
    (name, value)
}

fn value(random: &mut Random, name: &str) -> String {
    let number = random.below(3);
    match name {
        "accept" => ["*/*", "application/json", "text/csv"][number].to_owned(),
        "x-timeout-ms" => (600_000 + number).to_string(),
        _ => format!("v{number}"),
    }
}

impl Seen {
    fn of(request: &Request) -> Self {
        let mut fields = Fields::new();
        for (name, value) in &request.fields {
            fields.entry(name.clone()).or_default().push(value.clone());
        }
        // Those of the connection.
        fields.remove("host");
        fields.remove("content-length");
        let mut envelope: Value = serde_json::from_slice(&request.body).unwrap();
        envelope.as_object_mut().unwrap().remove("input");
        Self { path: request.path.clone(), fields, envelope }
    }

    /// Checks that the upstream has seen a request as its client sent it.
    fn check(&self, sent: &Sent) {
        assert_eq!(self.path, sent.path());
        let mut envelope: Value = serde_json::from_str(&sent.body(0)).unwrap();
        envelope.as_object_mut().unwrap().remove("input");
        assert_eq!(self.envelope, envelope);
        let expected = sent.forwarded();
        let names = self.fields.keys().chain(expected.keys());
        for name in names {
            let seen = self.fields.get(name);
            let is_missing = seen.is_none() && HARMLESS.contains(&name.as_str());
            assert!(is_missing || seen == expected.get(name), "{name}: {seen:?} of {:?}", sent.fields);
        }
    }
}

/// An upstream that answers each row with the number of the request in which it saw it.
fn upstream(requests: &Arc<Mutex<Vec<Seen>>>, rows: &Arc<Mutex<Vec<usize>>>) -> std::net::SocketAddr {
    let (requests, rows) = (Arc::clone(requests), Arc::clone(rows));
    Server::run_forever(move |request| {
        if !request.path.starts_with("/predict") {
            return Reply::new(200, "").keep_alive();
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let mut requests = requests.lock().unwrap();
        let number = requests.len();
        requests.push(Seen::of(request));
        let input = body["input"].as_array().unwrap();
        let is_list = input.iter().all(Value::is_array);
        let answered: Vec<Value> = if is_list {
            input.iter().map(|row| json!([row[0], number])).collect()
        } else {
            vec![json!([input[0], number])]
        };
        rows.lock().unwrap().push(answered.len());
        let prediction = if is_list { json!(answered) } else { answered[0].clone() };
        let body = json!({ "prediction": prediction }).to_string();
        // So that requests collect meanwhile.
        Reply::new(200, body)
            .with("content-type", "application/json")
            .keep_alive()
            .after(Duration::from_micros(200))
    })
}

#[test]
fn no_request_is_answered_under_the_identity_of_another() {
    let names = names();
    assert!(names.len() >= 300, "{}", names.len());
    let (requests, rows) = (Arc::default(), Arc::default());
    let gateway = TestGateway::start(&[upstream(&requests, &rows)], "concurrency = 1");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| gateway.connect()).collect();
    let mut random = Random::new(seed());
    let rounds = (cases(1000) as usize).div_ceil(CLIENTS);
    for round in 0..rounds {
        let base = Sent {
            fields: (0..random.below(6)).map(|_| field(&mut random, &names)).collect(),
            ..Sent::default()
        };
        let sent: Vec<Sent> = (0..CLIENTS).map(|_| base.changed(&mut random, &names)).collect();
        for (index, (client, sent)) in clients.iter_mut().zip(&sent).enumerate() {
            client.write(&sent.bytes(round * CLIENTS + index));
        }
        for (index, (client, sent)) in clients.iter_mut().zip(&sent).enumerate() {
            let response = client.receive();
            assert_eq!(response.status, 200, "{}", response.text());
            let answer: Value = serde_json::from_slice(&response.body).unwrap();
            let number = usize::try_from(answer["prediction"][1].as_u64().unwrap()).unwrap();
            assert_eq!(answer, json!({ "prediction": [round * CLIENTS + index, number] }));
            requests.lock().unwrap()[number].check(sent);
        }
    }
    let rows = rows.lock().unwrap();
    let merged: usize = rows.iter().filter(|rows| **rows > 1).sum();
    let all: usize = rows.iter().sum();
    assert!(merged * 10 > all, "only {merged} of {all} requests shared a batch");
    eprintln!("{all} requests, {merged} of them in batches of several, {} batches", rows.len());
}
