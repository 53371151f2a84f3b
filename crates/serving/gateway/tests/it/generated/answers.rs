//! Answers with random lists: each client gets exactly what the upstream would have answered it alone.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cudock_testkit::client::post;
use cudock_testkit::http::{Reply, Server};
use cudock_testkit::random::{Random, cases, seed};
use serde_json::Value;

use crate::support::{JSON, LogLines, TestGateway};

/// Requests that are sent at once.
const CLIENTS: usize = 12;
/// Keys that the options of the gateway name.
const OUTPUT_KEYS: [&str; 2] = ["\"prediction\"", "\"sc\\u006fres\""];
const SHARED_KEYS: [&str; 2] = ["\"classes\"", "\"meta\\/data\""];
const OPTIONS: &str =
    "concurrency = 1\noutput_keys = ['prediction', 'scores']\nshared_keys = ['classes', 'meta/data']";
/// Others, among them those of known servers, and the names above in other spellings.
const OTHER_KEYS: [&str; 14] = [
    "\"labels\"",
    "\"predictions\"",
    "\"outputs\"",
    "\"device\"",
    "\"result\"",
    "\"Prediction\"",
    "\"predictions \"",
    "\"\"",
    "\"pr\\u00e9diction\"",
    "\"prédiction\"",
    "\"\\\"prediction\\\"\"",
    "\"a\\\\\"",
    "\"boxes[0]\"",
    "\"usage\"",
];

/// What an answer has under a key.
#[derive(Clone, Debug)]
enum Content {
    /// One element per row, of this kind.
    Rows(usize),
    /// The same for all rows.
    Same(String),
    /// An object of such values.
    Object(Vec<(String, Content)>),
}

/// How an upstream answers.
#[derive(Clone, Debug)]
enum Form {
    Object(Vec<(String, Content)>),
    /// A list without anything around it.
    Bare,
}

impl Content {
    /// What does not depend on rows: scalars, and lists and objects of any length.
    fn same(random: &mut Random) -> Self {
        let scalars = ["1.50", "\"[1,2]\"", "null", "true", "NaN", "\"{\\\"a\\\":[]}\""];
        let length = random.below(CLIENTS + 1);
        Self::Same(match random.below(6) {
            0 => format!("[{}]", vec!["\"cat\""; length].join(",")),
            1 => format!("[{}]", vec!["[[1],2]"; length].join(",")),
            2 => format!("[{}]", vec!["{\"label\":\"cat\",\"score\":1}"; length].join(",")),
            3 => "{\"a\":{\"b\":[1,2]}}".to_owned(),
            4 => "{}".to_owned(),
            _ => (*random.pick(&scalars)).to_owned(),
        })
    }

    fn scalar(random: &mut Random) -> Self {
        Self::Same((*random.pick(&["1.50", "\"[1,2]\"", "null", "true"])).to_owned())
    }

    /// What a key that the user has named as an output may have.
    fn output(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Object(vec![
                ("\"first\"".to_owned(), Self::Rows(random.below(4))),
                ("\"n\"".to_owned(), Self::scalar(random)),
                ("\"second\"".to_owned(), Self::Rows(random.below(4))),
            ]),
            1 if random.one_in(2) => Self::Object(vec![(
                "\"deep\"".to_owned(),
                Self::Object(vec![("\"a\"".to_owned(), Self::Rows(random.below(4)))]),
            )]),
            _ => Self::Rows(random.below(4)),
        }
    }

    fn other(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Rows(random.below(4)),
            1 => Self::Object(vec![
                (OTHER_KEYS[0].to_owned(), Self::Rows(random.below(4))),
                (OTHER_KEYS[1].to_owned(), Self::same(random)),
            ]),
            2 => Self::same(random),
            _ => Self::scalar(random),
        }
    }

    fn write(&self, rows: &[u64], is_single: bool, out: &mut String) {
        match self {
            Self::Same(text) => out.push_str(text),
            Self::Object(fields) => write_object(fields, rows, is_single, out),
            Self::Rows(kind) => {
                let element = |row: &u64| match kind {
                    0 => format!("{row}"),
                    1 => format!("[{row},[{row}]]"),
                    2 => format!("{{\"label\":\"{row}\",\"all\":[{row}]}}"),
                    _ => format!("[{{\"label\":\"\\\"{row},]\",\"score\":{row}}}]"),
                };
                let elements: Vec<String> = rows.iter().map(element).collect();
                let list = elements.join(",");
                let _ = if is_single { write!(out, "{list}") } else { write!(out, "[{list}]") };
            }
        }
    }
}

fn write_object(fields: &[(String, Content)], rows: &[u64], is_single: bool, out: &mut String) {
    out.push('{');
    for (index, (key, content)) in fields.iter().enumerate() {
        let _ = write!(out, "{}{key}:", if index == 0 { "" } else { "," });
        content.write(rows, is_single, out);
    }
    out.push('}');
}

