//! Whatever Azure answers, there is a report.

use cudock_azure::ExistingResources;
use cudock_azure::preflight::{PreflightVerdict, QueryResult, QueryResults, Question, judge, queries};
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{T4, candidate, request_for};

/// JSON with the keys and values that are looked for, in any place.
fn json_value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "value",
        "data",
        "name",
        "id",
        "type",
        "limit",
        "currentValue",
        "location",
        "locations",
        "locationInfo",
        "zones",
        "restrictions",
        "restrictionInfo",
        "capabilities",
        "namespace",
        "registrationState",
        "resourceTypes",
        "resourceType",
        "actions",
        "notActions",
        "properties",
        "dedicatedCoreQuota",
        "dedicatedCoreQuotaPerVMFamily",
        "coreQuota",
        "n",
        "max",
        "state",
        "error",
        "code",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "cores",
            "Standard NCASv3_T4 Family",
            "westeurope",
            T4,
            "Zone",
            "Location",
            "*",
            "é*é",
            "Registered",
            "Enabled",
            "/subscriptions/00000000-0000-0000-0000-000000000000/usages",
            "Microsoft.Compute",
            "virtualMachines",
            "/subscriptions/x/providers/Microsoft.Authorization/locks/",
        ])
        .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner.clone(), 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            prop::collection::vec(inner, 0..4).prop_map(|list| json!({ "value": list })),
        ]
    })
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic(
        bodies in prop::collection::vec((json_value(), prop::sample::select(vec![200_u16, 201, 400, 401, 403, 404, 429, 500])), 20),
    ) {
        let mut request = request_for(vec![
            candidate(AzureService::Vm, T4, "westeurope"),
            candidate(AzureService::Batch, T4, "westeurope"),
            candidate(AzureService::Ml, T4, "westeurope"),
            candidate(AzureService::ContainerApps, "Consumption-GPU-NC8as-T4", "westeurope"),
            candidate(AzureService::Aci, T4, "westeurope"),
        ]);
        request.existing = ExistingResources {
            batch_account: Some("a/b".into()),
            container_apps_environment: Some("a/b".into()),
            workspace: Some("a/b".into()),
            reaper_identity: None,
            ..ExistingResources::default()
        };
        request.pull_identity = Some("/x".into());
        let facts = Facts::embedded();
        let mut results = QueryResults::default();
        for (query, (body, status)) in queries(&request, &facts).into_iter().zip(bodies) {
            results.insert(query.topic, QueryResult::Response { status, body });
        }
        let report = judge(&request, &results, &facts);
        for candidate in &report.candidates {
            let image = candidate.rows.iter().find(|row| row.question == Question::ImageRuns).unwrap();
            prop_assert_eq!(image.verdict, PreflightVerdict::Unknown);
            prop_assert!(candidate.verdict >= PreflightVerdict::Unknown);
        }
        prop_assert!(serde_json::to_string(&report).is_ok());
    }
}
