//! Lists of several pages.

use cudock_azure::{AzureError, Body};
use cudock_http::Method;
use cudock_testkit::http::{Reply, Server};
use serde_json::{Value, json};

use crate::support::{api_requests, azure, call, client, reply};

#[test]
fn all_pages_are_read_from_the_same_host() {
    for name in ["nextLink", "odata.nextLink"] {
        let server = azure(move |request| {
            let next = format!("http://{}/list?api-version=1&$skiptoken=a b&page=", request.headers["host"]);
            match request.path.split("page=").nth(1) {
                None => reply(200, &json!({"value": [1, 2], name: next.clone() + "2"})),
                Some("2") => reply(200, &json!({"value": [], name: next + "3"})),
                _ => reply(200, &json!({"value": [3], name: null, "count": 3})),
            }
        });
        let entries = client(&server).list(&call(Method::GET, "/list?api-version=1")).unwrap();
        assert_eq!(Value::from(entries), json!([1, 2, 3]));
        assert_eq!(server.count("/list?api-version=1&$skiptoken=a%20b&page="), 2);
    }
}

#[test]
fn resource_graph_goes_on_with_a_token_in_the_body() {
    let server = azure(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        match body["options"]["$skipToken"].as_str() {
            None => reply(200, &json!({"data": [{"id": 1}], "$skipToken": "next"})),
            Some("next") => reply(200, &json!({"data": [{"id": 2}], "$skipToken": ""})),
            Some(_) => Reply::new(400, ""),
        }
    });
    let query = json!({"query": "resources", "options": {"resultFormat": "objectArray"}});
    let mut call = call(Method::POST, "/providers/Microsoft.ResourceGraph/resources?api-version=2022-10-01");
    call.body = Some(Body::new(query.clone()));
    let entries = client(&server).list(&call).unwrap();
    assert_eq!(Value::from(entries), json!([{"id": 1}, {"id": 2}]));
    let sent: Vec<Value> =
        api_requests(&server).iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let mut second = query.clone();
    second["options"]["$skipToken"] = json!("next");
    assert_eq!(sent, [query, second]);
}

#[test]
fn a_list_leads_neither_elsewhere_nor_in_circles() {
    let elsewhere = Server::start(|_| reply(200, &json!({"value": []})));
    let other_host = format!("http://{}/list", elsewhere.host());
    for (next, reason) in [
        (Some(other_host), "refused to follow the list to another host"),
        (Some("not a url".to_owned()), "refused to follow the list to another host"),
        (None, "a page of the list leads to itself"),
    ] {
        let server = azure(move |request| {
            let own = || format!("http://{}/list", request.headers["host"]);
            reply(200, &json!({"value": [1], "nextLink": next.clone().unwrap_or_else(own)}))
        });
        let error = client(&server).list(&call(Method::GET, "/list")).unwrap_err();
        assert!(matches!(error, AzureError::Paging { reason: actual, .. } if actual == reason), "{error}");
    }
    assert!(elsewhere.requests().is_empty());
    let server = azure(|_| reply(200, &json!({"id": 1})));
    let error = client(&server).list(&call(Method::GET, "/list")).unwrap_err();
    assert_eq!(error.to_string(), "GET /list: the answer is not a list");
}