impl Form {
    fn random(random: &mut Random) -> Self {
        if random.one_in(12) {
            return Self::Bare;
        }
        let mut fields = Vec::new();
        for _ in 0..=random.below(2) {
            fields.push(((*random.pick(&OUTPUT_KEYS)).to_owned(), Content::output(random)));
        }
        if random.one_in(3) {
            fields.push(((*random.pick(&SHARED_KEYS)).to_owned(), Content::same(random)));
        }
        // Half of the answers have nothing that is unknown.
        for _ in 0..random.below(4).saturating_sub(1) {
            fields.push(((*random.pick(&OTHER_KEYS)).to_owned(), Content::other(random)));
        }
        if random.one_in(3) {
            fields.push(("\"device\"".to_owned(), Content::scalar(random)));
        }
        for _ in 0..random.below(3) {
            let at = random.below(fields.len());
            fields.swap(0, at);
        }
        Self::Object(fields)
    }

    /// What the upstream answers to these rows.
    fn answer(&self, rows: &[u64], is_single: bool) -> String {
        let mut out = String::new();
        match self {
            Self::Bare => Content::Rows(1).write(rows, is_single, &mut out),
            Self::Object(fields) => write_object(fields, rows, is_single, &mut out),
        }
        out
    }
}

/// An upstream that answers each request in the form that it names, and counts rows.
fn upstream(forms: &Arc<Mutex<Vec<Form>>>, batches: &Arc<Mutex<Vec<usize>>>) -> std::net::SocketAddr {
    let (forms, batches) = (Arc::clone(forms), Arc::clone(batches));
    Server::run_forever(move |request| {
        if request.path != "/predict" {
            return Reply::new(200, "").keep_alive();
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let input = body["input"].as_array().unwrap();
        let is_single = !input[0].is_array();
        let row = |value: &Value| value.as_u64().unwrap();
        let rows: Vec<u64> =
            if is_single { vec![row(&input[0])] } else { input.iter().map(|value| row(&value[0])).collect() };
        batches.lock().unwrap().push(rows.len());
        let form = usize::try_from(row(&body["form"])).unwrap();
        let answer = forms.lock().unwrap()[form].answer(&rows, is_single);
        Reply::new(200, answer)
            .with("content-type", "application/json")
            .keep_alive()
            .after(Duration::from_micros(200))
    })
}

#[test]
fn each_client_gets_what_the_upstream_would_have_answered_it_alone() {
    let (forms, batches) = (Arc::<Mutex<Vec<Form>>>::default(), Arc::<Mutex<Vec<usize>>>::default());
    let log = LogLines::default();
    let gateway = TestGateway::with_log(&[upstream(&forms, &batches)], OPTIONS, &log);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| gateway.connect()).collect();
    let mut random = Random::new(seed());
    let mut row = 0;
    for _ in 0..(cases(1000) as usize).div_ceil(CLIENTS) {
        // Some forms come again, when it is known how they are answered.
        let known = forms.lock().unwrap().len();
        let form = if known == 0 || random.one_in(2) {
            forms.lock().unwrap().push(Form::random(&mut random));
            known
        } else {
            random.below(known)
        };
        let mut requests = Vec::new();
        for client in &mut clients {
            let is_single = random.one_in(2);
            let count = if is_single { 1 } else { 1 + random.below(3) as u64 };
            let rows: Vec<u64> = (row..row + count).collect();
            row += count;
            let lists: Vec<String> = rows.iter().map(|row| format!("[{row}]")).collect();
            let input = if is_single { lists.concat() } else { format!("[{}]", lists.join(",")) };
            let body = format!("{{\"form\":{form},\"input\":{input}}}");
            client.write(&post("/predict", JSON, body.as_bytes()));
            requests.push((rows, is_single));
        }
        let form = forms.lock().unwrap()[form].clone();
        for (client, (rows, is_single)) in clients.iter_mut().zip(&requests) {
            let response = client.receive();
            let expected = form.answer(rows, *is_single);
            assert_eq!((response.status, response.text()), (200, expected), "{form:?}");
        }
    }
    let batches = batches.lock().unwrap();
    let merged: usize = batches.iter().filter(|rows| **rows > 3).sum();
    let alone = gateway.metric("single_requests_total");
    eprintln!("{row} rows, {merged} of them in batches of several requests, {alone} requests one by one");
    assert!(merged > 10 && alone > 10.0, "{merged} {alone}");
    let lines = log.lines("requests sent one by one");
    let answers: Vec<&str> = lines.iter().filter_map(|line| line.split(" hint=").next()).collect();
    let mut once = answers.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), answers.len(), "{lines:#?}");
    assert!(!lines.is_empty());
}
